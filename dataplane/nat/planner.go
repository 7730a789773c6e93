// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/flows"
)

// Planner knows what the table shall hold, and tells what a change of the Services means for it, at a cost that
// depends on the Services that changed. It is for one goroutine.
//
// It holds neither Services nor what they add to the table: both are made anew of what the node was told, whenever they are needed.
type Planner struct {
	config   Config
	services map[string]*entry
	owners   owners
	pieces   map[string]int                // users, by name
	loads    map[flows.Endpoint]flows.Load // as counted last; nil if nothing was
	counted  time.Time                     // when that was
	asked    []flows.Endpoint              // that the Services which go by connections ask for; nil if nobody found out yet
	steps    uint32
}

// entry is what is known of a Service.
type entry struct {
	source    desired.Source
	rare      *rare  // nil: nothing
	endpoints uint32 // how many there are
	step      uint32 // that it was wanted in last
}

// rare is what few Services have.
type rare struct {
	skip     map[dialled]bool // what is left out because another one has it, or it gave that up
	zoned    bool             // what it adds depends on the zone
	zone     string           // that it was planned for, if so
	counted  *desired.Service // decoded, if its scheduler goes by connections
	load     *load            // of its endpoints, if so and it is known
	problems []Problem
}

// planned is a Service, what of it is left out because another one has it, and the zone that it was planned for, if
// that makes a difference.
type planned struct {
	service *desired.Service
	skip    map[dialled]bool
	zone    string
	load    *load // of its endpoints, if its scheduler goes by that and it is known
}

// planned decodes an entry.
func (e *entry) planned() planned {
	switch {
	case e.rare == nil:
		return planned{service: e.source.Service()}
	case e.rare.counted != nil:
		return planned{e.rare.counted, e.rare.skip, e.rare.zone, e.rare.load}
	}
	return planned{e.source.Service(), e.rare.skip, e.rare.zone, e.rare.load}
}

// Problem is an address of which something cannot be done.
type Problem struct {
	Address netip.Addr
	Why     string
}

// NewPlanner makes a Planner without Services.
func NewPlanner(c Config) *Planner {
	return &Planner{config: c, services: map[string]*entry{}, owners: newOwners(), pieces: map[string]int{}}
}

// Step takes the Services that there shall be from now on, and returns the Change from before, and the UDP flows that
// may go on of frontends that lost an endpoint, are new or gone. A Service that is the same pointer as before has not changed.
func (p *Planner) Step(services []*desired.Service) (Change, Flows) {
	return p.step(holding(services), newDelta())
}

func holding(services []*desired.Service) iter.Seq[desired.Source] {
	return func(yield func(desired.Source) bool) {
		for _, s := range services {
			if !yield(desired.Held{Is: s}) {
				return
			}
		}
	}
}

func telling(services []*desired.Told) iter.Seq[desired.Source] {
	return func(yield func(desired.Source) bool) {
		for _, s := range services {
			if !yield(s) {
				return
			}
		}
	}
}

// step is Step for Services from anywhere, and counts what changes together with whatever the delta has already.
func (p *Planner) step(services iter.Seq[desired.Source], d delta) (Change, Flows) {
	gone, fresh := p.differing(services)
	contested := p.claim(gone, fresh)
	had, have := Flows{}, Flows{}
	for _, e := range gone {
		was := e.planned()
		p.add(&d, p.part(was), -1)
		had.add(p.config, was)
	}
	take := func(e *entry) {
		now := p.plan(e)
		p.add(&d, p.part(now), +1)
		have.add(p.config, now)
	}
	for _, e := range fresh {
		delete(contested, e.source.Name())
		take(e)
	}
	for name := range contested { // somebody came for what it has, or went
		e := p.services[name]
		was := e.planned()
		p.add(&d, p.part(was), -1)
		had.add(p.config, was)
		take(e)
	}
	return p.settle(d), leftBehind(had, have)
}

// differing takes the Services that there shall be, and tells which of before are gone, and which are new. One that changed is both.
func (p *Planner) differing(services iter.Seq[desired.Source]) (gone, fresh []*entry) {
	p.steps++
	number := 0
	for s := range services {
		was := p.services[s.Name()]
		switch {
		case was != nil && was.step == p.steps:
			continue // the name stands there twice
		case was != nil && was.source == s && (was.rare == nil || !was.rare.zoned || was.rare.zone == p.config.Zone):
			was.step = p.steps
		default:
			if was != nil {
				gone = append(gone, was)
			}
			now := &entry{source: s, step: p.steps}
			if was != nil && was.rare != nil && was.rare.load != nil {
				now.rare = &rare{load: was.rare.load}
			}
			p.services[s.Name()] = now
			fresh = append(fresh, now)
		}
		number++
	}
	if number < len(p.services) {
		for name, e := range p.services {
			if e.step != p.steps {
				gone = append(gone, e)
				delete(p.services, name)
			}
		}
	}
	if len(gone)+len(fresh) > 0 {
		p.asked = nil
	}
	return gone, fresh
}

// claim sees to who has what, and tells who claims something that others came for or gave back.
func (p *Planner) claim(gone, fresh []*entry) map[string]bool {
	contested := map[string]bool{}
	for _, e := range gone {
		s := e.planned().service
		for d := range p.config.claims(s) {
			for _, other := range p.owners.release(d, s.Name) {
				contested[other.name] = true
			}
		}
	}
	for _, e := range fresh {
		for d, own := range p.config.claims(e.source.Service()) {
			for _, other := range p.owners.claim(d, own) {
				contested[other.name] = true
			}
		}
	}
	maps.DeleteFunc(contested, func(name string, _ bool) bool { return p.services[name] == nil })
	return contested
}

// plan finds out what there is to know of a Service, once all claims are made.
func (p *Planner) plan(e *entry) planned {
	s := e.source.Service()
	now := rare{skip: p.skipped(s), zone: p.zoneFor(s), zoned: zoned(s)}
	if counts(s.Scheduler) {
		var was *load
		if e.rare != nil {
			was = e.rare.load
		}
		now.counted, now.load = s, p.loadOf(planned{service: s, zone: now.zone}, was)
	}
	now.problems = p.problemsOf(planned{service: s, skip: now.skip})
	e.endpoints, e.rare = uint32(len(s.Endpoints)), nil
	if len(now.skip) > 0 || now.zoned || now.counted != nil || len(now.problems) > 0 {
		e.rare = &now
	}
	return planned{s, now.skip, now.zone, now.load}
}

// skipped is what a Service does not have, though clients could dial it.
func (p *Planner) skipped(s *desired.Service) (skip map[dialled]bool) {
	for d := range p.config.dialled(s) {
		if d.givenUp || p.owners.owner(d.dialled) != s.Name {
			if skip == nil {
				skip = map[dialled]bool{}
			}
			skip[d.dialled] = true
		}
	}
	return skip
}

// Flows are those of all frontends.
func (p *Planner) Flows() Flows {
	all := Flows{}
	for _, e := range p.services {
		all.add(p.config, e.planned())
	}
	return all
}

// sizes are how many endpoints each Service has.
func (p *Planner) sizes() iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, e := range p.services {
			if !yield(int(e.endpoints)) {
				return
			}
		}
	}
}

func (p *Planner) part(one planned) part {
	return p.config.in(one.zone).part(one.service, one.skip, one.load)
}

// Move says which zone the node is in, as the next Step plans for it. Empty means unknown.
func (p *Planner) Move(zone string) { p.config = p.config.in(zone) }

// zoneFor is the zone to plan a Service for: ours, if any of its endpoints is meant for a zone.
func (p *Planner) zoneFor(s *desired.Service) string {
	if zoned(s) {
		return p.config.Zone
	}
	return ""
}

func zoned(s *desired.Service) bool {
	return slices.ContainsFunc(s.Endpoints, func(e desired.Endpoint) bool {
		return slices.ContainsFunc(e.Hints, func(h desired.Hint) bool { return h.Zone != "" })
	})
}

// delta collects what the changed Services had and have.
type delta struct {
	blind    bool // nobody asks for the Change
	from, to Ruleset
	pieces   map[string]piece
	before   map[string]int // their users
}

func newDelta() delta {
	return delta{from: newRuleset(), to: newRuleset(), pieces: map[string]piece{}, before: map[string]int{}}
}

func (p *Planner) add(d *delta, one part, sign int) {
	switch {
	case d.blind:
	case sign < 0:
		d.from.addPart(one)
	default:
		d.to.addPart(one)
	}
	for _, shared := range one.pieces {
		users := p.pieces[shared.name]
		if _, ok := d.before[shared.name]; !ok && !d.blind {
			d.before[shared.name], d.pieces[shared.name] = users, shared
		}
		if users += sign; users == 0 && d.blind {
			delete(p.pieces, shared.name)
		} else {
			p.pieces[shared.name] = users
		}
	}
}

// settle turns what changed Services had and have into the Change, pieces included whose first user came or whose
// last one went.
func (p *Planner) settle(d delta) Change {
	for name, before := range d.before {
		if before > 0 {
			d.from.addPiece(d.pieces[name])
		}
		if p.pieces[name] > 0 {
			d.to.addPiece(d.pieces[name])
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
	for _, e := range p.services {
		one := p.part(e.planned())
		r.addPart(one)
		for _, shared := range one.pieces {
			r.addPiece(shared)
		}
	}
	return r
}

// Problems lists what cannot be done of what is wanted, in order of address.
func (p *Planner) Problems() []Problem {
	var out []Problem
	for _, e := range p.services {
		if e.rare != nil {
			out = append(out, e.rare.problems...)
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

// problemsOf lists what cannot be done of one Service.
func (p *Planner) problemsOf(one planned) (out []Problem) {
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
	return out
}

func (p *Planner) problem(one planned, d dialled) string {
	switch {
	case one.skip[d]:
		return fmt.Sprintf("translate %s for %s: it is %s's already", d, one.service.Name, p.owners.owner(d))
	case d.port.Protocol == protocolSCTP && p.config.WithoutSCTP:
		return fmt.Sprintf("translate %s for %s: this kernel does not track SCTP (needs CONFIG_NF_CT_PROTO_SCTP)", d, one.service.Name)
	case !p.config.translates(d.port.Protocol):
		return fmt.Sprintf("translate %s for %s: only TCP, UDP and SCTP can be", d, one.service.Name)
	}
	return ""
}
