// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
)

// Capacity is how many rows the tables have room for.
type Capacity struct{ Places, Slots, Nodes int }

// Want is what shall be.
type Want struct {
	Rules []*Rule
	Nodes []netip.Addr // addresses of the cluster's nodes, at which node ports are served
}

// Problem is a rule that is not there, or not whole, and why.
type Problem struct {
	Rule *Rule
	Why  string
}

// Planner turns rules into rows, and knows which are there. It is not safe for use by several at once.
type Planner struct {
	room     Capacity
	have     Rows             // without slots, once they are those of sets
	slots    int              // how many are there
	rules    map[uint32]*Rule // as wanted
	there    map[uint32]*Rule // what of them is in the tables: another one where the room was too small
	claims   map[Place][]claim
	leaving  map[Place]bool   // that have a row, and no claim
	sets     map[content]*set // by content
	setOf    map[*Front]*set
	numbers  map[uint32]bool // of sets
	last     uint32
	problems map[uint32]Problem
	found    bool // rows were adopted, and not yet looked through for what is nobody's
}

// NewPlanner starts from empty tables.
func NewPlanner(room Capacity) *Planner {
	p := &Planner{
		room: room, rules: map[uint32]*Rule{}, there: map[uint32]*Rule{}, claims: map[Place][]claim{}, leaving: map[Place]bool{},
		setOf: map[*Front]*set{}, problems: map[uint32]Problem{},
	}
	p.Adopt(NewRows())
	return p
}

// Adopt says what the tables hold: before the first Step, what an earlier agent left there, and whenever what was thought
// is in doubt. All that it was told to want is forgotten: the Step that follows leads from the rows to what is wanted
// then, and keeps every set that is whole and wanted.
func (p *Planner) Adopt(rows Rows) {
	p.have, p.slots, p.found = rows, len(rows.Slots), true
	clear(p.rules)
	clear(p.there)
	clear(p.claims)
	clear(p.setOf)
	clear(p.problems)
	p.sets, p.numbers = map[content]*set{}, map[uint32]bool{}
	clear(p.leaving)
	for at := range rows.Places {
		p.leaving[at] = true
	}
	found := map[uint32]*set{}
	for _, k := range slices.SortedFunc(maps.Keys(rows.Slots), SlotKey.compare) {
		p.numbers[k.Set] = true
		s := found[k.Set]
		if s == nil {
			s = &set{id: k.Set}
			found[k.Set] = s
		}
		slot := rows.Slots[k]
		switch {
		case k.Index&member != 0:
			s.ids = append(s.ids, slot)
		case int(k.Index) == len(s.slots):
			s.slots = append(s.slots, slot)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		if s := found[id]; s.whole() {
			p.sets[s.content()] = s
		}
	}
}

// whole is whether a set that was found can be one that was written to its end. One that lacks its last turns only is
// the set of fewer backends, which is as good.
func (s *set) whole() bool {
	ids := map[Slot]bool{}
	for _, slot := range s.ids {
		ids[slot] = true
	}
	turns := map[Slot]bool{}
	for _, slot := range s.slots {
		turns[slot] = true
	}
	return len(s.slots) > 0 && (len(ids) == 0 || maps.Equal(ids, turns))
}

// Rows are what the tables hold once all changes so far are carried out, slots made anew for who asks.
func (p *Planner) Rows() Rows {
	rows := p.have
	rows.Slots = make(map[SlotKey]Slot, p.slots)
	maps.Copy(rows.Slots, p.have.Slots)
	for _, s := range p.sets {
		s.each(func(k SlotKey, slot Slot) { rows.Slots[k] = slot })
	}
	return rows
}

// Taken is how many rows the tables hold once all changes so far are carried out.
func (p *Planner) Taken() Capacity {
	return Capacity{Places: len(p.have.Places), Slots: p.slots, Nodes: len(p.have.Nodes)}
}

// Problems tells of the rules that are not there as they should be, by ID.
func (p *Planner) Problems() []Problem {
	var out []Problem
	for _, id := range slices.Sorted(maps.Keys(p.problems)) {
		out = append(out, p.problems[id])
	}
	return out
}

// Step gives the changes that lead to what is wanted, to be carried out one after the other. There are several where the
// room does not suffice for all that is new beside all that it replaces.
func (p *Planner) Step(want Want) []Change {
	s := &step{Planner: p, change: newChange(), touched: map[Place]bool{}}
	s.nodes(want.Nodes)
	removed, changed, fresh := p.differing(want.Rules)
	for _, id := range removed {
		s.replace(id, nil)
	}
	// What is in the tables comes before what is not: new ones shall not take its room.
	for _, r := range append(changed, fresh...) {
		s.replace(r.ID, r)
	}
	s.flush()
	s.sweep()
	p.have.Slots = nil // nobody's are gone, and sets have all others
	return s.done
}

// differing tells which rules are gone, which are others than those that are in the tables, and which are in none, each in the
// order of their IDs. It costs a look at each rule, and more only for those that differ.
func (p *Planner) differing(rules []*Rule) (removed []uint32, changed, fresh []*Rule) {
	known := 0
	for _, r := range rules {
		was := p.rules[r.ID]
		if was != nil {
			known++
		}
		switch {
		case was == r && p.problems[r.ID].Rule == nil:
		case p.there[r.ID] != nil:
			changed = append(changed, r)
		default:
			fresh = append(fresh, r)
		}
	}
	if known < len(p.rules) {
		left := maps.Clone(p.rules)
		for _, r := range rules {
			delete(left, r.ID)
		}
		removed = slices.Sorted(maps.Keys(left))
	}
	byID := func(a, b *Rule) int { return cmp.Compare(a.ID, b.ID) }
	slices.SortFunc(changed, byID)
	slices.SortFunc(fresh, byID)
	return removed, changed, fresh
}
