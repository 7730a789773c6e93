// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
)

// movedTo is the node that operators moved an address to: all who have it were moved there, and none of them asks for every node.
// Empty for none.
func movedTo(v *fsm.View, a netip.Addr) (node string) {
	for _, o := range v.Owners(a.String()) {
		m, moved := fsm.Get[*fsm.Move](v, fsm.TableMoves, string(o.Service))
		s, known := fsm.Get[*fsm.Service](v, fsm.TableServices, string(o.Service))
		switch {
		case o.Releasing:
		case !moved || !known || s.AllNodes && !s.Local || node != "" && node != string(m.Node):
			return ""
		default:
			node = string(m.Node)
		}
	}
	return node
}

// onSegments tells whether nodes answer for an address on their segments: a move has the lease go to a node then, and next hops are
// what they are.
func onSegments(v *fsm.View, a netip.Addr) bool {
	return slices.ContainsFunc(fsm.List[*fsm.L2Advertisement](v, fsm.TableL2Advertisements), func(ad *fsm.L2Advertisement) bool {
		return slices.ContainsFunc(v.Owners(a.String()), func(o *fsm.Allocation) bool { return slices.Contains(ad.Pools, o.Pool()) })
	})
}

// takes tells whether a node that an address was moved to takes it, of nodes where it is served; and whether that can be told.
func (r *l1) takes(v *fsm.View, a netip.Addr, node string, serving []string) (takes, told bool) {
	n, ok := fsm.Get[*fsm.Node](v, fsm.TableNodes, node)
	if !ok || !n.Eligible || drained(v, node) || len(serving) == 0 {
		return false, true
	}
	local := slices.ContainsFunc(v.Owners(a.String()), func(o *fsm.Allocation) bool {
		s, ok := fsm.Get[*fsm.Service](v, fsm.TableServices, string(o.Service))
		return ok && s.Local && !o.Releasing
	})
	family := slices.ContainsFunc(n.Addresses, func(own netip.Addr) bool { return own.Is4() == a.Is4() })
	return family && (!local || slices.Contains(serving, node)), r.able(v, node)
}

// leased compares the holder of an address on segments with where operators moved it.
func (r *l1) leased(v *fsm.View, a netip.Addr) {
	to := movedTo(v, a)
	l, held := fsm.Get[*fsm.Lease](v, fsm.TableLeases, a.String())
	rt, routed := fsm.Get[*fsm.Route](v, fsm.TableRoutes, fsm.HostPrefix(a).String())
	if to == "" || !held || !routed || !r.able(v, to) || !r.able(v, string(l.Holder)) || drained(v, to) {
		return
	}
	serves := slices.ContainsFunc(rt.NextHops, func(h fsm.NextHop) bool { return !h.Withdrawing && string(h.Node()) == to })
	links := r.scene.segments.of(to, a)
	if serves && len(links) > 0 && string(l.Holder) != to && !slices.ContainsFunc(links, func(at linkOf) bool { return !r.scene.segments.passes(at) }) {
		r.broken("lease "+a.String(), fmt.Sprintf("an operator moved it to %s, which can answer, and %s has it", to, l.Holder))
	}
}
