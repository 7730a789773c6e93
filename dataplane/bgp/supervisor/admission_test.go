// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/internal/testkit"
)

// trials is how often, at the most, a neighbour is tried again within a time, by what is stated: after five seconds, then after twice as long each
// time, five minutes at most, of each of which a quarter may be left out.
func trials(d time.Duration) (n int) {
	for hold := 5 * time.Second; ; hold = min(2*hold, 5*time.Minute) {
		if d -= hold / 4 * 3; d < 0 {
			return n
		}
		n++
	}
}

// Whatever neighbours end children that open sessions with them, and for however long, nobody else loses what it was told; children die of each of
// them three times, and then each time that it is tried again. When they are peaceful, everybody has everything again in time.
func TestNeighboursThatEndChildrenAreHeldBack(t *testing.T) {
	testkit.Check(t, func(r *rapid.T) {
		kinds := rapid.SliceOfN(rapid.SampledFrom([]kindOf{good, good, good, atOpen, silent}), 1, 12).Draw(r, "neighbours")
		lasts := time.Duration(rapid.IntRange(1, 600).Draw(r, "seconds")) * time.Second
		n := newNeighbours(append(kinds, good)...)
		why := ""
		among(t, n, func(t *testing.T, w *world, s *Speaker) {
			n.turn(true)
			time.Sleep(lasts)
			kills := n.killed()
			n.turn(false)
			for _, one := range n.all {
				count := len(slices.DeleteFunc(slices.Clone(kills), func(k string) bool { return k != one.peer.Name }))
				if most := 3 + trials(lasts); count > most {
					why += fmt.Sprintf("%s ended %d children in %s, at most %d are stated\n", one.peer.Name, count, lasts, most)
				}
			}
			if lost := n.lost(good); lost > 0 && len(n.all) <= mostSteps {
				why += fmt.Sprintf("others lost what they kept %d times\n", lost)
			}
			// Twice as long as it lasted, or five minutes; then those that wait for each other, and for those that are silent.
			time.Sleep(min(longestHold, max(firstHold, 2*lasts)) + time.Duration(len(n.all))*(patience+quiet))
			if wrong := n.wrong(w.last()); wrong != nil {
				why += fmt.Sprintf("%v have not everything again\n", wrong)
			}
			if again := n.killed(); again != nil {
				t.Errorf("%v ended children though they are peaceful", again)
			}
		})
		if why != "" {
			r.Fatal(why)
		}
	})
}

// A neighbour that ends children some time after it had everything is found, too: who is held back although a child died without it is let in again.
func TestANeighbourThatWaitsIsHeldBack(t *testing.T) {
	testkit.Check(t, func(r *rapid.T) {
		kinds := rapid.SliceOfN(rapid.Just(good), 1, 4).Draw(r, "neighbours")
		at := rapid.IntRange(0, len(kinds)).Draw(r, "place of the hostile one")
		n := newNeighbours(slices.Insert(kinds, at, late)...)
		n.all[at].after = time.Duration(rapid.IntRange(1, 400).Draw(r, "tenths of a second until it ends a child")) * 100 * time.Millisecond
		why := ""
		among(t, n, func(t *testing.T, w *world, s *Speaker) {
			n.turn(true)
			w.last().Kill()
			time.Sleep(20 * time.Minute)
			kills := len(n.killed())
			if most := 6*len(n.all) + trials(20*time.Minute); kills > most {
				why += fmt.Sprintf("it ended %d children, want at most %d\n", kills, most)
			}
			for _, p := range statuses(t, s) {
				if p.Fault.Code == FaultHeldBack && p.Name != n.all[at].peer.Name {
					why += fmt.Sprintf("%s is held back, and not %s\n", p.Name, n.all[at].peer.Name)
				}
			}
			if lost := n.lost(good); lost > 2*len(n.all) {
				why += fmt.Sprintf("others lost what they kept %d times\n", lost)
			}
			n.turn(false)
			time.Sleep(longestHold + time.Minute)
			if wrong := n.wrong(w.last()); wrong != nil {
				why += fmt.Sprintf("%v have not everything again\n", wrong)
			}
		})
		if why != "" {
			r.Fatal(why)
		}
	})
}

// statuses are how things stand with peers, once a child speaks.
func statuses(t *testing.T, s *Speaker) []bgp.PeerStatus {
	t.Helper()
	for {
		out, err := s.Peers(t.Context())
		if err == nil {
			return out
		}
		time.Sleep(lookEvery)
	}
}

// Who is held back is shown as such, with why and until when; it may keep what it was told. A change of its configuration, and that of nobody else,
// lets it in again.
func TestAHeldBackPeerIsShownUntilItIsConfiguredAnew(t *testing.T) {
	n := newNeighbours(atOpen, good)
	among(t, n, func(t *testing.T, w *world, s *Speaker) {
		n.turn(true)
		time.Sleep(6 * time.Second)
		ps := statuses(t, s)
		if len(ps) != 2 || ps[0].Name != "switch1" || ps[0].Fault.Code != FaultHeldBack || !strings.Contains(ps[0].Fault.Reason, "held back until") || ps[1].Fault != (bgp.Fault{}) {
			t.Fatalf("peers are %+v", ps)
		}
		links, err := s.Links(t.Context())
		if err != nil || len(links) != 2 || links[0] != (bgp.Link{Peer: n.all[0].peer.Address}) || links[1].Session == 0 {
			t.Errorf("links are %+v: %v", links, err)
		}
		if s.HeldBack() != 1 {
			t.Errorf("counted %d times", s.HeldBack())
		}
		n.turn(false)
		d := n.desired()
		d.Peers[1].ConnectRetry = 2 * time.Second
		apply(t, s, d, nil)
		if ps := statuses(t, s); ps[0].Fault.Code != FaultHeldBack {
			t.Errorf("the other one was changed, and it is %+v", ps[0])
		}
		d.Peers[0].HoldTime = 9 * time.Second
		apply(t, s, d, nil)
		if ps := statuses(t, s); ps[0].Fault.Code == FaultHeldBack {
			t.Errorf("after a change it is %+v", ps[0])
		}
		time.Sleep(time.Second)
		if wrong := n.wrong(w.last()); wrong != nil {
			t.Errorf("%v have not everything", wrong)
		}
	})
}

// A peer that is taken away and comes back is another one; a neighbour on a link that was away, or has another address, is not.
func TestSuspicionEndsWithTheConfiguration(t *testing.T) {
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	on := func(address string) bgp.Peer {
		return bgp.Peer{Name: "tor", Address: netip.MustParseAddr(address), RemoteASN: 65000}
	}
	for name, c := range map[string]struct {
		before, after string
		held          bool
	}{
		"numbered":   {"192.0.2.1", "192.0.2.1", false},
		"unnumbered": {"fe80::1%eth0", "fe80::2%eth0", true},
		"other-link": {"fe80::1%eth0", "fe80::1%eth1", false},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAdmission()
			other := on("192.0.2.9")
			a.want([]bgp.Peer{on(c.before), other}, begin)
			p := a.of[identity(on(c.before))]
			p.strikes, p.hold, p.until = 2, firstHold, begin.Add(firstHold)
			a.want([]bgp.Peer{other}, begin.Add(time.Second))
			a.want([]bgp.Peer{on(c.after), other}, begin.Add(2*time.Second))
			if p := a.of[identity(on(c.after))]; p.held(begin.Add(2*time.Second)) != c.held {
				t.Errorf("held back: %t", !c.held)
			}
			if c.held {
				a.want([]bgp.Peer{other}, begin.Add(time.Minute))
				if len(a.of) != 1 {
					t.Errorf("%d accounts are kept for ever", len(a.of))
				}
			}
		})
	}
}

// livesWith is an admission with three peers, of which the child has those named, and has told them everything.
func livesWith(now time.Time, names ...int) *admission {
	a := newAdmission()
	a.careful = true
	var peers []bgp.Peer
	for i := range 3 {
		peers = append(peers, bgp.Peer{Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), RemoteASN: 65000})
	}
	a.want(peers, now)
	for _, i := range names {
		a.of[peers[i].Address].in, a.of[peers[i].Address].has = now, now
	}
	return a
}

// peerOf is the account of one of livesWith.
func peerOf(a *admission, i int) *account { return a.of[netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})] }

// Whom a child had for long enough is as if it had never been suspected: two more deaths hold it back, not one.
func TestALongLifeEndsTheSuspicionOfAPeer(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	a := livesWith(now, 0, 1, 2)
	peerOf(a, 1).strikes = 1
	a.let(now.Add(steadyAfter))
	a.careful = true
	for death, held := range []int{0, 1} {
		now = now.Add(2 * steadyAfter)
		for i := range 3 {
			peerOf(a, i).in, peerOf(a, i).has = now, now
		}
		peerOf(a, 1).has = time.Time{}
		if n := len(a.died(now.Add(time.Second))); n != held {
			t.Errorf("death %d: %d are held back", death, n)
		}
	}
}

// Where a child died without a suspect that was not it: it is tried again at once, but no second time.
func TestADeathWithoutASuspectClearsItOnce(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	a := livesWith(now)
	for _, held := range []bool{false, true} {
		suspect := peerOf(a, 2)
		suspect.strikes, suspect.hold, suspect.until = 2, time.Minute, now.Add(time.Minute)
		for i := range 2 {
			peerOf(a, i).in, peerOf(a, i).has = now, now
		}
		a.died(now.Add(time.Second))
		if suspect.held(now.Add(time.Second)) != held {
			t.Errorf("held back on: %t", !held)
		}
	}
}

// A peer that waits, and is configured anew meanwhile, waits for its turn as before; one that the child has goes on to be had.
func TestAPeerThatIsConfiguredAnewKeepsItsTurn(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	a := livesWith(now, 0, 1)
	var peers []bgp.Peer
	for i := range 3 {
		p := peerOf(a, i).peer
		p.RemoteASN++
		peers = append(peers, p)
	}
	a.want(peers, now.Add(time.Second))
	if given := a.given(peers); len(given) != 2 || given[0].Address != peers[0].Address || given[1].Address != peers[1].Address {
		t.Errorf("the child has %v", given)
	}
}

// With one peer there is nobody to be protected: it is tried whenever a child starts.
func TestTheLastPeerIsNeverHeldBack(t *testing.T) {
	n := newNeighbours(atOpen)
	among(t, n, func(t *testing.T, w *world, s *Speaker) {
		n.turn(true)
		time.Sleep(time.Minute)
		if s.HeldBack() > 0 {
			t.Errorf("held back %d times", s.HeldBack())
		}
		n.turn(false)
		time.Sleep(longestPause + time.Second)
		if wrong := n.wrong(w.last()); wrong != nil {
			t.Errorf("%v have not everything", wrong)
		}
	})
}

// After one death everybody has everything again soon, one after the other; with many peers several are let in at once.
func TestPeersOfTheNextChildAreLetInOneByOne(t *testing.T) {
	for _, count := range []int{3, 8, 40} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			n := newNeighbours(make([]kindOf, count)...)
			among(t, n, func(t *testing.T, w *world, s *Speaker) {
				w.last().Kill()
				time.Sleep(firstPause + 10*time.Millisecond)
				synctest.Wait()
				c := w.last()
				for steps := 0; ; steps++ {
					c.mu.Lock()
					now := len(c.table.Peers)
					c.mu.Unlock()
					if now == count {
						if steps == 0 || steps > 2*mostSteps {
							t.Errorf("it took %d looks", steps)
						}
						break
					}
					if open := now - (count - len(n.wrong(c))); open > (count+mostSteps-1)/mostSteps {
						t.Fatalf("%d are on the way in", open)
					}
					time.Sleep(lookEvery)
				}
			})
		})
	}
}

// A child whose peers all have everything for a minute is a child as the first was: what comes then is let in at once, and a death is nobody's.
func TestALongLifeEndsAllSuspicion(t *testing.T) {
	n := newNeighbours(good, good, good)
	among(t, n, func(t *testing.T, w *world, s *Speaker) {
		for range 5 {
			w.last().Kill()
			time.Sleep(2 * steadyAfter)
		}
		careful, err := with(t.Context(), s, func() (bool, error) { return s.admits.careful, nil })
		if err != nil || s.HeldBack() > 0 || careful {
			t.Errorf("held back %d times, careful %t: %v", s.HeldBack(), careful, err)
		}
	})
}
