// SPDX-License-Identifier: Apache-2.0

package testswitch

import (
	"net/netip"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// rank writes a route's preference as digits that compare like it: the smallest wins.
func rank(r Route) [5]int {
	long := 0
	if r.LongLived {
		long = 1
	}
	return [5]int{long, 1000 - int(r.LocalPref), r.ASPathLen, int(r.Origin), int(r.MED)}
}

func TestPropertyTrafficGoesToTheBestPathsOnly(t *testing.T) {
	gen := rapid.Custom(func(t *rapid.T) Route {
		return Route{
			Prefix:    netip.MustParsePrefix(rapid.SampledFrom([]string{"203.0.113.1/32", "2001:db8::1/128"}).Draw(t, "prefix")),
			NextHop:   netip.MustParseAddr(rapid.SampledFrom([]string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}).Draw(t, "next hop")),
			RouterID:  netip.MustParseAddr(rapid.SampledFrom([]string{"192.0.2.11", "192.0.2.12"}).Draw(t, "router")),
			PathID:    rapid.Uint32Range(1, 3).Draw(t, "id"),
			LocalPref: rapid.SampledFrom([]uint32{1, 100}).Draw(t, "local pref"),
			ASPathLen: rapid.IntRange(1, 2).Draw(t, "as path"),
			Origin:    uint8(rapid.IntRange(0, 1).Draw(t, "origin")),
			MED:       rapid.Uint32Range(0, 1).Draw(t, "med"),
			Stale:     rapid.Bool().Draw(t, "stale"),
			LongLived: rapid.Bool().Draw(t, "long lived"),
		}
	})
	testkit.Check(t, func(t *rapid.T) {
		type key struct {
			p netip.Prefix
			s source
		}
		table, kept := rib{}, map[key]Route{}
		for _, r := range rapid.SliceOfN(gen, 0, 12).Draw(t, "routes") {
			table.set(r)
			kept[key{r.Prefix, source{r.RouterID, r.PathID}}] = r // a path replaces the one with its identifier
		}
		best := map[netip.Prefix][5]int{}
		for k, r := range kept {
			if old, ok := best[k.p]; !ok || less(rank(r), old) {
				best[k.p] = rank(r)
			}
		}
		want := map[netip.Prefix]map[netip.Addr]bool{}
		for k, r := range kept {
			if rank(r) == best[k.p] {
				if want[k.p] == nil {
					want[k.p] = map[netip.Addr]bool{}
				}
				want[k.p][r.NextHop] = true
			}
		}
		got := map[netip.Prefix]map[netip.Addr]bool{}
		for _, e := range table.entries() {
			got[e.Prefix] = map[netip.Addr]bool{}
			for _, h := range e.NextHops {
				if got[e.Prefix][h] {
					t.Fatalf("%s twice in %v", h, e)
				}
				got[e.Prefix][h] = true
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("traffic goes to %v, want %v", got, want)
		}
	})
}

func less(a, b [5]int) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}
