// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/internal/testkit"
)

const (
	vip  = "203.0.113.10/32"
	vip6 = "2001:db8:e1::1/128"
	hop1 = "198.51.100.11"
	hop2 = "198.51.100.12"
)

// startWithBird runs BIRD and n speakers that peer with it, with nothing to announce yet.
func startWithBird(t *testing.T, n int, c birdtest.Config) (*birdtest.Bird, []self, []*Speaker) {
	var selves []self
	for i := range n {
		selves = append(selves, newSelf(t, i+1))
		c.Neighbors = append(c.Neighbors, selves[i].neighbor())
	}
	bird := birdtest.Start(t, c)
	var speakers []*Speaker
	for _, s := range selves {
		speakers = append(speakers, s.start(t))
	}
	return bird, selves, speakers
}

func TestSwitchSeesEveryNextHopOfBothFamilies(t *testing.T) {
	parallel(t)
	bird, self, sp := startWithBird(t, 1, birdtest.Config{})
	d := bgp.Desired{
		Peers: []bgp.Peer{self[0].peer(bird)},
		Paths: bgp.NewPaths(path(vip, hop1), path(vip, hop2), path(vip6, "2001:db8::11"), path(vip6, "2001:db8::12")),
	}
	apply(t, sp[0], d)
	bird.WaitNextHops(prefix(vip), addr(hop1), addr(hop2))
	bird.WaitNextHops(prefix(vip6), addr("2001:db8::11"), addr("2001:db8::12"))

	d.Paths = bgp.NewPaths(append(listOf(d.Paths)[1:], path(vip, "198.51.100.13"))...)
	apply(t, sp[0], d)
	bird.WaitNextHops(prefix(vip), addr(hop2), addr("198.51.100.13"))
	apply(t, sp[0], bgp.Desired{Peers: d.Peers})
	bird.Wait("an empty table", func() bool { return len(bird.Routes()) == 0 })
}

func TestSwitchSeesAttributes(t *testing.T) {
	parallel(t)
	bird, self, sp := startWithBird(t, 1, birdtest.Config{})
	p := path(vip, hop1)
	p.MED, p.Origin = 7, bgp.OriginIGP
	p.Communities = []bgp.Community{65000<<16 | 2, 65000<<16 | 1}
	p.LargeCommunities = []bgp.LargeCommunity{{Global: 65000, Local1: 1, Local2: 2}}
	apply(t, sp[0], bgp.Desired{Peers: []bgp.Peer{self[0].peer(bird)}, Paths: bgp.NewPaths(p)})
	bird.WaitNextHops(prefix(vip), addr(hop1))
	r := bird.Routes()[0]
	if r.MED != 7 || r.Origin != "IGP" || r.Community != "(65000,1) (65000,2)" || r.ASPath != "65000" {
		t.Errorf("the switch has %+v", r)
	}
	// The default is what the controllers before us announced: their paths and ours merge.
	apply(t, sp[0], bgp.Desired{Peers: []bgp.Peer{self[0].peer(bird)}, Paths: bgp.NewPaths(path(vip, hop1))})
	bird.Wait("default attributes", func() bool {
		r := bird.Routes()[0]
		return r.MED == 0 && r.Origin == "Incomplete" && r.Community == ""
	})
}

// A switch may take a path without a MED for the worst (bestpath med missing-as-worst), so that one that is not demoted must have one, too;
// also where other peers are told something else of it.
func TestEveryPathIsSentWithAMED(t *testing.T) {
	parallel(t)
	bird, self, sp := startWithBird(t, 1, birdtest.Config{})
	termed := path("203.0.113.11/32", hop1)
	termed.Terms = []bgp.Terms{{Peer: "another", MED: 5}}
	ranked := path("203.0.113.12/32", hop1)
	ranked.MED = 5
	d := bgp.Desired{Peers: []bgp.Peer{self[0].peer(bird)}, Paths: bgp.NewPaths(path(vip, hop1), path(vip6, "2001:db8::1"), termed, ranked)}
	apply(t, sp[0], d)
	for _, demoted := range []uint32{0, bgp.DemotionMED} {
		d.Demoted = demoted > 0
		apply(t, sp[0], d)
		bird.Wait("a MED in every path", func() bool {
			routes := bird.Routes()
			return len(routes) == 4 && !slices.ContainsFunc(routes, func(r birdtest.Route) bool {
				own := demoted
				if r.Prefix == ranked.Prefix {
					own += ranked.MED
				}
				return !r.HasMED || r.MED != own
			})
		})
	}
}

func TestPlannedStopKeepsPathsAndDrainDropsThem(t *testing.T) {
	parallel(t)
	for _, detach := range []bool{true, false} {
		t.Run(fmt.Sprintf("detach=%t", detach), func(t *testing.T) {
			parallel(t)
			bird, self, sp := startWithBird(t, 1, birdtest.Config{})
			const two = "203.0.113.11/32"
			d := bgp.Desired{Peers: []bgp.Peer{self[0].peer(bird)}, Paths: bgp.NewPaths(path(vip, hop1), path(two, hop1), path(two, hop2))}
			apply(t, sp[0], d)
			bird.WaitNextHops(prefix(vip), addr(hop1))
			bird.WaitNextHops(prefix(two), addr(hop1), addr(hop2))
			if !detach {
				if err := sp[0].Drain(t.Context()); err != nil {
					t.Fatal(err)
				}
				bird.Wait("an empty table", func() bool { return len(bird.Routes()) == 0 })
				return
			}
			watched, watchedTwo := bird.Watch(prefix(vip)), bird.Watch(prefix(two))
			if err := sp[0].Detach(t.Context()); err != nil {
				t.Fatal(err)
			}
			bird.Wait("paths of the lost speaker to rank last", func() bool {
				return !slices.ContainsFunc(bird.Routes(), func(r birdtest.Route) bool { return !r.Stale || !r.LongLived })
			})
			next := self[0].start(t)
			apply(t, next, d)
			bird.WaitEstablished("s1")
			bird.Wait("fresh paths", func() bool {
				return !slices.ContainsFunc(bird.Routes(), func(r birdtest.Route) bool { return r.Stale })
			})
			seen := watched()
			if n, total := birdtest.Gaps(seen); n > 0 || len(seen) != 1 {
				t.Errorf("%d gaps, %s in all: %v", n, total, seen)
			}
			// Paths with different next hops rank last one after the other, and come again in an UPDATE each: in between one of them is alone.
			seen = watchedTwo()
			if n, total := birdtest.Gaps(seen); n > 0 || len(seen) > 5 {
				t.Errorf("two next hops: %d gaps, %s in all: %v", n, total, seen)
			}
		})
	}
}

// A connection that breaks is not a restart of the process, but the switch treats it as one: the session must return
// with the forwarding bit, or the switch drops the paths before it has the new ones.
func TestBrokenConnectionLeavesNoGap(t *testing.T) {
	parallel(t)
	bird, self, sp := startWithBird(t, 1, birdtest.Config{})
	paths := []bgp.Path{path(vip, hop1)}
	for i := range 2000 {
		paths = append(paths, path(fmt.Sprintf("203.0.%d.%d/32", 114+i/250, i%250), hop1))
	}
	d := bgp.Desired{Peers: []bgp.Peer{self[0].peer(bird)}, Paths: bgp.NewPaths(paths...)}
	apply(t, sp[0], d)
	last := listOf(d.Paths)[d.Paths.Len()-1].Prefix
	bird.WaitNextHops(last, addr(hop1))
	watched := bird.Watch(last)
	before := bird.Sessions()["s1"].Opened
	testkit.Until(t, "the session, of which GoBGP tells later than BIRD", func() bool { return sp[0].session(bird.Address()) != nil })
	if err := shutdownSocket(sp[0].session(bird.Address()).tuple); err != nil {
		t.Fatal(err)
	}
	broken := time.Now()
	bird.Wait("a new session", func() bool {
		s := bird.Sessions()["s1"]
		return s.Established && s.Opened != before
	})
	bird.Wait("fresh paths", func() bool {
		return !slices.ContainsFunc(bird.Routes(), func(r birdtest.Route) bool { return r.Stale })
	})
	t.Logf("back after %s", time.Since(broken).Round(time.Millisecond))
	if caps := bird.Command("show protocols all s1"); !strings.Contains(caps, "AF preserved: ipv4 ipv6") {
		t.Errorf("the speaker does not say that nodes forwarded meanwhile:\n%s", caps)
	}
	if seen := watched(); len(seen) != 1 {
		n, total := birdtest.Gaps(seen)
		t.Errorf("%d gaps, %s in all", n, total)
	}
}

func TestPeersComeAndGoWithoutBouncingOthers(t *testing.T) {
	parallel(t)
	s := newSelf(t, 1)
	one := birdtest.Start(t, birdtest.Config{Neighbors: []birdtest.Neighbor{s.neighbor()}})
	two := birdtest.Start(t, birdtest.Config{Address: addr("127.0.0.2"), Neighbors: []birdtest.Neighbor{s.neighbor()}})
	sp := s.start(t)
	d := bgp.Desired{Peers: []bgp.Peer{s.peer(one)}, Paths: bgp.NewPaths(path(vip, hop1))}
	apply(t, sp, d)
	one.WaitNextHops(prefix(vip), addr(hop1))
	opened := one.Sessions()["s1"].Opened

	d.Peers = append(d.Peers, s.peer(two))
	apply(t, sp, d)
	two.WaitNextHops(prefix(vip), addr(hop1))

	// A change that needs a new session bounces that peer only, and even there the path stays.
	watched := two.Watch(prefix(vip))
	before := two.Sessions()["s1"].Opened
	d.Peers[1].HoldTime = 12 * time.Second
	apply(t, sp, d)
	two.Wait("a new session", func() bool {
		s := two.Sessions()["s1"]
		return s.Established && s.Opened != before
	})
	two.WaitNextHops(prefix(vip), addr(hop1))
	if n, total := birdtest.Gaps(watched()); n > 0 {
		t.Errorf("%d gaps at the peer that changed, %s in all", n, total)
	}

	// One that needs none bounces nobody.
	before = two.Sessions()["s1"].Opened
	d.Peers[1].ConnectRetry = 2 * time.Second
	d.Peers[1].Name = "other"
	apply(t, sp, d)
	d.Peers = d.Peers[:1]
	watch := two.Sessions()["s1"].Opened
	apply(t, sp, d)
	two.Wait("an empty table", func() bool { return len(two.Routes()) == 0 })
	if watch != before {
		t.Errorf("for a change that needs no new session the session was opened %d times, before %d", watch, before)
	}
	if now := one.Sessions()["s1"].Opened; now != opened {
		t.Errorf("the session with the first switch bounced: opened %d times, before %d", now, opened)
	}
}

func TestDemotionMovesAllPrefixesAtOnce(t *testing.T) {
	noRaceDetector(t)
	parallel(t)
	const n = 5000
	bird, self, sp := startWithBird(t, 2, birdtest.Config{})
	nth := func(i int) netip.Prefix { return prefix(fmt.Sprintf("203.0.%d.%d/32", i/250, i%250)) }
	var desired [2]bgp.Desired
	for i := range 2 {
		desired[i].Peers = []bgp.Peer{self[i].peer(bird)}
		var paths []bgp.Path
		for j := range n {
			paths = append(paths,
				bgp.Path{Prefix: nth(j), NextHop: addr(fmt.Sprintf("198.51.100.%d", 10+2*i))},
				bgp.Path{Prefix: nth(j), NextHop: addr(fmt.Sprintf("198.51.100.%d", 11+2*i))})
		}
		desired[i].Paths = bgp.NewPaths(paths...)
		apply(t, sp[i], desired[i])
	}
	// all waits until every prefix goes to the next hops of the speakers given.
	all := func(speakers ...int) {
		t.Helper()
		var want []netip.Addr
		for _, i := range speakers {
			want = append(want, addr(fmt.Sprintf("198.51.100.%d", 10+2*i)), addr(fmt.Sprintf("198.51.100.%d", 11+2*i)))
		}
		bird.Wait(fmt.Sprintf("all prefixes at %v", want), func() bool {
			table := bird.ECMP()
			return len(table) >= n && !slices.ContainsFunc(table[:n], func(e birdtest.Entry) bool {
				return !slices.Equal(e.NextHops, want)
			})
		})
	}
	all(0, 1)
	sessions := bird.Sessions()
	watched := bird.Watch(nth(n - 1))
	sent := func(i int) uint64 {
		st, err := sp[i].Peers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return st[0].UpdatesSent
	}

	before, start := sent(0), time.Now()
	desired[0].Demoted = true
	apply(t, sp[0], desired[0])
	t.Logf("written after %s", time.Since(start).Round(time.Millisecond))
	all(1)
	t.Logf("demoted: %d updates, seen after %s", sent(0)-before, time.Since(start).Round(time.Millisecond))
	if u := sent(0) - before; u > 60 {
		t.Errorf("%d updates for %d prefixes", u, n)
	}

	// Paths that come while the policy is on are demoted as well; those that change stay so.
	extra := prefix("203.0.200.1/32")
	for i := range 2 {
		desired[i].Paths = bgp.NewPaths(append(slices.Collect(desired[i].Paths.All()), bgp.Path{Prefix: extra, NextHop: addr(fmt.Sprintf("198.51.100.%d", 10+2*i))})...)
		paths := listOf(desired[i].Paths)
		paths[0].Communities = []bgp.Community{1}
		desired[i].Paths = bgp.NewPaths(paths...)
		apply(t, sp[i], desired[i])
	}
	bird.WaitNextHops(extra, addr("198.51.100.12"))
	all(1)

	// When the other one is gone, demoted paths serve.
	if err := sp[1].Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	all(0)
	sp[1] = self[1].start(t)
	apply(t, sp[1], desired[1])
	bird.WaitEstablished("s2")
	all(1)

	// Two resets at once.
	before = sent(0)
	desired[0].Demoted = false
	if err := sp[0].Apply(t.Context(), desired[0]); err != nil {
		t.Fatal(err)
	}
	desired[0].Demoted = true
	if err := sp[0].Apply(t.Context(), desired[0]); err != nil {
		t.Fatal(err)
	}
	desired[0].Demoted = false
	apply(t, sp[0], desired[0])
	all(0, 1)
	if u := sent(0) - before; u > 180 {
		t.Errorf("%d updates for three resets of %d prefixes", u, n)
	}
	if seen := watched(); slices.ContainsFunc(seen, func(s birdtest.Seen) bool { return len(s.NextHops) == 0 }) {
		t.Errorf("a prefix was missing: %v", seen)
	}
	if now := bird.Sessions()["s1"].Opened; now != sessions["s1"].Opened {
		t.Errorf("the session bounced: opened %d times, before %d", now, sessions["s1"].Opened)
	}
	if d := sp[0].logger.dropped.Load(); d != 0 {
		t.Errorf("%d updates dropped", d)
	}
}

func TestDemotionOfOnePeerLeavesTheOther(t *testing.T) {
	parallel(t)
	a, b := newSelf(t, 1), newSelf(t, 2)
	neighbors := []birdtest.Neighbor{a.neighbor(), b.neighbor()}
	one := birdtest.Start(t, birdtest.Config{Neighbors: neighbors})
	two := birdtest.Start(t, birdtest.Config{Address: addr("127.0.0.2"), Neighbors: neighbors})
	var desired [2]bgp.Desired
	speakers := []*Speaker{a.start(t), b.start(t)}
	for i, s := range []self{a, b} {
		desired[i] = bgp.Desired{
			Peers: []bgp.Peer{s.peer(one), s.peer(two)},
			Paths: bgp.NewPaths(path(vip, []string{hop1, hop2}[i])),
		}
		apply(t, speakers[i], desired[i])
	}
	one.WaitNextHops(prefix(vip), addr(hop1), addr(hop2))
	two.WaitNextHops(prefix(vip), addr(hop1), addr(hop2))
	count := two.Sessions()["s1"].Updates
	desired[0].Peers[0].Demoted = true
	apply(t, speakers[0], desired[0])
	one.WaitNextHops(prefix(vip), addr(hop2))
	if got := two.NextHops(prefix(vip)); len(got) != 2 || two.Sessions()["s1"].Updates != count {
		t.Errorf("the other switch was touched: %v, %d updates", got, two.Sessions()["s1"].Updates-count)
	}
	out, err := speakers[0].AdjOut(t.Context(), one.Address())
	if err != nil || len(out) != 1 || out[0].MED != bgp.DemotionMED {
		t.Errorf("sent to the first: %+v, %v", out, err)
	}
	desired[0].Peers[0].Demoted = false
	apply(t, speakers[0], desired[0])
	one.WaitNextHops(prefix(vip), addr(hop1), addr(hop2))
}

func TestDemotionLowersLocalPrefForIBGP(t *testing.T) {
	parallel(t)
	bird, self, sp := startWithBird(t, 2, birdtest.Config{ASN: 65000})
	var desired [2]bgp.Desired
	for i := range 2 {
		desired[i] = bgp.Desired{Peers: []bgp.Peer{self[i].peer(bird)}, Paths: bgp.NewPaths(path(vip, []string{hop1, hop2}[i]))}
		apply(t, sp[i], desired[i])
	}
	bird.WaitNextHops(prefix(vip), addr(hop1), addr(hop2))
	desired[0].Demoted = true
	apply(t, sp[0], desired[0])
	bird.WaitNextHops(prefix(vip), addr(hop2))
	for _, r := range bird.Routes() {
		want := map[string]uint32{"s1": bgp.DemotedLocalPref, "s2": 100}[r.Protocol]
		if r.LocalPref != want {
			t.Errorf("local preference of %s is %d, want %d", r.Protocol, r.LocalPref, want)
		}
	}
}
