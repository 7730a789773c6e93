// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/testswitch"
	"fairlead.io/fairlead/internal/testkit"
)

// dialler starts a speaker that listens nowhere and dials from any address, as members on a laptop do.
func dialler(t testing.TB, n int) *Speaker {
	t.Helper()
	s, err := New(Config{ASN: 65000, RouterID: routerID(n), Logger: testLogger(t, fmt.Sprintf("speaker %d", n))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Drain(t.Context()) })
	return s
}

func routerID(n int) netip.Addr { return addr(fmt.Sprintf("192.0.2.%d", 10+n)) }

func startSwitch(t *testing.T, speakers int) *testswitch.Switch {
	t.Helper()
	c := testswitch.Config{HoldTime: time.Hour} // what speakers ask for counts
	for i := range speakers {
		c.Neighbors = append(c.Neighbors, testswitch.Neighbor{RouterID: routerID(i), ASN: 65000})
	}
	s, err := testswitch.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func switchPeer(s *testswitch.Switch) bgp.Peer {
	return bgp.Peer{
		Name: "switch", Address: s.Addr().Addr(), Port: s.Addr().Port(), RemoteASN: s.ASN(),
		Families: []bgp.Family{bgp.IPv4, bgp.IPv6},
	}
}

func waitRIB(t interface{ Fatalf(string, ...any) }, s *testswitch.Switch, want []testswitch.Entry) {
	deadline := time.After(testkit.Patience)
	for {
		got := s.RIB()
		if len(got) == len(want) && (len(want) == 0 || reflect.DeepEqual(got, want)) {
			return
		}
		select {
		case <-s.Changed():
		case <-deadline:
			t.Fatalf("the switch has %v, want %v", got, want)
		}
	}
}

func entry(p string, hops ...string) testswitch.Entry {
	e := testswitch.Entry{Prefix: prefix(p)}
	for _, h := range hops {
		e.NextHops = append(e.NextHops, addr(h))
	}
	return e
}

// A peer that is to be sent one path of a prefix is sent one, also of what there was before the session opened.
func TestSendMaxOfOneIsOnePath(t *testing.T) {
	parallel(t)
	for most, want := range map[uint8]int{1: 1, 0: 2} {
		s, speaker := startSwitch(t, 1), dialler(t, 0)
		peer := switchPeer(s)
		peer.SendMax = most
		paths := []bgp.Path{path(vip, hop1), path(vip, hop2)}
		apply(t, speaker, bgp.Desired{Paths: bgp.NewPaths(paths...)})
		apply(t, speaker, bgp.Desired{Paths: bgp.NewPaths(paths...), Peers: []bgp.Peer{peer}})
		testkit.Until(t, "the first table", func() bool { return len(s.RIB()) == 1 })
		paths = append(paths, path("203.0.113.99/32", hop1), path("203.0.113.99/32", hop2))
		apply(t, speaker, bgp.Desired{Paths: bgp.NewPaths(paths...), Peers: []bgp.Peer{peer}})
		testkit.Until(t, "what came later", func() bool {
			rib := s.RIB()
			return len(rib) == 2 && len(rib[1].NextHops) == want
		})
		if first := s.RIB()[0]; len(first.NextHops) != want {
			t.Errorf("send max %d: of what there was the switch has %v", most, first)
		}
	}
}

// Whatever three speakers are told, one after the other, the switch sends packets where the best of all paths point,
// no session bounces, and telling a speaker what it was told already sends nothing.
func TestPropertySwitchFollowsWhatSpeakersAreTold(t *testing.T) {
	parallel(t)
	const n = 3
	sw := startSwitch(t, n)
	var speakers [n]*Speaker
	for i := range speakers {
		speakers[i] = dialler(t, i)
	}
	for i := range speakers {
		apply(t, speakers[i], bgp.Desired{Peers: []bgp.Peer{switchPeer(sw)}})
	}
	testkit.Until(t, "sessions", func() bool {
		return !slices.ContainsFunc(sw.Peers(), func(p testswitch.PeerStatus) bool { return !p.Established })
	})
	opened := sw.Peers()
	testkit.Check(t, func(rt *rapid.T) {
		var told [n]bgp.Desired
		for i := range told {
			told[i].Peers = []bgp.Peer{switchPeer(sw)}
			if err := speakers[i].Apply(t.Context(), told[i]); err != nil {
				rt.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 6).Draw(rt, "changes") {
			i := rapid.IntRange(0, n-1).Draw(rt, "speaker")
			told[i].Paths = bgp.NewPaths(genPaths().Draw(rt, "paths")...)
			told[i].Demoted = rapid.Bool().Draw(rt, "demoted")
			if err := speakers[i].Apply(t.Context(), told[i]); err != nil {
				rt.Fatal(err)
			}
			if rapid.Bool().Draw(rt, "look") {
				waitRIB(rt, sw, merged(told[:]))
			}
		}
		waitRIB(rt, sw, merged(told[:]))
		for i, s := range speakers {
			if o, err := s.everything(t.Context()); err != nil {
				rt.Fatal(err)
			} else if steps, _ := bgp.Plan(65000, told[i], o); len(steps) > 0 {
				rt.Fatalf("told again, speaker %d would %v", i, steps)
			}
		}
		for i, p := range sw.Peers() {
			if p.Since != opened[i].Since {
				rt.Fatalf("session of %s bounced at %s", p.RouterID, p.Since)
			}
		}
	})
}

func genPaths() *rapid.Generator[[]bgp.Path] {
	one := rapid.Custom(func(t *rapid.T) bgp.Path {
		p := bgp.Path{Prefix: prefix(rapid.SampledFrom([]string{vip, "203.0.113.11/32", vip6}).Draw(t, "prefix"))}
		hops := []string{hop1, hop2, "192.0.2.11"}
		if p.Prefix.Addr().Is6() {
			hops = []string{"2001:db8::11", "2001:db8::12"}
		}
		p.NextHop = addr(rapid.SampledFrom(hops).Draw(t, "next hop"))
		p.MED = rapid.SampledFrom([]uint32{0, 0, 0, 5}).Draw(t, "med")
		return p
	})
	return rapid.SliceOfNDistinct(one, 0, 6, func(p bgp.Path) string { return p.String() })
}

// merged says where packets go if everybody announces what it was told.
func merged(told []bgp.Desired) []testswitch.Entry {
	best := map[netip.Prefix]uint64{}
	hops := map[netip.Prefix]map[netip.Addr]bool{}
	for _, d := range told {
		for p := range d.Paths.All() {
			cost := uint64(p.MED)
			if d.Demoted {
				cost += 1 << 20
			}
			if old, ok := best[p.Prefix]; !ok || cost < old {
				best[p.Prefix], hops[p.Prefix] = cost, map[netip.Addr]bool{}
			}
			if cost == best[p.Prefix] {
				hops[p.Prefix][p.NextHop] = true
			}
		}
	}
	var out []testswitch.Entry
	for p, h := range hops {
		e := testswitch.Entry{Prefix: p}
		for a := range h {
			e.NextHops = append(e.NextHops, a)
		}
		slices.SortFunc(e.NextHops, netip.Addr.Compare)
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b testswitch.Entry) int { return a.Prefix.Compare(b.Prefix) })
	return out
}

func TestOneChangeIsOneUpdate(t *testing.T) {
	parallel(t)
	sw := startSwitch(t, 1)
	s := dialler(t, 0)
	d := bgp.Desired{Peers: []bgp.Peer{switchPeer(sw)}}
	for i := range 100 {
		d.Paths = bgp.NewPaths(append(slices.Collect(d.Paths.All()), path(fmt.Sprintf("203.0.113.%d/32", i), hop1))...)
	}
	apply(t, s, d)
	testkit.Until(t, "the table", func() bool { return len(sw.RIB()) == 100 })
	before := sw.Peers()[0].Updates
	paths := listOf(d.Paths)
	paths[7].NextHop = addr(hop2) // one path comes, one goes
	d.Paths = bgp.NewPaths(paths...)
	apply(t, s, d)
	apply(t, s, d)
	testkit.Until(t, "the change", func() bool { return sw.RIB()[7].NextHops[0] == addr(hop2) && len(sw.RIB()[7].NextHops) == 1 })
	if n := sw.Peers()[0].Updates - before; n != 2 {
		t.Errorf("%d updates", n)
	}
}

func TestSwitchDropsPathsOfADrainedSpeakerAndRanksLostOnesLast(t *testing.T) {
	noRaceDetector(t)
	parallel(t)
	sw := startSwitch(t, 2)
	var s [2]*Speaker
	var d [2]bgp.Desired
	for i := range s {
		s[i] = dialler(t, i)
		d[i] = bgp.Desired{Peers: []bgp.Peer{switchPeer(sw)}, Paths: bgp.NewPaths(path(vip, []string{hop1, hop2}[i]))}
		apply(t, s[i], d[i])
	}
	waitRIB(t, sw, []testswitch.Entry{entry(vip, hop1, hop2)})
	if err := s[0].Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitRIB(t, sw, []testswitch.Entry{entry(vip, hop2)}) // after the restart time
	if err := s[1].Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitRIB(t, sw, []testswitch.Entry{entry(vip, hop1)}) // better than nothing
	s[0] = dialler(t, 0)
	d[0].Paths = bgp.NewPaths(path(vip, hop2))
	apply(t, s[0], d[0])
	waitRIB(t, sw, []testswitch.Entry{entry(vip, hop2)})
	if r := sw.Routes(); len(r) != 1 || r[0].Stale {
		t.Errorf("routes %+v", r)
	}
}

func TestSwitchThatRestartsGetsTheWholeTable(t *testing.T) {
	parallel(t)
	sw := startSwitch(t, 1)
	s := dialler(t, 0)
	apply(t, s, bgp.Desired{Peers: []bgp.Peer{switchPeer(sw)}, Paths: bgp.NewPaths(path(vip, hop1), path(vip6, "2001:db8::1"))})
	want := []testswitch.Entry{entry(vip, hop1), entry(vip6, "2001:db8::1")}
	waitRIB(t, sw, want)
	at := sw.Addr()
	if err := sw.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := testswitch.Start(testswitch.Config{
		Listen: at, Neighbors: []testswitch.Neighbor{{RouterID: routerID(0), ASN: 65000}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	waitRIB(t, again, want)
}

func TestSwitchRefusesStrangers(t *testing.T) {
	parallel(t)
	sw := startSwitch(t, 1)
	s := dialler(t, 5)
	if err := s.Apply(t.Context(), bgp.Desired{Peers: []bgp.Peer{switchPeer(sw)}, Paths: bgp.NewPaths(path(vip, hop1))}); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "an attempt", func() bool {
		st, err := s.Peers(t.Context())
		return err == nil && len(st) == 1 && st[0].Fault.Code == faultRefused
	})
	if len(sw.RIB()) != 0 {
		t.Errorf("accepted %v", sw.RIB())
	}
	sw.AddNeighbor(testswitch.Neighbor{RouterID: routerID(5), ASN: 65000})
	waitRIB(t, sw, []testswitch.Entry{entry(vip, hop1)})
}

// What all that is announced is compared with leaves over what is not as it should be, whoever changed it.
func TestPropertyComparingFindsWhatIsNotAnnouncedAsWanted(t *testing.T) {
	parallel(t)
	s := dialler(t, 0)
	testkit.Check(t, func(rt *rapid.T) {
		before, now := genPaths().Draw(rt, "before"), genPaths().Draw(rt, "now")
		if err := s.Apply(t.Context(), bgp.Desired{Paths: bgp.NewPaths(before...)}); err != nil {
			rt.Fatal(err)
		}
		for _, list := range [][]bgp.Path{before, now} {
			slices.SortFunc(list, bgp.Path.Compare)
		}
		s.atOnce = rapid.IntRange(1, 3).Draw(rt, "read back at once")
		other, observed, err := s.compare(t.Context(), bgp.NewPaths(now...))
		if want := bgp.NewPaths(now...).Differing(bgp.NewPaths(before...)); err != nil || !slices.Equal(other, want) {
			rt.Fatalf("not announced as wanted: %v, %v, want %v", other, err, want)
		}
		if there := bgp.AssignPathIDs(listOf(bgp.NewPaths(before...).Only(other))); !slices.EqualFunc(observed.Paths, there, bgp.Path.Equal) {
			rt.Fatalf("found %v, there are %v", observed.Paths, there)
		}
	})
}
