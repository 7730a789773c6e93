// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"net/netip"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/heap"
	"fairlead.io/fairlead/internal/testkit"
)

// listed draws paths, in order, no two of which are to one prefix by one next hop under one identifier.
func listed(t *rapid.T, name string) []Path {
	out := rapid.SliceOfN(genPath(), 0, 12).Draw(t, name)
	slices.SortFunc(out, Path.Compare)
	return slices.CompactFunc(out, func(p, q Path) bool { return p.Compare(q) == 0 })
}

// isList tells whether paths are those of a list, in order, by everything that tells.
func isList(t *rapid.T, paths Paths, list []Path) {
	t.Helper()
	if have := slices.Collect(paths.All()); !slices.EqualFunc(have, list, Path.Equal) || paths.Len() != len(list) {
		t.Fatalf("%d paths\n%v\nwant\n%v", paths.Len(), have, list)
	}
	var prefixes []netip.Prefix
	for _, p := range list {
		if !slices.Contains(prefixes, p.Prefix) {
			prefixes = append(prefixes, p.Prefix)
		}
		of := slices.DeleteFunc(slices.Clone(list), func(q Path) bool { return q.Prefix != p.Prefix })
		if have := paths.Of(p.Prefix); !slices.EqualFunc(have, of, Path.Equal) || !paths.Has(p.Prefix) {
			t.Fatalf("of %s there are %v, want %v", p.Prefix, have, of)
		}
		block := netip.PrefixFrom(p.Prefix.Addr(), max(0, p.Prefix.Addr().BitLen()-7))
		in := slices.DeleteFunc(slices.Clone(list), func(q Path) bool { return !q.Prefix.IsSingleIP() || !block.Contains(q.Prefix.Addr()) })
		if have := paths.In(block); !slices.EqualFunc(have, in, Path.Equal) {
			t.Fatalf("in %s there are %v, want %v", block, have, in)
		}
	}
	if have := slices.Collect(paths.Prefixes()); !slices.Equal(have, prefixes) {
		t.Fatalf("prefixes %v, want %v", have, prefixes)
	}
}

// Paths have what they were made of, in whatever order that was given; those that others were made from stay as they were.
func TestPropertyPathsAreTheirList(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		list := listed(t, "paths")
		paths := NewPaths(rapid.Permutation(list).Draw(t, "order")...)
		isList(t, paths, list)
		for range rapid.IntRange(0, 5).Draw(t, "changes") {
			now, touched := slices.Clone(list), []netip.Prefix{}
			others := listed(t, "others")
			for _, p := range slices.Concat(list, others) {
				if !slices.Contains(touched, p.Prefix) && rapid.Bool().Draw(t, "touched") {
					touched = append(touched, p.Prefix)
				}
			}
			of := func(prefix netip.Prefix) []Path {
				return slices.DeleteFunc(slices.Clone(others), func(p Path) bool { return p.Prefix != prefix })
			}
			now = slices.DeleteFunc(now, func(p Path) bool { return slices.Contains(touched, p.Prefix) })
			for _, prefix := range touched {
				now = append(now, of(prefix)...)
			}
			slices.SortFunc(now, Path.Compare)
			changed := paths.With(touched, of)
			isList(t, paths, list)
			isList(t, changed, now)
			paths, list = changed, now
		}
		some := slices.DeleteFunc(slices.Collect(paths.Prefixes()), func(netip.Prefix) bool { return rapid.Bool().Draw(t, "left out") })
		isList(t, paths.Only(some), slices.DeleteFunc(list, func(p Path) bool { return !slices.Contains(some, p.Prefix) }))
	})
}

// Prefixes have the next hops that they were given, however much alike those of others are.
func TestPropertyPathsByTheSameNextHopsAreToldApart(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		var list []Path
		var paths Paths
		for i := range rapid.IntRange(1, 12).Draw(t, "prefixes") {
			prefix := netip.PrefixFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}), 32)
			var own []Path
			for _, hop := range rapid.SliceOfNDistinct(rapid.ByteRange(1, 5), 1, 4, rapid.ID).Draw(t, "next hops") {
				own = append(own, Path{Prefix: prefix, NextHop: netip.AddrFrom4([4]byte{192, 0, 2, hop}), MED: rapid.Uint32Range(0, 1).Draw(t, "med")})
			}
			slices.SortFunc(own, Path.Compare)
			paths = paths.With([]netip.Prefix{prefix}, func(netip.Prefix) []Path { return own })
			list = append(list, own...)
		}
		isList(t, paths, list)
		isList(t, NewPaths(list...), list)
	})
}

// The prefixes that two differ in are those whose paths, as sets, are not the same.
func TestPropertyDifferingPrefixesAreFound(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		a := listed(t, "a")
		b := slices.Concat(a[:len(a)/2], listed(t, "b"))
		slices.SortFunc(b, Path.Compare)
		b = slices.CompactFunc(b, func(p, q Path) bool { return p.Compare(q) == 0 })
		want := map[netip.Prefix]bool{}
		for _, p := range slices.Concat(a, b) {
			if slices.ContainsFunc(a, p.Equal) != slices.ContainsFunc(b, p.Equal) {
				want[p.Prefix] = true
			}
		}
		one, other := NewPaths(a...), NewPaths(b...)
		got := one.Differing(other)
		if !slices.IsSortedFunc(got, inOrder) || len(got) != len(want) || one.Equal(other) != (len(want) == 0) {
			t.Fatalf("%v, want %v in order", got, want)
		}
		for _, p := range got {
			if !want[p] {
				t.Errorf("%s is the same in both", p)
			}
		}
	})
}

// manyPaths has 50,000 prefixes, each by four of a hundred nodes.
func manyPaths() (list []Path) {
	for i := range 50_000 {
		for hop := range 4 {
			list = append(list, Path{
				Prefix:  netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18 + byte(i>>16), byte(i >> 8), byte(i)}), 32),
				NextHop: netip.AddrFrom4([4]byte{192, 0, 3, byte((i + hop) % 100)}),
			})
		}
	}
	slices.SortFunc(list, Path.Compare)
	return list
}

// BenchmarkPathsHeld is what each of many paths takes.
func BenchmarkPathsHeld(b *testing.B) {
	list := manyPaths()
	for b.Loop() {
		before := heap.InUse()
		paths := NewPaths(list...)
		b.ReportMetric(float64(heap.InUse()-before)/float64(len(list)), "B/path")
		runtime.KeepAlive(paths)
	}
	runtime.KeepAlive(list)
}

// A change of one prefix among many costs its own memory, and that of the few nodes above it.
func BenchmarkPathsWith(b *testing.B) {
	list := manyPaths()
	paths, touched := NewPaths(list...), []netip.Prefix{list[len(list)/2].Prefix}
	b.ReportAllocs()
	for b.Loop() {
		paths = paths.With(touched, func(netip.Prefix) []Path { return list[len(list)/2 : len(list)/2+3] })
	}
}
