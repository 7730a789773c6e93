// SPDX-License-Identifier: Apache-2.0

package records

import (
	"slices"

	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/fsm"
)

// move tells by the record how far a move has come: where traffic comes in besides the node, and what the node lacks.
func (r *renderer) move(m *fsm.Move) any {
	last := m.History[len(m.History)-1] // every command on it leaves a step
	doc := records.Move{
		Name: string(m.Service), Node: string(m.Node), Since: revision(m.Since), Time: stamp(last.AtUnixMilli), By: last.By().Who(), Reason: last.By().Reason,
		Left: []records.DrainLeft{},
	}
	owned := slices.DeleteFunc(r.view.Addresses(m.Service), func(a *fsm.Allocation) bool { return a.Releasing })
	for _, a := range owned {
		doc.Left = append(doc.Left, r.moveLeft(m, a)...)
	}
	if len(owned) == 0 {
		doc.Left = append(doc.Left, records.DrainLeft{State: "pending", WaitsFor: []string{}, Why: "the Service has no address"})
	}
	doc.Done = len(doc.Left) == 0
	return doc
}

// moveLeft tells what is left to do of one address.
func (r *renderer) moveLeft(m *fsm.Move, a *fsm.Allocation) (left []records.DrainLeft) {
	prefix := fsm.HostPrefix(a.Address)
	see := "; `fairlead why " + a.Address.String() + "` tells why"
	add := func(node fsm.NodeID, address, state, why string) {
		left = append(left, records.DrainLeft{Prefix: prefix.String(), Node: string(node), Address: address, State: state, WaitsFor: []string{}, Why: why})
	}
	if r.onSegment(a) {
		lease, held := fsm.Get[*fsm.Lease](r.view, fsm.TableLeases, a.Address.String())
		switch {
		case !held:
			add("", "", "lease", "nobody answers for it at layer 2 yet")
		case lease.Holder != m.Node:
			add(lease.Holder, "", "lease", "it answers for the address at layer 2 until "+string(m.Node)+" has working links for it, and its rules"+see)
		}
		return left
	}
	route, routed := fsm.Get[*fsm.Route](r.view, fsm.TableRoutes, prefix.String())
	if !routed {
		route = &fsm.Route{Prefix: prefix}
	}
	members := fsm.List[*fsm.Member](r.view, fsm.TableMembers)
	there := false
	for _, h := range route.NextHops {
		switch state := r.view.HopState(route, h); {
		case h.Node() != m.Node:
			left = append(left, r.drainLeft(route, h, members, "it is a next hop still"+see))
		case state == fsm.HopWanted:
			there = true
			add(m.Node, h.Address().String(), string(state), "its agent has not acknowledged the rules yet")
		case state != fsm.HopWithdrawing:
			there = true
		}
	}
	if !there {
		add(m.Node, "", records.NodeNone, "it is no next hop"+see)
	}
	return left
}

// onSegment tells whether nodes answer for an address at layer 2.
func (r *renderer) onSegment(a *fsm.Allocation) bool {
	return slices.ContainsFunc(fsm.List[*fsm.L2Advertisement](r.view, fsm.TableL2Advertisements), func(ad *fsm.L2Advertisement) bool {
		return slices.Contains(ad.Pools, a.Pool())
	})
}
