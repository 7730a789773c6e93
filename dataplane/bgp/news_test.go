// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The prefixes that two lists differ in are those whose paths, as sets, are not the same.
func TestPropertyDifferingPrefixesAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := func(name string) []Path {
			out := rapid.SliceOfN(genPath(), 0, 12).Draw(t, name)
			slices.SortFunc(out, Path.Compare)
			return slices.CompactFunc(out, func(p, q Path) bool { return p.Compare(q) == 0 })
		}
		a := list("a")
		b := slices.Concat(a[:len(a)/2], list("b"))
		slices.SortFunc(b, Path.Compare)
		b = slices.CompactFunc(b, func(p, q Path) bool { return p.Compare(q) == 0 })
		want := map[netip.Prefix]bool{}
		for _, p := range slices.Concat(a, b) {
			if slices.ContainsFunc(a, p.Equal) != slices.ContainsFunc(b, p.Equal) {
				want[p.Prefix] = true
			}
		}
		got := Differing(a, b)
		if !slices.IsSortedFunc(got, netip.Prefix.Compare) || len(got) != len(want) {
			t.Fatalf("%v, want %v in order", got, want)
		}
		for _, p := range got {
			if !want[p] {
				t.Errorf("%s is the same in both", p)
			}
			if from, to := RangeOf(a, p); !slices.EqualFunc(a[from:to], PathsOf(a, []netip.Prefix{p}), Path.Equal) ||
				to-from != lengthOf(slices.DeleteFunc(slices.Clone(a), func(q Path) bool { return q.Prefix != p }), p) {
				t.Errorf("%s is at %d to %d of %v", p, from, to, a)
			}
		}
	})
}
