// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
)

// step is one on its way.
type step struct {
	*Planner
	done    []Change
	change  Change
	touched map[Place]bool
	idle    []*set // that nobody uses any more
	written int    // slots of the change
}

// nodes sees to the addresses of nodes.
func (s *step) nodes(want []netip.Addr) {
	nodes := map[netip.Addr]bool{}
	for _, a := range want {
		if a = a.Unmap(); len(nodes) < s.room.Nodes || s.have.Nodes[a] {
			nodes[a] = true
		}
	}
	differs := map[netip.Addr]bool{}
	for a := range nodes {
		if !s.have.Nodes[a] {
			s.change.PutNodes = append(s.change.PutNodes, a)
			differs[a] = true
		}
	}
	for a := range s.have.Nodes {
		if !nodes[a] {
			s.change.DropNodes = append(s.change.DropNodes, a)
			differs[a] = true
		}
	}
	s.have.Nodes = nodes
	if len(differs) == 0 {
		return
	}
	for at := range s.claims {
		if differs[at.Address] {
			s.touched[at] = true
		}
	}
}

// replace puts a rule in the place of the one of its ID; nil removes it.
func (s *step) replace(id uint32, r *Rule) {
	old := s.there[id]
	if r == nil {
		delete(s.rules, id)
	} else {
		s.rules[id] = r
	}
	delete(s.problems, id)
	fits := r
	if r != nil && !s.hasRoom(r) {
		if s.flush(); !s.hasRoom(r) {
			fits, old = s.squeeze(r, old)
		}
	}
	if fits != nil {
		s.acquire(fits)
		s.there[id] = fits
	} else {
		delete(s.there, id)
	}
	if old != nil {
		s.release(old)
	}
}

// squeeze gives what of a rule is had without the room for all of it, and what of the old one is there still.
func (s *step) squeeze(r, old *Rule) (fits, left *Rule) {
	s.problems[r.ID] = Problem{r, fmt.Sprintf("the tables are full: %d of %d places, %d of %d slots are taken; raise sock.places or sock.slots in agent.yaml",
		len(s.have.Places), s.room.Places, s.slots, s.room.Slots)}
	if old == nil {
		return nil, nil
	}
	fits = reduced(r, old)
	if !s.hasRoom(fits) {
		// No room to have both for a moment: for that moment the rule is not there, rather than lead to a backend that left.
		s.release(old)
		s.flush()
		if old = nil; !s.hasRoom(fits) {
			fits = nil // it has the same endpoints, and asks for more of each
		}
	}
	return fits, old
}

// hasRoom is whether the rows of a rule fit beside all that are there and on their way. Rows that go with this change are
// still there while what is new comes.
func (s *step) hasRoom(r *Rule) bool {
	slots, places := s.slots+s.written, len(s.claims)+len(s.leaving)
	seen := map[Place]bool{}
	for i := range r.Fronts {
		f := &r.Fronts[i]
		if len(f.Backends) > 0 {
			if laid := setOf(f); s.sets[laid.content()] == nil {
				slots += laid.size()
			}
		}
		for _, at := range f.At {
			if here := at.place(f.Protocol); len(s.claims[here]) == 0 && !s.leaving[here] && !seen[here] {
				seen[here] = true
				places++
			}
		}
	}
	return slots <= s.room.Slots && places <= s.room.Places
}

// reduced is what of a rule needs no more room than an earlier one: the places and the backends of that. A backend that
// left is gone in any case.
func reduced(r, old *Rule) *Rule {
	type dialled struct {
		protocol uint8
		at       netip.AddrPort
	}
	places, backends := map[Place]bool{}, map[dialled]uint16{}
	for _, f := range old.Fronts {
		for _, at := range f.At {
			places[at.place(f.Protocol)] = true
		}
		for _, b := range f.Backends {
			backends[dialled{f.Protocol, b.At}] = b.Weight
		}
	}
	less := *r
	less.Fronts = nil
	for _, f := range r.Fronts {
		f.At = slices.DeleteFunc(slices.Clone(f.At), func(at At) bool { return !places[at.place(f.Protocol)] })
		f.Backends = slices.DeleteFunc(slices.Clone(f.Backends), func(b Backend) bool { _, was := backends[dialled{f.Protocol, b.At}]; return !was })
		if len(f.At) > 0 {
			less.Fronts = append(less.Fronts, f)
		}
	}
	return &less
}

// acquire makes a rule's sets, and its claims.
func (s *step) acquire(r *Rule) {
	for i := range r.Fronts {
		f := &r.Fronts[i]
		if len(f.Backends) > 0 {
			s.setOf[f] = s.use(setOf(f))
		}
		for _, at := range f.At {
			here := at.place(f.Protocol)
			s.claims[here] = append(s.claims[here], claim{r, f, r.kindAt(here), at.Mode})
			delete(s.leaving, here)
			s.touch(here)
		}
	}
}

// use gives the set of this content, which is written if there was none.
func (s *step) use(laid *set) *set {
	content := laid.content()
	if known := s.sets[content]; known != nil {
		known.users++
		return known
	}
	for laid.id == 0 {
		if s.last++; s.last != 0 && !s.numbers[s.last] {
			laid.id = s.last
		}
	}
	laid.users = 1
	s.numbers[laid.id], s.sets[content] = true, laid
	laid.each(func(k SlotKey, slot Slot) { s.change.PutSlots[k] = slot })
	s.written += laid.size()
	return laid
}

// release undoes acquire.
func (s *step) release(r *Rule) {
	for i := range r.Fronts {
		f := &r.Fronts[i]
		if used := s.setOf[f]; used != nil {
			delete(s.setOf, f)
			if used.users--; used.users == 0 {
				s.idle = append(s.idle, used)
			}
		}
		for _, at := range f.At {
			here := at.place(f.Protocol)
			left := slices.DeleteFunc(s.claims[here], func(c claim) bool { return c.front == f })
			if s.claims[here] = left; len(left) == 0 {
				delete(s.claims, here)
				if _, row := s.have.Places[here]; row {
					s.leaving[here] = true
				}
			}
			s.touch(here)
		}
	}
}

// touch has a place's row made anew, and those of the same port at nodes if it is of a node port.
func (s *step) touch(at Place) {
	s.touched[at] = true
	if at.Address != AnyNode4 && at.Address != AnyNode6 {
		return
	}
	for a := range s.have.Nodes {
		if here := (Place{a, at.Port, at.Protocol}); len(s.claims[here]) > 0 {
			s.touched[here] = true
		}
	}
}

// flush ends a change: rows of what was touched, and what goes.
func (s *step) flush() {
	for at := range s.touched {
		s.compare(at)
	}
	for _, old := range s.idle {
		if old.users > 0 {
			continue // somebody else came for it
		}
		delete(s.sets, old.content())
		delete(s.numbers, old.id)
		old.each(func(k SlotKey, _ Slot) { s.change.DropSlots = append(s.change.DropSlots, k) })
	}
	s.idle, s.touched, s.written = nil, map[Place]bool{}, 0
	s.emit()
}

func (s *step) emit() {
	if s.change.Empty() {
		return
	}
	s.change.sort()
	s.slots += len(s.change.PutSlots) - len(s.change.DropSlots)
	s.have.Apply(s.change)
	s.done = append(s.done, s.change)
	s.change = newChange()
}

// compare sees to the row of one place.
func (s *step) compare(at Place) {
	claims := s.claims[at]
	if s.have.Nodes[at.Address] && len(claims) > 0 {
		claims = append(slices.Clone(claims), s.claims[at.nodePort()]...)
	}
	row, there := s.compose(best(claims))
	have, was := s.have.Places[at]
	switch {
	case there && (!was || have != row):
		s.change.PutPlaces[at] = row
	case !there && was:
		s.change.DropPlaces = append(s.change.DropPlaces, at)
		delete(s.leaving, at)
	}
	limited := there && row.First.Limited
	switch {
	case limited && !s.have.Windows[at]:
		s.change.PutWindows = append(s.change.PutWindows, at)
	case !limited && s.have.Windows[at]:
		s.change.DropWindows = append(s.change.DropWindows, at)
	}
}

// sweep removes what was found in the tables and is nobody's.
func (s *step) sweep() {
	if !s.found {
		return
	}
	s.found = false
	s.change.DropPlaces = slices.Collect(maps.Keys(s.leaving))
	clear(s.leaving)
	for at := range s.have.Windows {
		if len(s.claims[at]) == 0 {
			s.change.DropWindows = append(s.change.DropWindows, at)
		}
	}
	maps.DeleteFunc(s.sets, func(_ content, known *set) bool { return known.users == 0 })
	s.sweepSlots()
	s.emit()
}

func (s *step) sweepSlots() {
	used := map[SlotKey]bool{}
	s.numbers = map[uint32]bool{}
	for _, known := range s.sets {
		s.numbers[known.id] = true
		known.each(func(k SlotKey, _ Slot) { used[k] = true })
	}
	for k := range s.have.Slots {
		if !used[k] {
			s.change.DropSlots = append(s.change.DropSlots, k)
		}
	}
}
