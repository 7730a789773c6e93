// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"maps"
	"slices"

	"fairlead.io/fairlead/sim/fabric/message"
)

// Hostility is when a switch sends each speaker what it dies of.
type Hostility uint8

// When it does.
const (
	Peaceful    Hostility = iota // never
	HostileOpen                  // before the answer to its Open, when there is no session yet; to begin with, it closes those that there are
	HostileUp                    // once a session is established
)

// Hostility tells how it is.
func (s *Switch) Hostility() Hostility { return s.hostile }

// Confuse has every speaker with a session lose count of what it told the switch.
func (s *Switch) Confuse() {
	for _, member := range slices.Sorted(maps.Keys(s.neighbours)) {
		if n := s.neighbours[member].session; n != nil {
			n.send(message.Confusing{})
		}
	}
}

// Hostile has the switch be hostile from now on, or peaceful.
func (s *Switch) Hostile(h Hostility) {
	s.hostile = h
	for _, member := range slices.Sorted(maps.Keys(s.neighbours)) {
		n := s.neighbours[member].session
		switch {
		case n != nil && h == HostileUp:
			n.send(message.Deadly{})
		case n != nil && h == HostileOpen:
			n.down("closed without a word", true)
		}
	}
}
