// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// Index keeps from plan to plan what plans look up, so that one costs what changed since the one before. Always, what it
// plans is what Plan gives. The zero value has seen nothing; one goroutine uses it, with views of one State.
type Index struct {
	record *fsm.View
	// edition counts the views that were followed.
	edition uint64

	named   map[fsm.BindingID]*bound
	unasked map[fsm.BindingID]*bound // those of named whose drivers were asked for nothing yet
	owners  map[string]*holding
	used    map[fsm.BalancerID]int // how many bindings a load balancer has
	spots   map[spot]bounds        // the pods and nodes that are registered at a place
	slots   int                    // in use or free
	free    []int

	// lines are what the newest plan notes of bindings, by their slots; those of earlier plans mean nothing.
	lines []line
	plans uint64

	settled settlement
	written writings
}

// bound is a binding of the record.
type bound struct {
	*fsm.Binding
	id   world.ID
	slot int // its place among the lines of a plan
}

// bounds are those that share a key: one, nearly always. They are in reverse order of their names.
type bounds []*bound

// holding is what the record has of an owner.
type holding struct {
	of                map[backendKey]bounds
	count, registered int
	edition           uint64 // of the index when it changed last
}

// Plan gives what the function Plan gives.
func (x *Index) Plan(in Input) Result {
	x.follow(in.Record)
	return plan(in, x)
}

// follow brings the index up to a view.
func (x *Index) follow(record *fsm.View) {
	if x.record == nil {
		x.begin()
	}
	x.take(record)
	if len(x.named) != record.Count(fsm.TableBindings) || x.slots > 2*len(x.named)+spareSlots { // it is wrong, or nearly empty
		x.begin()
		x.take(record)
	}
}

// spareSlots is how many slots may be free before they are worth the making of another index.
const spareSlots = 1024

// begin forgets everything.
func (x *Index) begin() {
	*x = Index{named: map[fsm.BindingID]*bound{}, unasked: map[fsm.BindingID]*bound{}, owners: map[string]*holding{}, used: map[fsm.BalancerID]int{}, spots: map[spot]bounds{}}
}

func (x *Index) take(record *fsm.View) {
	x.edition++
	fsm.Changes(x.record, record, fsm.TableBindings, func(before, after *fsm.Binding) {
		if before != nil && after != nil && sameKeys(before, after) && x.replace(before, after) {
			return
		}
		if before != nil {
			x.remove(before)
		}
		if after != nil {
			x.add(after)
		}
	})
	x.record = record
}

// sameKeys tells whether a binding is looked up as it was before.
func sameKeys(a, b *fsm.Binding) bool {
	return a.ID == b.ID && a.Owner == b.Owner && a.Balancer == b.Balancer && a.Backend == b.Backend &&
		keyOf(a.Backend, a.Address) == keyOf(b.Backend, b.Address)
}

// replace takes in what became of a binding whose keys are as they were.
func (x *Index) replace(before, after *fsm.Binding) bool {
	b := x.named[after.ID]
	if b == nil || b.Binding != before {
		return false
	}
	h := x.owners[after.Owner]
	h.edition = x.edition
	h.registered += registered(after) - registered(before)
	b.Binding = after
	x.noteAsked(b)
	return true
}

func (x *Index) noteAsked(b *bound) {
	if b.Asked {
		delete(x.unasked, b.ID)
	} else {
		x.unasked[b.ID] = b
	}
}

func registered(b *fsm.Binding) int {
	if b.Registered {
		return 1
	}
	return 0
}

func (x *Index) add(binding *fsm.Binding) {
	b := &bound{Binding: binding, id: splitID(string(binding.ID)), slot: x.seat()}
	x.named[b.ID] = b
	x.noteAsked(b)
	x.used[b.Balancer]++
	h := x.owners[b.Owner]
	if h == nil {
		h = &holding{of: map[backendKey]bounds{}}
		x.owners[b.Owner] = h
	}
	h.edition = x.edition
	h.count++
	h.registered += registered(binding)
	enter(h.of, keyOf(b.Backend, b.Address), b)
	if s, ok := spotOf(b.Balancer, b.Backend); ok {
		enter(x.spots, s, b)
	}
}

func (x *Index) seat() int {
	if n := len(x.free); n > 0 {
		slot := x.free[n-1]
		x.free = x.free[:n-1]
		return slot
	}
	x.slots++
	return x.slots - 1
}

func (x *Index) remove(binding *fsm.Binding) {
	b := x.named[binding.ID]
	delete(x.named, b.ID)
	delete(x.unasked, b.ID)
	x.free = append(x.free, b.slot)
	if x.used[b.Balancer]--; x.used[b.Balancer] == 0 {
		delete(x.used, b.Balancer)
	}
	h := x.owners[b.Owner]
	h.edition = x.edition
	h.count--
	h.registered -= registered(binding)
	leave(h.of, keyOf(b.Backend, b.Address), b)
	if h.count == 0 {
		delete(x.owners, b.Owner)
	}
	if s, ok := spotOf(b.Balancer, b.Backend); ok {
		leave(x.spots, s, b)
	}
}

func enter[K comparable](m map[K]bounds, key K, b *bound) {
	at, _ := slices.BinarySearchFunc(m[key], b, later)
	m[key] = slices.Insert(m[key], at, b)
}

func leave[K comparable](m map[K]bounds, key K, b *bound) {
	at, _ := slices.BinarySearchFunc(m[key], b, later)
	if m[key] = slices.Delete(m[key], at, at+1); len(m[key]) == 0 {
		delete(m, key)
	}
}

func later(a, b *bound) int { return strings.Compare(string(b.ID), string(a.ID)) }
