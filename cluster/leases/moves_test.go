// SPDX-License-Identifier: Apache-2.0

package leases_test

import (
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
)

// What an operator moved to a node is answered for by that node, as soon as it can for a while, and by others while it cannot.
func TestLeasesFollowAMove(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	at := func(when string, want ...fsm.NodeID) { // how many addresses each of them has to have, by how often it is named
		t.Helper()
		have := map[fsm.NodeID]int{}
		for _, n := range s.holders() {
			have[n]++
		}
		for _, n := range want {
			have[n]--
		}
		for _, n := range nodes {
			if have[n] != 0 {
				t.Fatalf("%s: %v, want %v", when, s.holders(), want)
			}
		}
	}
	s.run(10 * time.Second)
	at("at first", "n1", "n2", "n3")
	s.commit(&fsm.BeginMove{Service: "shop/a", Node: "n2"})
	s.run(time.Second)
	at("moved", "n2", "n2", "n2")
	s.silent["n2"] = true
	s.run(4 * time.Second)
	if n := len(s.of("n2")); n > 0 || len(s.holders()) != len(vips) {
		t.Fatalf("the node is silent and has %d: %v", n, s.holders())
	}
	s.silent["n2"] = false
	s.run(10 * time.Second)
	at("it is back", "n2", "n2", "n2")
	working := s.links["n2"]
	s.links["n2"] = nil
	s.run(2 * time.Second)
	if n := len(s.of("n2")); n > 0 || len(s.holders()) != len(vips) {
		t.Fatalf("the node has no link and %d: %v", n, s.holders())
	}
	s.links["n2"] = working
	s.run(4 * time.Second)
	if n := len(s.of("n2")); n > 0 {
		t.Fatalf("its links are back for less than a while, and it has %d", n)
	}
	s.run(3 * time.Second)
	at("its links are back", "n2", "n2", "n2")
	s.route(vips[0], 0, 2)
	s.run(time.Second)
	if s.holders()[vips[0]] == "n2" || len(s.of("n2")) != 2 {
		t.Fatalf("it serves two addresses and has %v", s.holders())
	}
	s.route(vips[0], 0, 1, 2)
	s.run(time.Second)
	at("it serves all of them again", "n2", "n2", "n2")
	s.commit(&fsm.EndMove{Service: "shop/a"})
	s.run(5 * time.Second)
	at("the end of the move is no reason to move", "n2", "n2", "n2")
}

// A holder that is out of touch and keeps its lease has it until an operator vouches: a move is no such word.
func TestAMoveTakesNothingFromWhoKeepsIt(t *testing.T) {
	t.Parallel()
	s := newStage(t, "p1")
	s.run(10 * time.Second)
	lost := s.of("n1")[0]
	s.silent["n1"] = true
	s.run(time.Second)
	s.commit(&fsm.BeginMove{Service: "shop/a", Node: "n2"})
	s.run(20 * time.Second)
	if have := s.holders()[lost]; have != "n1" {
		t.Errorf("%s went to %s while its holder may answer on", lost, have)
	}
	if len(s.of("n2")) != 2 {
		t.Errorf("the others are at %v", s.holders())
	}
}
