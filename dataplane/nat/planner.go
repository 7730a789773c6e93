// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/flows"
)

// Planner knows what the table shall hold, and tells what a change of the Services means for it, at a cost that
// depends on the Services that changed. It is for one goroutine.
type Planner struct {
	config   Config
	services map[string]planned
	owners   map[dialled]string // Services that have a frontend, by what is dialled
	pieces   map[string]*counted
	loads    map[flows.Endpoint]flows.Load // as counted last; nil if nothing was
}

// planned is a Service, what of it is left out because another one has it, and the zone that it was planned for, if
// that makes a difference.
type planned struct {
	service *desired.Service
	skip    map[dialled]bool
	zone    string
	load    *load // of its endpoints, if its scheduler goes by that and it is known
}

type counted struct {
	piece
	users int
}

// Problem is an address of which something cannot be done.
type Problem struct {
	Address netip.Addr
	Why     string
}

// NewPlanner makes a Planner without Services.
func NewPlanner(c Config) *Planner {
	return &Planner{config: c, services: map[string]planned{}, owners: map[dialled]string{}, pieces: map[string]*counted{}}
}

// Step takes the Services that there shall be from now on, and returns the Change from before, and the UDP flows that
// may go on of frontends that lost an endpoint, are new or gone. A Service that is the same pointer as before has not changed.
func (p *Planner) Step(services []*desired.Service) (Change, Flows) {
	next := p.next(services)
	d := delta{from: newRuleset(), to: newRuleset(), before: map[string]int{}}
	had, have := Flows{}, Flows{}
	for name, was := range p.services {
		if now, ok := next[name]; !ok || !was.same(now) {
			p.add(&d, p.part(was), -1)
			had.add(p.config, was)
		}
	}
	for name, now := range next {
		if was, ok := p.services[name]; !ok || !was.same(now) {
			p.add(&d, p.part(now), +1)
			have.add(p.config, now)
		}
	}
	p.services = next
	return p.settle(d), leftBehind(had, have)
}

// Flows are those of all frontends.
func (p *Planner) Flows() Flows {
	all := Flows{}
	for _, one := range p.services {
		all.add(p.config, one)
	}
	return all
}

func (a planned) same(b planned) bool {
	return a.service == b.service && a.zone == b.zone && a.load == b.load && maps.Equal(a.skip, b.skip)
}

func (p *Planner) part(one planned) part {
	return p.config.in(one.zone).part(one.service, one.skip, one.load)
}

// Move says which zone the node is in, as the next Step plans for it. Empty means unknown.
func (p *Planner) Move(zone string) { p.config = p.config.in(zone) }

// zoneFor is the zone to plan a Service for: ours, if any of its endpoints is meant for a zone.
func (p *Planner) zoneFor(s *desired.Service) string {
	for i := range s.Endpoints {
		if slices.ContainsFunc(s.Endpoints[i].Hints, func(h desired.Hint) bool { return h.Zone != "" }) {
			return p.config.Zone
		}
	}
	return ""
}

// next finds out who has what. The record gives no frontend to two Services; should it happen nevertheless, the first
// by name has it.
func (p *Planner) next(services []*desired.Service) map[string]planned {
	next := make(map[string]planned, len(services))
	clear(p.owners)
	sorted := slices.SortedFunc(slices.Values(services), func(a, b *desired.Service) int { return strings.Compare(a.Name, b.Name) })
	for _, s := range sorted {
		one := planned{service: s, zone: p.zoneFor(s), load: p.loadOf(s, p.services[s.Name].load)}
		for _, a := range s.Addresses {
			for _, front := range s.Frontends {
				p.claim(&one, dialled{a.Unmap(), front.Port}, slices.Contains(front.NotOn, a))
			}
		}
		for _, front := range s.Frontends {
			for _, f := range []family{ipv4, ipv6} {
				for _, d := range p.config.nodePort(s, front, f, nil) {
					p.claim(&one, d, false)
				}
			}
		}
		next[s.Name] = one
	}
	for _, s := range sorted { // after all that is ours
		one := next[s.Name]
		for _, f := range []family{ipv4, ipv6} {
			for _, a := range p.config.byOthers(s, f) {
				for _, front := range s.Frontends {
					if !slices.Contains(s.Addresses, a) {
						p.claim(&one, dialled{a, front.Port}, false)
					}
				}
			}
		}
		next[s.Name] = one
	}
	return next
}

// claim gives a Service what clients dial, unless it gave that up or another one has it.
func (p *Planner) claim(one *planned, d dialled, givenUp bool) {
	owner, taken := p.owners[d]
	switch {
	case givenUp, taken && owner != one.service.Name:
		if one.skip == nil {
			one.skip = map[dialled]bool{}
		}
		one.skip[d] = true
	case !taken:
		p.owners[d] = one.service.Name
	}
}

// delta collects what the changed Services had and have.
type delta struct {
	from, to Ruleset
	before   map[string]int // their users
}

func (p *Planner) add(d *delta, one part, sign int) {
	if sign < 0 {
		d.from.addPart(one)
	} else {
		d.to.addPart(one)
	}
	for _, shared := range one.pieces {
		c := p.pieces[shared.name]
		if c == nil {
			c = &counted{piece: shared}
			p.pieces[shared.name] = c
		}
		if _, ok := d.before[shared.name]; !ok {
			d.before[shared.name] = c.users
		}
		c.users += sign
	}
}

// settle turns what changed Services had and have into the Change, pieces included whose first user came or whose
// last one went.
func (p *Planner) settle(d delta) Change {
	for name, before := range d.before {
		c := p.pieces[name]
		if before > 0 {
			d.from.addPiece(c.piece)
		}
		if c.users > 0 {
			d.to.addPiece(c.piece)
		} else {
			delete(p.pieces, name)
		}
	}
	return Diff(d.from, d.to)
}

func (r Ruleset) addPart(p part) {
	r.addPiece(piece{sets: p.sets, chains: p.chains, elements: p.elements})
}

func (r Ruleset) addPiece(p piece) {
	for _, s := range p.sets {
		r.Sets[s.Name] = s
	}
	for _, c := range p.chains {
		r.add(c)
	}
	r.put(p.elements)
}

// Ruleset is all that the table shall hold.
func (p *Planner) Ruleset() Ruleset {
	r := p.config.layout()
	for _, one := range p.services {
		r.addPart(p.part(one))
	}
	for _, c := range p.pieces {
		r.addPiece(c.piece)
	}
	return r
}

// Problems lists what cannot be done of what is wanted, in order of address.
func (p *Planner) Problems() []Problem {
	var out []Problem
	for _, one := range p.services {
		for _, a := range one.service.Addresses {
			for _, front := range one.service.Frontends {
				if slices.Contains(front.NotOn, a) {
					continue // nobody asked for it
				}
				if why := p.problem(one, dialled{a.Unmap(), front.Port}); why != "" {
					out = append(out, Problem{a.Unmap(), why})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b Problem) int {
		if c := a.Address.Compare(b.Address); c != 0 {
			return c
		}
		return strings.Compare(a.Why, b.Why)
	})
	return slices.Compact(out)
}

func (p *Planner) problem(one planned, d dialled) string {
	switch {
	case one.skip[d]:
		return fmt.Sprintf("translate %s for %s: it is %s's already", d, one.service.Name, p.owners[d])
	case d.port.Protocol == protocolSCTP && p.config.WithoutSCTP:
		return fmt.Sprintf("translate %s for %s: this kernel does not track SCTP (needs CONFIG_NF_CT_PROTO_SCTP)", d, one.service.Name)
	case !p.config.translates(d.port.Protocol):
		return fmt.Sprintf("translate %s for %s: only TCP, UDP and SCTP can be", d, one.service.Name)
	}
	return ""
}
