// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// Seats lead from each key to its slot, and from no other, also where very many come together.
func TestPropertySeatsLeadToSlots(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		s := newSeats()
		var names []string // by slot
		model := map[string]uint32{}
		for range rapid.IntRange(0, 400).Draw(t, "steps") {
			key := strconv.Itoa(rapid.IntRange(0, 60).Draw(t, "key"))
			is := func(slot uint32) bool { return names[slot] == key }
			slot, found := s.find(key, is)
			want, there := model[key]
			if found != there || slot != want {
				t.Fatalf("%s is at %d: %v, want %d: %v", key, slot, found, want, there)
			}
			if there {
				s.remove(key, is)
				delete(model, key)
				continue
			}
			model[key] = uint32(len(names))
			s.put(key, uint32(len(names)))
			names = append(names, key)
		}
		for key, want := range model {
			if slot, found := s.find(key, func(slot uint32) bool { return names[slot] == key }); !found || slot != want {
				t.Fatalf("%s is at %d: %v, want %d", key, slot, found, want)
			}
		}
		if s.used != len(model) {
			t.Fatalf("%d used, want %d", s.used, len(model))
		}
	})
}

// Keys of one hash are told apart by the records.
func TestSeatsOfOneHash(t *testing.T) {
	s := newSeats()
	for slot := range uint32(6) {
		if s.used*5 >= len(s.cells)*4 {
			s.grow()
		}
		s.used++
		s.enter(cell{7, slot + 1})
	}
	for slot := range uint32(6) {
		at, found := s.search(7, func(other uint32) bool { return other == slot })
		if !found || s.cells[at].next != slot+1 {
			t.Errorf("slot %d is not found", slot)
		}
	}
}
