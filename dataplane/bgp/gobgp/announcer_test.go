// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/appliedstate"
	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/internal/testkit"
)

// member is the owner of a speaker: a record, and how long ago it heard of a leader.
type member struct {
	self    self
	routes  atomic.Pointer[bgp.Routes]
	changed chan struct{}
	commit  atomic.Uint64
	heard   atomic.Int64 // Unix time in nanoseconds; 0: never
}

func (m *member) Routes() bgp.Routes       { return *m.routes.Load() }
func (m *member) Changed() <-chan struct{} { return m.changed }

func (m *member) set(r bgp.Routes) {
	m.routes.Store(&r)
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

func (m *member) Contact() bgp.Contact {
	c := bgp.Contact{Silence: bgp.Never, Commit: m.commit.Load(), Applied: m.Routes().Revision.Index}
	if at := m.heard.Load(); at != 0 {
		c.Silence = time.Since(time.Unix(0, at))
	}
	return c
}

// hear keeps the member in contact until the returned function is called.
func (m *member) hear(commit uint64) (stop func()) {
	m.commit.Store(commit)
	m.heard.Store(time.Now().UnixNano())
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for ctx.Err() == nil {
			m.heard.Store(time.Now().UnixNano())
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return cancel
}

// run starts a speaker and an announcer, as a process of the member does, until the returned function is called.
func (m *member) run(t *testing.T, folder string, rules bgp.Rules) (a *bgp.Announcer, stop func()) {
	t.Helper()
	sp := m.self.start(t)
	a = bgp.NewAnnouncer(bgp.AnnouncerConfig{
		Source: m, Group: m, Speaker: sp, Store: appliedstate.In(folder, "group"), Rules: rules,
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = a.Run(ctx) }()
	return a, func() {
		cancel()
		<-done
		if err := sp.Detach(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// All members stop; one comes back alone, with a record far behind. The switch never loses a prefix: first it has stale
// paths, then those of the member, which are what it announced last and nothing in between, then the group's. That is so too where GoBGP
// has to wait for a processor after all that it writes. It runs before the others of this package and not beside them: with a load of 33 the switch
// had no path for 0.2 s once, which is what patience is for.
func TestAMemberAloneComesBackWithoutAGap(t *testing.T) {
	for name, late := range map[string]time.Duration{"at-once": 0, "late": still * 3 / 2} {
		t.Run(name, func(t *testing.T) {
			self := newSelf(t, 1)
			self.late = late
			comesBackAlone(t, self)
		})
	}
}

func comesBackAlone(t *testing.T, self self) {
	const n = 200
	bird := birdtest.Start(t, birdtest.Config{Neighbors: []birdtest.Neighbor{self.neighbor()}})
	m := &member{self: self, changed: make(chan struct{}, 1)}
	folder := t.TempDir()
	rules := bgp.Rules{RestartWindow: 2 * time.Second, DemoteAfter: time.Second, Quiet: 500 * time.Millisecond}
	peer := self.peer(bird)

	m.set(routes(100, peer, n, hop1))
	silent := m.hear(100)
	a, stop := m.run(t, folder, rules)
	last := prefix(fmt.Sprintf("203.0.113.%d/32", n-1))
	bird.WaitNextHops(last, addr(hop1))
	testkit.Until(t, "the report", func() bool { return a.Status().Announced == bgp.Revision{Epoch: 1, Index: 100} })
	watched := bird.Watch(last)
	stop()
	silent()

	m.heard.Store(0)
	m.commit.Store(0)
	m.set(routes(7, peer, n/2, hop2)) // the snapshot
	a, stop = m.run(t, folder, rules)
	bird.Wait("the last announced routes, demoted", func() bool {
		r := bird.Routes()
		return len(r) == n && !slices.ContainsFunc(r, func(r birdtest.Route) bool {
			return r.Stale || r.MED != bgp.DemotionMED || r.NextHop != addr(hop1)
		})
	})
	if s := a.Status(); !s.Demoted || !s.FromStored {
		t.Errorf("status %+v", s)
	}

	silent = m.hear(120)
	defer silent()
	m.set(routes(60, peer, n, hop2)) // on the way to what was announced: not announced
	m.set(routes(120, peer, n, "198.51.100.13"))
	bird.WaitNextHops(last, addr("198.51.100.13"))
	bird.Wait("its rank", func() bool { return bird.Routes()[0].MED == 0 })
	stop()
	seen := watched()
	if slices.ContainsFunc(seen, func(s birdtest.Seen) bool { return len(s.NextHops) == 0 || slices.Contains(s.NextHops, addr(hop2)) }) {
		t.Errorf("the switch sent packets to %v", seen)
	}
}

// A peer that is to be sent two of three paths is sent two, the same ones from each member, at any time: when the session opens, when attributes
// change, when nodes go and come. When the Service has gone it has nothing, and only then is that told.
func TestNoPeerIsSentMoreThanItsLimit(t *testing.T) {
	parallel(t)
	selves := []self{newSelf(t, 1), newSelf(t, 2)}
	bird := birdtest.Start(t, birdtest.Config{Neighbors: []birdtest.Neighbor{selves[0].neighbor(), selves[1].neighbor()}})
	var members []*member
	var announcers []*bgp.Announcer
	for i, self := range selves {
		m := &member{self: self, changed: make(chan struct{}, 1)}
		m.set(limitedRoutes(1, self.peer(bird), 7, "192.0.2.1", "192.0.2.2", "192.0.2.3"))
		defer m.hear(1)()
		a, stop := m.run(t, t.TempDir(), bgp.Rules{})
		defer stop()
		members, announcers = append(members, m), append(announcers, a)
		bird.WaitEstablished(selves[i].name())
	}
	watched := bird.Watch(prefix(vip))
	for index, c := range []struct {
		community bgp.Community
		hops      []string
	}{
		{7, []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}},
		{8, []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}},
		{9, []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}},
		{9, []string{"192.0.2.2", "192.0.2.3", "192.0.2.4"}},
		{9, []string{"192.0.2.5", "192.0.2.6", "192.0.2.7"}},
		{9, []string{"192.0.2.7"}},
		{9, nil},
	} {
		revision := uint64(index + 2)
		if len(c.hops) == 0 {
			if n, total := birdtest.Gaps(watched()); n > 0 {
				t.Errorf("%d gaps, %s in all", n, total)
			}
		}
		for i, m := range members {
			m.commit.Store(revision)
			m.set(limitedRoutes(revision, selves[i].peer(bird), c.community, c.hops...))
		}
		for _, a := range announcers {
			testkit.Until(t, fmt.Sprint("the report of ", revision), func() bool { return a.Status().Withdrawn.Index == revision })
		}
		told := map[string][]string{}
		for _, r := range bird.Routes() {
			told[r.Protocol] = append(told[r.Protocol], fmt.Sprint(r.NextHop, r.Community))
			if !slices.Contains(c.hops, r.NextHop.String()) || r.Community != fmt.Sprintf("(0,%d)", c.community) {
				t.Errorf("after %v the switch has %+v", c, r)
			}
		}
		one, two := told["s1"], told["s2"]
		slices.Sort(one)
		slices.Sort(two)
		if len(one) != min(2, len(c.hops)) || !slices.Equal(one, two) {
			t.Errorf("of %v the switch was told %v and %v", c, one, two)
		}
	}
}

func limitedRoutes(index uint64, peer bgp.Peer, community bgp.Community, hops ...string) bgp.Routes {
	peer.SendMax = 2
	r := bgp.Routes{Revision: bgp.Revision{Epoch: 1, Index: index}, Peers: []bgp.Peer{peer}}
	var paths []bgp.Path
	for _, hop := range hops {
		p := path(vip, hop)
		p.Communities = []bgp.Community{community}
		paths = append(paths, p)
	}
	r.Paths = bgp.NewPaths(paths...)
	return r
}

func routes(index uint64, peer bgp.Peer, n int, hop string) bgp.Routes {
	r := bgp.Routes{Revision: bgp.Revision{Epoch: 1, Index: index}, Peers: []bgp.Peer{peer}}
	for i := range n {
		r.Paths = bgp.NewPaths(append(slices.Collect(r.Paths.All()), path(fmt.Sprintf("203.0.113.%d/32", i), hop))...)
	}
	return r
}
