// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/hostile"
	"fairlead.io/fairlead/internal/testkit"
)

// A neighbour that reads nothing and asks for the table without end loses its session, and the others keep theirs.
func TestNeighbourThatAsksWithoutEndLosesItsSession(t *testing.T) {
	parallel(t)
	s := dialler(t, 0)
	evil, kind := hostile.Listen(t, addr("127.0.0.1")), hostile.Listen(t, addr("127.3.0.1"))
	var list []bgp.Path
	for i := range 1000 {
		list = append(list, path(fmt.Sprintf("203.0.%d.%d/32", i/250, i%250), hop1))
	}
	desired := bgp.Desired{Paths: bgp.NewPaths(list...), Peers: []bgp.Peer{evil.Peer(), kind.Peer()}}
	if err := s.Apply(t.Context(), desired); err != nil {
		t.Fatal(err)
	}
	if _, err := kind.Session(hostile.Established); err != nil {
		t.Fatal(err)
	}
	c, err := evil.Session(hostile.Established)
	if err != nil {
		t.Fatal(err)
	}
	established := func(of bgp.Peer) bool { return s.session(of.Address) != nil }
	testkit.Until(t, "both sessions by our side", func() bool { return established(evil.Peer()) && established(kind.Peer()) })
	flood := bytes.Repeat(hostile.RouteRefresh(), 100)
	const most = 100 // times; GoBGP alone takes them all, and keeps 100 copies of 1,000 paths for each
	for range most {
		if c.Send(flood) != nil {
			break // it ended the session
		}
	}
	testkit.Until(t, "the end of the session", func() bool { return s.session(evil.Peer().Address) == nil })
	if s.session(kind.Peer().Address) == nil {
		t.Error("the session with a well-behaved neighbour ended, too")
	}
	if peers, err := s.Peers(t.Context()); err != nil || peers[0].Demanding != 1 || peers[1].Demanding != 0 {
		t.Errorf("it ended for something else: %+v, %v", peers, err)
	}
}

// What a peer may ask for: some at once, and one more now and then, whatever sessions it has.
func TestDemandsOfAPeer(t *testing.T) {
	start := time.Unix(0, 0)
	d := newDemand()
	if d.more(demandsAtOnce, start) || !d.more(demandsAtOnce+1, start) {
		t.Error("not the number that a peer may ask for at once")
	}
	if !d.more(1, start.Add(demandAgain-1)) {
		t.Error("a peer that was made anew may ask for more")
	}
	if later := start.Add(2 * demandAgain); d.more(3, later) || !d.more(4, later) {
		t.Error("not one more for each time that passed")
	}
}

// Looking takes a small share of the time, but a peer that makes it slow is not looked at more seldom for that than every some seconds.
func TestWhatPeersAskForIsLookedAtOftenEnough(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0: demandsEvery, demandsEvery / demandsShare: demandsEvery, 10 * time.Millisecond: time.Second, time.Second: demandsRarest, time.Hour: demandsRarest,
	} {
		if got := demandsPause(took); got != want {
			t.Errorf("after a look of %s the next one is in %s, want %s", took, got, want)
		}
	}
}

// Sessions that were closed for what a peer asked for are counted, and shown with the peer.
func TestSessionsClosedForDemandsAreCounted(t *testing.T) {
	parallel(t)
	s := dialler(t, 0)
	evil, kind := hostile.Listen(t, addr("127.0.0.1")), hostile.Listen(t, addr("127.3.0.1"))
	if err := s.Apply(t.Context(), bgp.Desired{Peers: []bgp.Peer{evil.Peer(), kind.Peer()}}); err != nil {
		t.Fatal(err)
	}
	s.endDemanding(evil.Peer().Address)
	peers, err := s.Peers(t.Context())
	if err != nil || len(peers) != 2 || peers[0].Demanding != 1 || peers[1].Demanding != 0 {
		t.Errorf("peers are %+v: %v", peers, err)
	}
}
