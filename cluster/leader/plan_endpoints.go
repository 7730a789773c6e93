// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// PlanEndpoints plans the endpoints of some Services and the next hops of their addresses, and nothing else: what
// Plan would propose about them, for the cost of them alone; why a Service waits for an address stays as it is. Where they are not only about endpoints that the sources
// and the record differ, it proposes nothing and other is true: Plan has to look.
//
// Its proposals are Bulk and belong into one entry, in their order: what was seen is committed with what is done about
// it.
func PlanEndpoints(in Input, services []world.ID) (out Result, other bool) {
	p := newNarrowPlanner(in)
	if p.planNodes(); p.quarantined || len(p.out.Bulk) > 0 {
		return Result{}, true
	}
	wishes, asked := map[fsm.ServiceID]*wish{}, map[world.ID]bool{}
	for queue := slices.Clone(services); len(queue) > 0; queue = queue[1:] {
		id := queue[0]
		if asked[id] {
			continue
		}
		asked[id] = true
		s, plain := p.endpointsWish(id)
		if !plain {
			return Result{}, true
		}
		if s == nil {
			continue
		}
		wishes[s.id] = s
		p.propose(asShown, &fsm.PutService{Service: *s.next})
		queue = append(queue, p.sharers(s.id)...)
	}
	for id := range wishes {
		if !p.claimRecorded(id, wishes) {
			return Result{}, true
		}
	}
	for a := range p.claims {
		p.claimed = append(p.claimed, a)
	}
	slices.SortFunc(p.claimed, netip.Addr.Compare)
	for _, a := range p.claimed {
		p.planRoute(a)
	}
	p.out.Bulk, p.out.Urgent = append(p.out.Bulk, p.out.Urgent...), nil
	p.observeViews()
	return p.out, false
}

// newNarrowPlanner knows the nodes; of all else it learns what it is asked about.
func newNarrowPlanner(in Input) *planner {
	group := in.Record.Group()
	seen := &merged{}
	for _, a := range in.Views {
		if a.World == nil {
			a = Admitted{World: &world.World{}}
		}
		seen.views = append(seen.views, a)
	}
	seen.advertisements = collect(seen.views, func(w *world.World) []*world.Advertisement { return w.Advertisements },
		func(a *world.Advertisement) world.ID { return a.ID })
	seen.nodes = collect(seen.views, func(w *world.World) []*world.Node { return w.Nodes }, func(n *world.Node) world.ID { return n.ID })
	return &planner{
		in: in, seen: seen, settings: group.Settings, format: group.Format, quarantined: !group.Quarantine.IsZero(),
		drainedServices: drainsOf(in.Record, fsm.DrainService), moves: movesOf(in.Record),
		routeOf: map[netip.Addr]*fsm.Route{}, claims: map[netip.Addr][]*claim{},
	}
}

// service finds a Service in the views; the first source wins.
func (m *merged) service(id world.ID) *world.Service {
	for _, a := range m.views {
		i, ok := slices.BinarySearchFunc(a.World.Services, id, func(s *world.Service, id world.ID) int { return s.ID.Compare(id) })
		if ok {
			return a.World.Services[i]
		}
	}
	return nil
}

// endpointsWish is a Service that differs from its record in endpoints alone; nil if it does not differ, and not plain
// if there is more to it, or if not all that the record holds of it may be acted on.
func (p *planner) endpointsWish(id world.ID) (s *wish, plain bool) {
	w := p.seen.service(id)
	have, known := fsm.Get[*fsm.Service](p.in.Record, fsm.TableServices, id.String())
	switch {
	case w == nil || !p.handles(w) || w.Deleting:
		return nil, !known // not ours, and never was
	case !known || have.Deleting || len(have.Endpoints) > 0 && !p.seen.mayRemove(world.KindEndpointSlice, id):
		return nil, false
	}
	next := p.serviceOf(w, have)
	next.Pending = have.Pending
	as := *have
	as.Endpoints = next.Endpoints
	if !sameService(&as, &next) {
		return nil, false
	}
	if sameService(have, &next) {
		return nil, true
	}
	return &wish{id: have.ID, seen: w, have: have, next: &next}, true
}

// sharers are the other owners of what a Service owns: its routes lead to their endpoints as well.
func (p *planner) sharers(id fsm.ServiceID) (out []world.ID) {
	for _, own := range p.in.Record.Addresses(id) {
		for _, h := range p.in.Record.Owners(own.Address.String()) {
			out = append(out, idOf(h.Service))
		}
	}
	return out
}

// claimRecorded claims what a Service owns by the record, for all who own it. It tells whether that is all there is to
// say about these addresses.
func (p *planner) claimRecorded(id fsm.ServiceID, wishes map[fsm.ServiceID]*wish) bool {
	for _, own := range p.in.Record.Addresses(id) {
		a := own.Address
		if _, done := p.claims[a]; done {
			continue
		}
		if r, ok := fsm.Get[*fsm.Route](p.in.Record, fsm.TableRoutes, fsm.HostPrefix(a).String()); ok {
			p.routeOf[a] = r
		}
		for _, h := range p.in.Record.Owners(a.String()) {
			if h.Releasing {
				return false
			}
			owner := wishes[h.Service]
			if owner == nil {
				s, ok := fsm.Get[*fsm.Service](p.in.Record, fsm.TableServices, string(h.Service))
				if !ok {
					return false
				}
				owner = &wish{id: s.ID, have: s, next: s}
			}
			p.claims[a] = append(p.claims[a], &claim{owner: owner, address: a, have: h})
		}
	}
	return true
}
