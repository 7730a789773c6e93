// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/hostile"
	"fairlead.io/fairlead/internal/testkit"
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

// Whatever a neighbour sends, the speaker goes on. Each draw is a session with a neighbour of its own.
func TestDrawnMessagesOfANeighbourEndNothing(t *testing.T) {
	parallel(t)
	self := newSelf(t, 90)
	s := self.start(t)
	paths := bgp.NewPaths(path(vip, hop1))
	session, sent := uint32(0), 0
	defer func() { t.Logf("%d messages in %d sessions", sent, session) }()
	testkit.Check(t, func(rt *rapid.T) {
		session++
		from := netip.AddrFrom4([4]byte{127, 2, byte(session >> 8), byte(session)})
		peer := bgp.Peer{Name: "evil", Address: from, RemoteASN: hostile.ASN, Families: []bgp.Family{bgp.IPv4, bgp.IPv6}, Passive: true}
		if err := s.Apply(t.Context(), bgp.Desired{Paths: paths, Peers: []bgp.Peer{peer}}); err != nil {
			rt.Fatal(err)
		}
		in := rapid.SampledFrom([]hostile.Phase{hostile.OpenSent, hostile.OpenConfirm, hostile.Established, hostile.Established}).Draw(rt, "phase")
		messages := rapid.SliceOfN(rapid.Custom(hostile.Draw), 1, 64).Draw(rt, "messages")
		var c *hostile.Conversation
		testkit.Eventually(t, "a session", func() (err error) { // the speaker refuses connections until it waits for one
			c, err = hostile.Dial(t.Context(), from, netip.AddrPortFrom(self.addr, self.port), in)
			return err
		})
		defer c.Close()
		for _, m := range messages {
			if c.Send(m) != nil {
				break // it ended the session
			}
			sent++
		}
		if err := c.End(); err != nil {
			rt.Fatal(err)
		}
		if o, err := s.everything(t.Context()); err != nil || len(o.Paths) != 1 || len(o.Peers) != 1 {
			rt.Fatalf("the speaker has %v and %v, %v", o.Paths, o.Peers, err)
		}
	})
}
