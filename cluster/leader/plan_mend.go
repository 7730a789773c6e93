// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
)

// mend takes out of a command what no entry can hold of the record's own: addresses whose zone is no text, which earlier releases took in
// from objects. No source shows such an address any more, and none was ever a next hop or given to a Service. What the object still is goes
// on, and it can be told to be gone.
func mend(c fsm.Command) {
	switch c := c.(type) {
	case *fsm.PutNode:
		c.Addresses, c.Others = recordable(c.Addresses), recordable(c.Others)
	case *fsm.PutService:
		s := &c.Service
		s.ClusterIPs = recordable(s.ClusterIPs)
		if slices.ContainsFunc(s.Endpoints, isUnrecordable) {
			s.Endpoints = slices.DeleteFunc(slices.Clone(s.Endpoints), isUnrecordable)
		}
		if rare := s.Besides(); slices.ContainsFunc(slices.Concat(rare.Requested, rare.External, rare.ByOthers), unrecordable) {
			rare.Requested, rare.External, rare.ByOthers = recordable(rare.Requested), recordable(rare.External), recordable(rare.ByOthers)
			s.SetRare(rare)
		}
	}
}

// recordable are the addresses that an entry can hold: the list itself where it can hold all.
func recordable(list []netip.Addr) []netip.Addr {
	if !slices.ContainsFunc(list, unrecordable) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), unrecordable)
}

func unrecordable(a netip.Addr) bool { return !fsm.FitAddress(a) }

func isUnrecordable(e fsm.Endpoint) bool { return unrecordable(e.Address) }
