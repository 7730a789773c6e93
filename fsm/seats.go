// SPDX-License-Identifier: Apache-2.0

package fsm

import "hash/maphash"

// seats lead from keys to the slots of records, and have none of the keys: a slot is looked at to know whether it is the one. It is a hash
// table with linear probing, of 8 bytes a cell, which a map of strings needs 33 for.
type seats struct {
	seed  maphash.Seed
	cells []cell // a power of two, or none
	used  int
}

// cell is nothing if it is zero.
type cell struct {
	hash uint32
	next uint32 // the slot, counted from 1
}

func newSeats() *seats { return &seats{seed: maphash.MakeSeed()} }

func (s *seats) hash(key string) uint32 { return uint32(maphash.String(s.seed, key)) }

// find gives the slot of a key. is tells whether a slot is its.
func (s *seats) find(key string, is func(slot uint32) bool) (slot uint32, found bool) {
	i, found := s.search(s.hash(key), is)
	if !found {
		return 0, false
	}
	return s.cells[i].next - 1, true
}

// search gives the cell of a slot, or the free one where the search ended.
func (s *seats) search(hash uint32, is func(slot uint32) bool) (at int, found bool) {
	if len(s.cells) == 0 {
		return 0, false
	}
	for i := s.home(hash); ; i = s.after(i) {
		c := s.cells[i]
		if c.next == 0 {
			return i, false
		}
		if c.hash == hash && is(c.next-1) {
			return i, true
		}
	}
}

// put adds a key that has no slot yet.
func (s *seats) put(key string, slot uint32) {
	if s.used*5 >= len(s.cells)*4 {
		s.grow()
	}
	s.used++
	s.enter(cell{s.hash(key), slot + 1})
}

func (s *seats) enter(c cell) {
	i, _ := s.search(c.hash, func(uint32) bool { return false })
	s.cells[i] = c
}

func (s *seats) grow() {
	before := s.cells
	s.cells = make([]cell, max(8, 2*len(before)))
	for _, c := range before {
		if c.next != 0 {
			s.enter(c)
		}
	}
}

// remove forgets a key, and moves up those that stand further from their home for its sake.
func (s *seats) remove(key string, is func(slot uint32) bool) {
	gap, found := s.search(s.hash(key), is)
	if !found {
		return
	}
	s.used--
	for i := s.after(gap); s.cells[i].next != 0; i = s.after(i) {
		if s.from(s.home(s.cells[i].hash), i) >= s.from(gap, i) {
			s.cells[gap], gap = s.cells[i], i
		}
	}
	s.cells[gap] = cell{}
}

func (s *seats) home(hash uint32) int { return int(hash) & (len(s.cells) - 1) }

func (s *seats) after(i int) int { return (i + 1) & (len(s.cells) - 1) }

// from is how far on a cell is, counted from another one.
func (s *seats) from(start, i int) int { return (i - start) & (len(s.cells) - 1) }
