// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"fmt"
	"net/netip"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// Identifiers are unique per prefix and never 0, whatever the hash; and they depend on nothing but the set of paths.
func TestPropertyPathIDsAreUniqueAndEqualEverywhere(t *testing.T) {
	hashes := map[string]func(netip.Addr) uint32{
		"real":     hashNextHop,
		"constant": func(netip.Addr) uint32 { return 7 },
		"zero":     func(netip.Addr) uint32 { return 0 },
		"last":     func(netip.Addr) uint32 { return 1<<32 - 1 },
		"octet":    func(a netip.Addr) uint32 { b := a.As16(); return uint32(b[15] % 2) },
	}
	testkit.Check(t, func(t *rapid.T) {
		hash := hashes[rapid.SampledFrom([]string{"real", "constant", "zero", "last", "octet"}).Draw(t, "hash")]
		gen := rapid.SliceOfNDistinct(genPath(), 0, 9, func(p Path) string { return p.String() })
		paths := gen.Draw(t, "paths")
		got := assignPathIDs(nil, paths, hash)
		ids := map[string]uint32{}
		seen := map[string]bool{}
		for _, p := range got {
			key := fmt.Sprint(p.Prefix, p.PathID)
			if p.PathID == 0 || seen[key] {
				t.Fatalf("%s has identifier %d in %v", p, p.PathID, got)
			}
			seen[key] = true
			ids[p.String()] = p.PathID
		}
		if len(ids) != len(paths) {
			t.Fatalf("%d of %d paths", len(ids), len(paths))
		}
		for i := range paths {
			paths[i].PathID = rapid.Uint32Range(0, 3).Draw(t, "leftover")
		}
		again := map[string]uint32{}
		for _, p := range assignPathIDs(got[:0:0], rapid.Permutation(paths).Draw(t, "order"), hash) {
			again[p.String()] = p.PathID
		}
		if !reflect.DeepEqual(ids, again) {
			t.Fatalf("identifiers %v, and in another order %v", ids, again)
		}
	})
}

// A next hop keeps its identifier when others come and go, so that no path is announced anew for a neighbour's sake.
func TestPathIDStaysWhenNeighboursChange(t *testing.T) {
	one := AssignPathIDs([]Path{{Prefix: netip.MustParsePrefix(prefixes[0]), NextHop: netip.MustParseAddr(hops4[0])}})
	var all []Path
	for _, h := range hops4 {
		all = append(all, Path{Prefix: netip.MustParsePrefix(prefixes[0]), NextHop: netip.MustParseAddr(h)})
	}
	for _, p := range AssignPathIDs(all) {
		if p.NextHop == one[0].NextHop && p.PathID != one[0].PathID {
			t.Errorf("%s has %d, had %d", p, p.PathID, one[0].PathID)
		}
	}
}
