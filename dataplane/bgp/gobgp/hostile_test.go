// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/hostile"
)

// What a neighbour sends ends nothing: neither the process, which tests of this file would end with, nor the speaker.

// Each hostile message is sent in each phase of a session, all to one speaker, whose sessions with others stay.
func TestNoMessageOfANeighbourEndsTheSpeaker(t *testing.T) {
	parallel(t)
	s := dialler(t, 0)
	messages := hostile.Messages()
	kind := hostile.Listen(t, addr("127.0.0.1"))
	desired := bgp.Desired{Paths: bgp.NewPaths(path(vip, hop1)), Peers: []bgp.Peer{kind.Peer()}}
	type attack struct {
		*hostile.Peer
		name string
		in   hostile.Phase
	}
	var attacks []attack
	for i, name := range slices.Sorted(maps.Keys(messages)) {
		for in := hostile.OpenSent; in <= hostile.Established; in++ {
			n := hostile.Listen(t, netip.AddrFrom4([4]byte{127, 1, byte(i), byte(1 + in)}))
			attacks = append(attacks, attack{n, name, in})
			desired.Peers = append(desired.Peers, n.Peer())
		}
	}
	if err := s.Apply(t.Context(), desired); err != nil {
		t.Fatal(err)
	}
	watched, err := kind.Session(hostile.Established)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, a := range attacks {
		wg.Go(func() {
			c, err := a.Session(a.in)
			if err == nil {
				err = errors.Join(c.Send(messages[a.name]), c.End())
			}
			if err != nil {
				t.Errorf("%s in %s: %v", a.name, a.in, err)
			}
		})
	}
	wg.Wait()
	if o, err := s.everything(t.Context()); err != nil || len(o.Paths) != 1 || len(o.Peers) != len(desired.Peers) {
		t.Errorf("the speaker has %d paths and %d peers, %v", len(o.Paths), len(o.Peers), err)
	}
	// The session with whom sends nothing of the kind is the first one still, and is told of what changes.
	desired.Paths = bgp.NewPaths(path(vip, hop1), path("203.0.113.9/32", hop2))
	if err := s.Apply(t.Context(), desired); err != nil {
		t.Fatal(err)
	}
	for updates := 0; updates < 2; {
		kind, err := watched.Receive()
		if err != nil {
			t.Fatalf("the session with a well-behaved neighbour: %v", err)
		}
		if kind == hostile.TypeUpdate {
			updates++
		}
	}
}
