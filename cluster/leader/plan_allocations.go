// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
)

// emitServices proposes the Services that differ, then who owns which address, address by address.
func (p *planner) emitServices() {
	for _, s := range p.services {
		if s.next == s.have || s.have != nil && sameService(s.have, s.next) {
			continue
		}
		if s.going && len(p.heldBy[s.id]) == 0 {
			continue // nothing to take back: it is deleted at once
		}
		next := *s.next
		next.History = nil
		p.propose(asShown, &fsm.PutService{Service: next})
	}
	for _, h := range p.allocations {
		if len(p.claims[h.Address]) == 0 {
			p.release(h)
		}
	}
	for a := range p.claims {
		p.claimed = append(p.claimed, a)
	}
	slices.SortFunc(p.claimed, netip.Addr.Compare)
	for _, a := range p.claimed {
		p.emitOwners(a)
	}
}

// emitOwners brings the owners of one address to the claims on it.
func (p *planner) emitOwners(a netip.Addr) {
	claims, owners := p.claims[a], p.ownersOf[a]
	rekeyed := slices.ContainsFunc(claims, func(c *claim) bool { return c.have != nil && !c.have.Releasing && c.have.SharingKey() != c.key })
	if rekeyed && len(owners) > 1 {
		p.regroup(claims, owners)
		return
	}
	for _, h := range owners {
		if !claimedBy(claims, h.Service) {
			p.release(h)
		}
	}
	for _, c := range claims {
		p.allocate(c)
	}
}

// regroup changes the keys of Services that share an address. One of them stays all the while, so that the address stays
// routed; the others step aside first, since nobody shares with one that has another key. Each takes its own ports back
// in the same plan, which nobody else could have.
func (p *planner) regroup(claims []*claim, owners []*fsm.Allocation) {
	if p.quarantined {
		return // nothing is released now, and nothing is urgent about it
	}
	stays := slices.IndexFunc(claims, func(c *claim) bool { return c.have != nil && !c.have.Releasing })
	for _, h := range owners {
		if h.Service == claims[stays].owner.id {
			continue
		}
		p.release(h)
		p.free(h)
	}
	p.allocate(claims[stays])
	for i, c := range claims {
		if i != stays {
			c.have = nil
			p.allocate(c)
		}
	}
}

func (p *planner) allocate(c *claim) {
	if c.settled() {
		return
	}
	delete(p.released, allocationID{c.address, c.owner.id})
	give := fsm.Allocate{Address: c.address, Service: c.owner.id, Pool: c.pool, Ports: c.open(), SharingKey: c.key}
	if c.adopted {
		p.propose("Service "+string(c.owner.id)+" is known to own "+c.address.String(), &fsm.AdoptAllocation{Allocation: give})
		return
	}
	reason := "asked for by name"
	if c.pool != "" {
		reason = "out of pool " + string(c.pool)
	}
	p.propose(reason, &give)
}

func (p *planner) release(h *fsm.Allocation) {
	id := allocationID{h.Address, h.Service}
	if p.released[id] {
		return
	}
	p.released[id] = true
	p.propose("Service "+string(h.Service)+" no longer asks for "+h.Address.String(), &fsm.ReleaseAllocation{Address: h.Address, Service: h.Service})
}

func (p *planner) free(h *fsm.Allocation) {
	p.freed[allocationID{h.Address, h.Service}] = true
	p.propose("no path to "+h.Address.String()+" is left for Service "+string(h.Service), &fsm.FreeAllocation{Address: h.Address, Service: h.Service})
}

func claimedBy(claims []*claim, s fsm.ServiceID) bool {
	return slices.ContainsFunc(claims, func(c *claim) bool { return c.owner.id == s })
}

// freeAddresses frees what was given up once no path can lead there, or at once while others share it.
func (p *planner) freeAddresses() {
	for _, h := range p.allocations {
		id := allocationID{h.Address, h.Service}
		if !p.released[id] || p.freed[id] {
			continue
		}
		_, routed := p.routeOf[h.Address]
		switch {
		case p.quarantined:
			p.explain(fsm.TableAllocations, h.Key(), WaitsForQuarantine, quarantineText)
		case routed && !p.unrouted[h.Address] && p.ownersLeft(h.Address) == 1:
			p.explain(fsm.TableAllocations, h.Key(), WaitsForRoute, "given up; it is free once no path to it can be left")
		default:
			p.free(h)
		}
	}
}

// ownersLeft counts who owns an address after what this plan proposed so far.
func (p *planner) ownersLeft(a netip.Addr) int {
	n := 0
	for _, h := range p.ownersOf[a] {
		if !p.freed[allocationID{a, h.Service}] {
			n++
		}
	}
	for _, c := range p.claims[a] {
		owned := slices.ContainsFunc(p.ownersOf[a], func(h *fsm.Allocation) bool { return h.Service == c.owner.id })
		if !owned || p.freed[allocationID{a, c.owner.id}] {
			n++
		}
	}
	return n
}

// deleteServices takes the records of Services that are gone once they own nothing.
func (p *planner) deleteServices() {
	for _, s := range p.services {
		if !s.going {
			continue
		}
		left := slices.ContainsFunc(p.heldBy[s.id], func(h *fsm.Allocation) bool { return !p.freed[allocationID{h.Address, s.id}] })
		switch {
		case left:
			p.explain(fsm.TableServices, string(s.id), WaitsForRoute, "deleted; its record goes once its addresses are free")
		case p.quarantined:
			p.explain(fsm.TableServices, string(s.id), WaitsForQuarantine, quarantineText)
		default:
			p.propose("Service is gone", &fsm.DeleteService{ID: s.id, UID: s.have.UID})
		}
	}
}
