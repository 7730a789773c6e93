// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"bytes"
	"iter"
	"maps"
	"net/netip"
	"slices"
)

// piece is what there may be one of for each service address: a rule, a route, an element of a set.
type piece[T any] interface {
	comparable
	// split takes the address out that the piece is for, and puts that of nobody in its place; ok is false, and nothing
	// changed, if it is for none.
	split() (shape T, address netip.Addr, ok bool)
	// of puts an address in the place of that of nobody.
	of(netip.Addr) T
}

// nobody stands where an address was taken out; it is of the same family.
func nobody(a netip.Addr) netip.Addr {
	if a.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// Lot is a set of rules, routes or elements. A node has tens of thousands that differ in their address alone: what they
// share is there once. The zero value is an empty one; a copy is the same Lot.
type Lot[T piece[T]] struct{ by map[T]*addresses }

// addresses are those of one shape, which are of one family; both maps are nil for what is for no address.
type addresses struct {
	v4 map[[4]byte]struct{}
	v6 map[[16]byte]struct{}
}

func (s *addresses) add(a netip.Addr) {
	if a.Is4() {
		if s.v4 == nil {
			s.v4 = map[[4]byte]struct{}{}
		}
		s.v4[a.As4()] = struct{}{}
		return
	}
	if s.v6 == nil {
		s.v6 = map[[16]byte]struct{}{}
	}
	s.v6[a.As16()] = struct{}{}
}

func (s *addresses) has(a netip.Addr) (there bool) {
	if a.Is4() {
		_, there = s.v4[a.As4()]
	} else {
		_, there = s.v6[a.As16()]
	}
	return there
}

func (s *addresses) remove(a netip.Addr) (empty bool) {
	if a.Is4() {
		delete(s.v4, a.As4())
	} else {
		delete(s.v6, a.As16())
	}
	return len(s.v4)+len(s.v6) == 0
}

func (s *addresses) all() iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for b := range s.v4 {
			if !yield(netip.AddrFrom4(b)) {
				return
			}
		}
		for b := range s.v6 {
			if !yield(netip.AddrFrom16(b)) {
				return
			}
		}
	}
}

// Has tells whether a piece is there.
func (l Lot[T]) Has(p T) bool {
	shape, a, split := p.split()
	s, there := l.by[shape]
	return there && (!split || s.has(a))
}

// Add puts a piece in; it may be there already.
func (l *Lot[T]) Add(p T) {
	shape, a, split := p.split()
	s, there := l.by[shape]
	if !there {
		s = &addresses{}
		l.set(shape, s)
	}
	if split {
		s.add(a)
	}
}

// Remove takes a piece out, if it is there.
func (l *Lot[T]) Remove(p T) {
	shape, a, split := p.split()
	if s, there := l.by[shape]; there && (!split || s.remove(a)) {
		delete(l.by, shape)
	}
}

// Len is the number of pieces.
func (l Lot[T]) Len() (n int) {
	for _, s := range l.by {
		n += max(1, len(s.v4)+len(s.v6))
	}
	return n
}

// All are the pieces, in no order.
func (l Lot[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for shape, s := range l.by {
			if s.v4 == nil && s.v6 == nil {
				if !yield(shape) {
					return
				}
				continue
			}
			for a := range s.all() {
				if !yield(shape.of(a)) {
					return
				}
			}
		}
	}
}

// put adds all of another one.
func (l *Lot[T]) put(o Lot[T]) {
	for p := range o.All() {
		l.Add(p)
	}
}

// without is what is in l and not in o.
func (l Lot[T]) without(o Lot[T]) (out Lot[T]) {
	for shape, s := range l.by {
		other, there := o.by[shape]
		if s.v4 == nil && s.v6 == nil {
			if !there {
				out.Add(shape)
			}
			continue
		}
		left := &addresses{}
		for a := range s.all() {
			if !there || !other.has(a) {
				left.add(a)
			}
		}
		if left.v4 != nil || left.v6 != nil {
			out.set(shape, left)
		}
	}
	return out
}

func (l *Lot[T]) set(shape T, s *addresses) {
	if l.by == nil {
		l.by = map[T]*addresses{}
	}
	l.by[shape] = s
}

// List is a Lot in order. It does not change, and costs little more than the addresses.
type List[T piece[T]] struct {
	shapes []T
	places []listPlace
}

// listPlace is a shape and what its address is, in bytes; those of IPv4 come first.
type listPlace struct {
	shape   uint32
	address [16]byte
}

// sorted lists a lot in an order in which pieces that differ in their address alone follow these.
func (l Lot[T]) sorted(compare func(a, b T) int) List[T] {
	out := List[T]{shapes: slices.Collect(maps.Keys(l.by)), places: make([]listPlace, 0, l.Len())}
	for i, shape := range out.shapes {
		s, p := l.by[shape], listPlace{shape: uint32(i)}
		if s.v4 == nil && s.v6 == nil {
			out.places = append(out.places, p)
		}
		for b := range s.v4 {
			copy(p.address[:], b[:])
			out.places = append(out.places, p)
		}
		for b := range s.v6 {
			p.address = b
			out.places = append(out.places, p)
		}
	}
	slices.SortFunc(out.places, func(a, b listPlace) int {
		if a.shape == b.shape {
			return bytes.Compare(a.address[:], b.address[:])
		}
		return compare(out.at(a), out.at(b))
	})
	return out
}

func (l List[T]) at(p listPlace) T {
	shape := l.shapes[p.shape]
	_, none, split := shape.split()
	switch {
	case !split:
		return shape
	case none.Is4():
		return shape.of(netip.AddrFrom4([4]byte(p.address[:4])))
	}
	return shape.of(netip.AddrFrom16(p.address))
}

// Len is the number of pieces.
func (l List[T]) Len() int { return len(l.places) }

// All are the pieces, in order.
func (l List[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, p := range l.places {
			if !yield(l.at(p)) {
				return
			}
		}
	}
}

// only is the list without what a test refuses.
func (l List[T]) only(test func(T) bool) List[T] {
	return List[T]{l.shapes, slices.DeleteFunc(slices.Clone(l.places), func(p listPlace) bool { return !test(l.at(p)) })}
}
