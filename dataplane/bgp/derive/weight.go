// SPDX-License-Identifier: Apache-2.0

package derive

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
)

// weight is what the ready endpoints of an address on a node weigh together, 1 each unless a Service says otherwise, if one of some
// advertisements says that these weigh: 1 at least, as a node without any forwards to others. 0 is no weight.
func (a attributes) weight(about []*fsm.Advertisement, address netip.Addr, node fsm.NodeID) uint32 {
	if !slices.ContainsFunc(about, func(ad *fsm.Advertisement) bool { return ad.Terms.Weighted }) {
		return 0
	}
	n := uint32(0)
	for _, owner := range a.view.Owners(address.String()) {
		s, ok := fsm.Get[*fsm.Service](a.view, fsm.TableServices, string(owner.Service))
		if !ok {
			continue
		}
		for _, e := range s.Endpoints {
			if e.Ready && !e.Quiesced && e.Node == node && e.Address.Is4() == address.Is4() {
				n += uint32(max(e.Weight, 1))
			}
		}
	}
	return min(max(n, 1), bgp.MaxWeight)
}

// weighsAlike tells whether two endpoints weigh the same on the same node.
func weighsAlike(a, b fsm.Endpoint) bool {
	return a.Ready == b.Ready && a.Weight == b.Weight && a.Quiesced == b.Quiesced && a.Node == b.Node && a.Address.Is4() == b.Address.Is4()
}
