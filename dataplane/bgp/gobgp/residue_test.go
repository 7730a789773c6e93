// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/dataplane/bgp/frrtest"
	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/testkit"
)

// settled waits until all peers have everything, and hold nothing else.
func settled(t *testing.T, s *Speaker) {
	t.Helper()
	testkit.Until(t, "peers to hold nothing else", func() bool {
		links, err := s.Links(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Mend(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		return len(links) > 0 && !slices.ContainsFunc(links, func(l bgp.Link) bool {
			return l.Session == 0 || l.Residue || !l.Written || l.Arrived < l.Sent
		})
	})
}

// sessionsOf counts the sessions that a speaker had.
func sessionsOf(s *Speaker) uint64 {
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	return s.opened
}

var hops = []netip.Addr{addr(hop1), addr(hop2), addr("198.51.100.13")}

// threeHops are paths of one prefix to three next hops and of another one to one.
func threeHops() (out []bgp.Path) {
	for _, h := range hops {
		out = append(out, path(vip, h.String()))
	}
	return append(out, path("203.0.113.11/32", hop1), path("203.0.113.12/32", hop1))
}

func frrPeer(frr *frrtest.FRR, s self, restartTime time.Duration) bgp.Peer {
	return bgp.Peer{
		Address: frr.Address(), Port: frr.Port(), RemoteASN: frrtest.ASN, LocalAddress: s.addr,
		Families: []bgp.Family{bgp.IPv4, bgp.IPv6}, Restart: bgp.GracefulRestart{RestartTime: restartTime},
	}
}

// A speaker that comes back says that a peer holds nothing else only once FRR holds nothing else: of one path or of several paths of
// a prefix, whether FRR dials, at the end of the restart time of a second, or the speaker. What stays is never gone.
func TestFRRHoldsNothingOfAnEarlierLife(t *testing.T) {
	noRaceDetector(t)
	for n, c := range []struct {
		restartTime time.Duration
		dialOnly    bool
	}{{time.Second, false}, {time.Second, true}, {5 * time.Second, false}, {30 * time.Second, true}} {
		t.Run(fmt.Sprintf("restart-%s-dial-only-%t", c.restartTime, c.dialOnly), func(t *testing.T) {
			parallel(t)
			self := newSelf(t, 21+n)
			frr := frrtest.Start(t, self.neighbor())
			if c.dialOnly {
				self.port = 0
			}
			desired := bgp.Desired{Paths: bgp.NewPaths(threeHops()...), Peers: []bgp.Peer{frrPeer(frr, self, c.restartTime)}}
			speaker := self.start(t)
			apply(t, speaker, desired)
			settled(t, speaker)
			frr.WaitHolds(prefix(vip), hops...)
			if err := speaker.Detach(t.Context()); err != nil {
				t.Fatal(err)
			}
			stays := listOf(desired.Paths)[desired.Paths.Len()-1:]
			frr.WaitStale(stays[0].Prefix)
			stop := frr.WatchEither(stays[0].Prefix, stays[0].Prefix)
			speaker = self.start(t)
			desired.Paths = bgp.NewPaths(stays...)
			apply(t, speaker, desired)
			settled(t, speaker)
			if looks, gaps := stop(); looks == 0 || gaps > 0 {
				t.Errorf("what stays was gone at %d of %d looks", gaps, looks)
			}
			frr.WaitHolds(prefix(vip))
			frr.WaitHolds(prefix("203.0.113.11/32"))
			frr.WaitHolds(stays[0].Prefix, hops[0])
		})
	}
}

// A connection that is lost while paths are withdrawn leaves FRR nothing of them. Where it cannot leave any, or FRR drops it, being one
// of a prefix, there is no second session, nor after changes.
func TestFRRSessionsAreRestartedForAResidueOnly(t *testing.T) {
	noRaceDetector(t)
	parallel(t)
	self := newSelf(t, 29)
	frr := frrtest.Start(t, self.neighbor())
	self.port = 0
	desired := bgp.Desired{Paths: bgp.NewPaths(threeHops()...), Peers: []bgp.Peer{frrPeer(frr, self, 30*time.Second)}}
	speaker := self.start(t)
	apply(t, speaker, desired)
	settled(t, speaker)
	opened := sessionsOf(speaker)
	for _, some := range []bgp.Paths{bgp.NewPaths(listOf(desired.Paths)[1:]...), desired.Paths} {
		apply(t, speaker, bgp.Desired{Paths: some, Peers: desired.Peers})
		settled(t, speaker)
	}
	if n := sessionsOf(speaker) - opened; n != 0 {
		t.Errorf("%d sessions more after changes", n)
	}
	for _, c := range []struct {
		left     []netip.Addr
		sessions uint64
	}{{hops, 1}, {hops[1:], 1}, {nil, 2}} {
		opened, left := sessionsOf(speaker), c.left
		speaker.healed = map[netip.Addr]time.Time{} // a minute passes
		if err := shutdownSocket(speaker.session(frr.Address()).tuple); err != nil {
			t.Fatal(err)
		}
		testkit.Until(t, "the loss", func() bool { return speaker.session(frr.Address()) == nil })
		apply(t, speaker, bgp.Desired{Paths: bgp.NewPaths(listOf(desired.Paths)[len(hops)-len(left):]...), Peers: desired.Peers})
		settled(t, speaker)
		frr.WaitHolds(prefix(vip), left...)
		if n := sessionsOf(speaker) - opened; n != c.sessions {
			t.Errorf("%d sessions after one was lost, with %v left, want %d", n, left, c.sessions)
		}
	}
}

// A peer whose sessions are to be without restarts from now on keeps nothing of the one before that the next one does not tell it of.
func TestFRRKeepsNothingForAPeerThatLosesItsRestarts(t *testing.T) {
	noRaceDetector(t)
	parallel(t)
	self := newSelf(t, 33)
	frr := frrtest.Start(t, self.neighbor())
	peer := frrPeer(frr, self, 30*time.Second)
	desired := bgp.Desired{Paths: bgp.NewPaths(threeHops()...), Peers: []bgp.Peer{peer}}
	speaker := self.start(t)
	apply(t, speaker, desired)
	settled(t, speaker)
	frr.WaitHolds(prefix(vip), hops...)
	before := sessionsOf(speaker)
	peer.Restart.Mode = bgp.RestartNone
	stays := listOf(desired.Paths)[desired.Paths.Len()-1:]
	apply(t, speaker, bgp.Desired{Paths: bgp.NewPaths(stays...), Peers: []bgp.Peer{peer}})
	settled(t, speaker)
	frr.WaitHolds(prefix(vip))
	frr.WaitHolds(stays[0].Prefix, hops[0])
	if n := sessionsOf(speaker) - before; n != 1 {
		t.Errorf("%d sessions without restarts", n)
	}
}

// Links is a question: however often it is asked, sessions stay as they are.
func TestLinksRestartNothing(t *testing.T) {
	noRaceDetector(t)
	parallel(t)
	self := newSelf(t, 34)
	frr := frrtest.Start(t, self.neighbor())
	speaker := self.start(t)
	apply(t, speaker, bgp.Desired{Paths: bgp.NewPaths(threeHops()...), Peers: []bgp.Peer{frrPeer(frr, self, time.Second)}})
	testkit.Until(t, "the switch to have had everything for long enough", func() bool {
		l, _ := link(t, speaker)
		n := speaker.session(frr.Address())
		return l.Residue && n != nil && !n.had.IsZero() && time.Since(n.had) > healAfter+time.Second
	})
	if err := speaker.Mend(t.Context(), time.Hour); err != nil { // others go before
		t.Fatal(err)
	}
	if n := sessionsOf(speaker); n != 1 || speaker.session(frr.Address()) == nil {
		t.Errorf("%d sessions", n)
	}
	settled(t, speaker)
	if n := sessionsOf(speaker); n != 2 {
		t.Errorf("%d sessions once somebody mended", n)
	}
}

// A session that was restarted for what its peer kept is not restarted again within a minute, but waited for.
func TestFRRSessionsAreNotRestartedTwiceAMinute(t *testing.T) {
	noRaceDetector(t)
	parallel(t)
	self := newSelf(t, 31)
	frr := frrtest.Start(t, self.neighbor())
	peer := frrPeer(frr, self, time.Second)
	speaker := self.start(t)
	speaker.healed[peer.Address] = time.Now().Add(5*time.Second - healEvery)
	apply(t, speaker, bgp.Desired{Paths: bgp.NewPaths(threeHops()...), Peers: []bgp.Peer{peer}})
	first := bgp.Link{}
	testkit.Until(t, "everything to arrive", func() bool {
		l, _ := link(t, speaker)
		if l.Session == 1 && l.Written && l.Arrived == l.Sent {
			first = l
		}
		return first.Session != 0
	})
	if early := time.Since(speaker.healed[peer.Address]) < healEvery; early && !first.Residue {
		t.Errorf("%+v: nothing is said to be left", first)
	}
	at := speaker.healed[peer.Address]
	settled(t, speaker)
	if again := speaker.healed[peer.Address].Sub(at); again < healEvery || sessionsOf(speaker) != 2 {
		t.Errorf("%d sessions, the second one after %s", sessionsOf(speaker), again)
	}
}

// BIRD does all that End-of-RIB asks for: a speaker that comes back with fewer paths needs no other session.
func TestBirdSessionsAreNotRestartedForAResidue(t *testing.T) {
	noRaceDetector(t)
	parallel(t)
	self := newSelf(t, 30)
	bird := birdtest.Start(t, birdtest.Config{Neighbors: []birdtest.Neighbor{self.neighbor()}})
	desired := bgp.Desired{Paths: bgp.NewPaths(threeHops()...), Peers: []bgp.Peer{self.peer(bird)}}
	speaker := self.start(t)
	apply(t, speaker, desired)
	settled(t, speaker)
	bird.WaitNextHops(prefix(vip), hops...)
	if err := speaker.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	speaker = self.start(t)
	desired.Paths = bgp.NewPaths(listOf(desired.Paths)[4:]...)
	apply(t, speaker, desired)
	settled(t, speaker)
	bird.Wait("the routes that are left", func() bool { return len(bird.Routes()) == 1 })
	if n := sessionsOf(speaker); n != 1 {
		t.Errorf("%d sessions, want one", n)
	}
}

// An unnumbered session is like others: an agent that comes back leaves FRR none of what it announces no more.
//
//	node  eth1 ─────── swp1  switch
func TestFRRHoldsNothingOfAnEarlierLifeByLinkLocalAddresses(t *testing.T) {
	noRaceDetector(t)
	node, ok := inNamespace(t)
	if !ok {
		return
	}
	tor := netnstest.New(t, "switch")
	netnstest.Join(netnstest.Link{In: node, Name: "eth1"}, netnstest.Link{In: tor, Name: "swp1"})
	frr := frrtest.StartUnnumbered(t, tor, 600*time.Second, "swp1")
	desired := bgp.Desired{Paths: bgp.NewPaths(path(vip, hop1), path("203.0.113.11/32", hop1), path(vip6, "2001:db8::11")), Peers: []bgp.Peer{{
		Name: "eth1", Address: neighbour(t, "eth1"), RemoteASN: frrtest.ASN,
	}}}
	self := self{n: 1, addr: netip.IPv6Unspecified(), port: 179}
	speaker := self.start(t)
	apply(t, speaker, desired)
	settled(t, speaker)
	own := linkLocalOf(t, node, "eth1")
	frr.WaitNextHops(prefix(vip), own)
	if err := speaker.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	speaker = self.start(t)
	desired.Paths = bgp.NewPaths(listOf(desired.Paths)[1:2]...)
	apply(t, speaker, desired)
	settled(t, speaker)
	frr.WaitNextHops(prefix("203.0.113.11/32"), own)
	frr.WaitNextHops(prefix(vip))
	frr.WaitNextHops(prefix(vip6))
	frr.Wait("the kernel's routes", func() bool {
		return tor.Run("ip", "-6", "route", "show", "proto", "bgp") == ""
	})
}
