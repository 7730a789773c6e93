// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
)

// called tells whether a lease is to go to one of other nodes that can answer, by an operator's word: it was moved there. The
// holder must be there to let go of it, and the other one's links must have worked for a while, or the lease would not stay.
func (s *sitting) called(l *fsm.Lease, others []fsm.NodeID) bool {
	return s.present(s.now, l.Holder) && slices.ContainsFunc(others, func(id fsm.NodeID) bool { return s.bidden(l.VIP, id) })
}

// bidden tells whether an operator moved an address to a node whose links have worked for a while.
func (s *sitting) bidden(vip netip.Addr, node fsm.NodeID) bool {
	return s.policy.v.MovedTo(vip.String()) == node && s.steady(vip, node)
}
