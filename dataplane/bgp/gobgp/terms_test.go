// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"fmt"
	"slices"
	"testing"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/birdtest"
)

// Each switch gets what is for it, under its own attributes, with ADD-PATH and without. What changes for one of them is neither a
// new session nor a gap for the others, and not an UPDATE about other paths.
func TestPeersAreAnnouncedWhatIsForThem(t *testing.T) {
	parallel(t)
	s := newSelf(t, 1)
	one := birdtest.Start(t, birdtest.Config{Neighbors: []birdtest.Neighbor{s.neighbor()}})
	two := birdtest.Start(t, birdtest.Config{Address: addr("127.0.0.2"), NoAddPath: true, Neighbors: []birdtest.Neighbor{s.neighbor()}})
	sp := s.start(t)
	first, second := s.peer(one), s.peer(two)
	first.Name, second.Name = "one", "two"
	all, only, shared := path(vip, hop1), path("203.0.113.11/32", hop1), path("203.0.113.12/32", hop1)
	only.Withheld, only.Terms = true, []bgp.Terms{{Peer: "one", MED: 5}}
	shared.Communities, shared.LargeCommunities = []bgp.Community{65000<<16 | 1}, []bgp.LargeCommunity{{Global: 65000, Local1: 1, Local2: 1}}
	shared.Terms = []bgp.Terms{{Peer: "two", MED: 7, Communities: []bgp.Community{65000<<16 | 2, 65000<<16 | 3}}}
	d := bgp.Desired{Peers: []bgp.Peer{first, second}, Paths: bgp.NewPaths(all, only, shared)}
	apply(t, sp, d)
	has := func(b *birdtest.Bird, want ...string) {
		t.Helper()
		b.Wait(fmt.Sprint(want), func() bool {
			var have []string
			for _, r := range b.Routes() {
				have = append(have, fmt.Sprintf("%s %d %s%s", r.Prefix.Addr(), r.MED, r.Community, r.LargeCommunity))
			}
			slices.Sort(have)
			return slices.Equal(have, want)
		})
	}
	has(one, "203.0.113.10 0 ", "203.0.113.11 5 ", "203.0.113.12 0 (65000,1)(65000, 1, 1)")
	has(two, "203.0.113.10 0 ", "203.0.113.12 7 (65000,2) (65000,3)")

	watchedOne, watchedTwo := one.Watch(all.Prefix), two.Watch(all.Prefix)
	before := []birdtest.Session{one.Sessions()["s1"], two.Sessions()["s1"]}
	only.Terms = []bgp.Terms{{Peer: "two", MED: 6}} // moved from one to the other
	d.Paths = bgp.NewPaths(all, only, shared)
	apply(t, sp, d)
	has(one, "203.0.113.10 0 ", "203.0.113.12 0 (65000,1)(65000, 1, 1)")
	has(two, "203.0.113.10 0 ", "203.0.113.11 6 ", "203.0.113.12 7 (65000,2) (65000,3)")
	d.Demoted = true
	apply(t, sp, d)
	has(two, "203.0.113.10 1000000000 ", "203.0.113.11 1000000006 ", "203.0.113.12 1000000007 (65000,2) (65000,3)")
	d.Demoted = false
	apply(t, sp, d)
	for i, b := range []*birdtest.Bird{one, two} {
		if now := b.Sessions()["s1"]; now.Opened != before[i].Opened {
			t.Errorf("switch %d: the session bounced: %+v, was %+v", i, now, before[i])
		}
	}
	for _, watched := range []func() []birdtest.Seen{watchedOne, watchedTwo} {
		if n, total := birdtest.Gaps(watched()); n > 0 {
			t.Errorf("%d gaps, %s in all", n, total)
		}
	}
	if steps, err := bgp.Plan(65000, d, mustObserve(t, sp)); len(steps) > 0 || err != nil {
		t.Errorf("what is there would be changed: %v, %v", steps, err)
	}

	// A peer that goes by another name is another one to terms.
	d.Peers[0].Name, d.Peers[1].Name = "two", "one"
	if err := sp.Apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	has(one, "203.0.113.10 0 ", "203.0.113.11 6 ", "203.0.113.12 7 (65000,2) (65000,3)")
	has(two, "203.0.113.10 0 ", "203.0.113.12 0 (65000,1)(65000, 1, 1)")
}

// A peer that goes by another name keeps its session where it is sent the same: because the terms name both names, or follow the name.
func TestARenamedPeerKeepsItsSession(t *testing.T) {
	parallel(t)
	for name, before := range map[string][]string{"both-names-are-meant": {"old", "new"}, "terms-follow": {"old"}} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			bird, self, sp := startWithBird(t, 1, birdtest.Config{})
			d := bgp.Desired{Peers: []bgp.Peer{self[0].peer(bird)}}
			set := func(peer string, meant []string) {
				d.Peers[0].Name = peer
				var paths []bgp.Path
				for i, withheld := range []bool{true, false} {
					p := path(fmt.Sprintf("203.0.113.1%d/32", i), hop1)
					p.Withheld = withheld
					for _, one := range meant {
						p.Terms = append(p.Terms, bgp.Terms{Peer: one, MED: 5})
					}
					paths = append(paths, p)
				}
				d.Paths = bgp.NewPaths(paths...)
				apply(t, sp[0], d)
			}
			has := func(n int) {
				t.Helper()
				bird.Wait(fmt.Sprint(n, " paths under terms"), func() bool {
					routes := bird.Routes()
					return len(routes) == n && !slices.ContainsFunc(routes, func(r birdtest.Route) bool { return r.MED != 5 })
				})
			}
			set("old", before)
			has(2)
			opened, watched := bird.Sessions()["s1"].Opened, bird.Watch(prefix(vip))
			after := before
			if len(before) == 1 {
				after = []string{"new"}
			}
			set("new", after)
			has(2)
			d.Paths = bgp.NewPaths(listOf(d.Paths)[1:]...)
			apply(t, sp[0], d)
			has(1)
			if n, total := birdtest.Gaps(watched()); n > 1 { // the last one is its end
				t.Errorf("%d gaps, %s in all", n-1, total)
			}
			if now := bird.Sessions()["s1"].Opened; now != opened {
				t.Errorf("the session opened at %v, and again at %v", opened, now)
			}
		})
	}
}

// GoBGP packs paths of equal attributes into UPDATEs, and drops those that do not fit: attributes that come with terms are counted.
func TestTermsOfManyPathsFitIntoUpdates(t *testing.T) {
	parallel(t)
	bird, self, sp := startWithBird(t, 1, birdtest.Config{})
	d := bgp.Desired{Peers: []bgp.Peer{self[0].peer(bird)}}
	var many []bgp.Community
	for i := range 100 {
		many = append(many, bgp.Community(65000<<16|i))
	}
	var paths []bgp.Path
	for i := range 2000 {
		p := path(fmt.Sprintf("203.0.%d.%d/32", 114+i/250, i%250), hop1)
		p.Withheld, p.Terms = true, []bgp.Terms{{Peer: "switch", Communities: many}}
		paths = append(paths, p)
	}
	d.Paths = bgp.NewPaths(paths...)
	apply(t, sp[0], d)
	bird.Wait("2000 paths", func() bool { return len(bird.Routes()) == 2000 })
	d.Demoted = true
	apply(t, sp[0], d)
	bird.Wait("2000 demoted paths", func() bool {
		return !slices.ContainsFunc(bird.Routes(), func(r birdtest.Route) bool { return r.MED != bgp.DemotionMED })
	})
}
