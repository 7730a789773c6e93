// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// told4 is a peer that was told several paths of each prefix, or one.
func told4(addPath bool) Told {
	how := Told{Sent: []Family{IPv4}}
	if addPath {
		how.AddPath = how.Sent
	}
	return how
}

// What a peer was told is right if it was told just the paths that there are, whatever the numbers that they bear on the wire, and was told so
// in whatever order; and wrong, until that is mended, if it has one that is over, or lacks one.
func TestPropertyWhatAPeerHasBesideItsPathsIsWrong(t *testing.T) {
	p := netip.MustParsePrefix(prefixes[0])
	hop := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}) }
	testkit.Check(t, func(t *rapid.T) {
		addPath := rapid.Bool().Draw(t, "add-path")
		r, has := NewAdjRIBOut(), map[uint32]int{}
		for range rapid.IntRange(0, 8).Draw(t, "updates") {
			id := rapid.Uint32Range(0, 3).Draw(t, "id")
			if !addPath {
				id = 0
			}
			if n := rapid.IntRange(0, 3).Draw(t, "hop"); n > 0 {
				r.Announced(p, id, hop(n))
				has[id] = n
			} else {
				r.Withdrawn(p, id)
				delete(has, id)
			}
		}
		var paths []Path
		for _, n := range rapid.SliceOfN(rapid.IntRange(1, 3), 0, 4).Draw(t, "paths") {
			paths = append(paths, Path{Prefix: p, NextHop: hop(n)})
		}
		r.Expect(p, DueOf(slices.Values(paths)))
		left, lacks := map[int]int{}, 0
		for _, path := range paths {
			left[int(path.NextHop.As4()[3])]++
		}
		over := false
		for _, n := range has {
			left[n]--
			over = over || left[n] < 0
		}
		for _, n := range left {
			lacks += max(n, 0)
		}
		right := !over && (lacks == 0 || !addPath && len(has) == 1)
		for range 2 {
			if wrong := r.Wrong(told4(addPath)); (len(wrong) == 0) != right {
				t.Fatalf("the peer has %v of %v, and wrong is %v", has, paths, wrong)
			}
		}
	})
}

// A peer may be left out of a path that is withheld, but has none that is over.
func TestWithheldPathsMayBeTold(t *testing.T) {
	p, one, two := netip.MustParsePrefix(prefixes[0]), netip.MustParseAddr(hops4[0]), netip.MustParseAddr(hops4[1])
	for name, c := range map[string]struct {
		told  []netip.Addr
		wrong bool
	}{
		"neither":       {nil, true},
		"the other":     {[]netip.Addr{one}, false},
		"both":          {[]netip.Addr{one, two}, false},
		"it alone":      {[]netip.Addr{two}, true},
		"it twice":      {[]netip.Addr{one, two, two}, true},
		"one that went": {[]netip.Addr{one, netip.MustParseAddr(hops4[2])}, true},
	} {
		r := NewAdjRIBOut()
		for i, hop := range c.told {
			r.Announced(p, uint32(i+1), hop)
		}
		r.Expect(p, DueOf(slices.Values([]Path{{Prefix: p, NextHop: two, Withheld: true}, {Prefix: p, NextHop: one}})))
		if wrong := len(r.Wrong(told4(true))) > 0; wrong != c.wrong {
			t.Errorf("told of %s the peer was told wrong: %t", name, wrong)
		}
	}
}

// A session between link-local addresses names one next hop for all paths: they are counted. One of another family is told nothing.
func TestPathsWithOneNextHopAreCounted(t *testing.T) {
	p, own := netip.MustParsePrefix(prefixes[0]), netip.MustParseAddr("fe80::1")
	paths := []Path{{Prefix: p, NextHop: netip.MustParseAddr(hops4[0])}, {Prefix: p, NextHop: netip.MustParseAddr(hops4[1])}}
	how := told4(true)
	how.OwnHop = true
	for n := range uint32(4) {
		r := NewAdjRIBOut()
		for id := range n {
			r.Announced(p, id+1, own)
		}
		r.Expect(p, DueOf(slices.Values(paths)))
		if wrong := len(r.Wrong(how)) > 0; wrong != (n != 2) {
			t.Errorf("with %d of 2 paths it was told wrong: %t", n, wrong)
		}
	}
	r := NewAdjRIBOut()
	r.Expect(p, DueOf(slices.Values(paths)))
	if wrong := r.Wrong(Told{Sent: []Family{IPv6}, AddPath: []Family{IPv6}}); len(wrong) > 0 {
		t.Errorf("a peer of IPv6 alone was told wrong of %v", wrong)
	}
}
