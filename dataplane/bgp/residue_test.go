// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// keptPath is what a switch holds: by the number under which it was told.
type keptPath struct {
	prefix netip.Prefix
	number int
}

// A switch that keeps all it was told until it is told otherwise, over any number of sessions, holds no more paths of a prefix
// that it should not hold than Most says; and once it holds only what it should, and that was seen, Most says none.
func TestResidueCountsWhatASwitchMayHold(t *testing.T) {
	peer := netip.MustParseAddr("192.0.2.1")
	prefixes := []netip.Prefix{netip.MustParsePrefix("203.0.113.1/32"), netip.MustParsePrefix("203.0.113.2/32")}
	testkit.Check(t, func(t *rapid.T) {
		var r Residue
		announced, holds := map[keptPath]bool{}, map[keptPath]bool{}
		known, numbers := false, 0
		holds[keptPath{prefixes[0], -1}] = true // of an earlier life
		r.Met(peer)
		// tell says what is announced to the switch, which ends the rest if it does all that it is asked for.
		tell := func(all bool) {
			if all {
				clear(holds)
			}
			for p := range announced {
				holds[p] = true
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"announce": func(t *rapid.T) {
				numbers++
				announced[keptPath{rapid.SampledFrom(prefixes).Draw(t, "prefix"), numbers}] = true
			},
			"withdraw": func(t *rapid.T) {
				number := rapid.IntRange(0, numbers).Draw(t, "number")
				for p := range announced {
					if p.number == number {
						r.Removed(p.prefix)
						delete(announced, p)
					}
				}
			},
			"open": func(*rapid.T) { tell(false); r.Met(peer) },
			"settle": func(*rapid.T) {
				tell(true)
				r.Settled(peer)
				known = true
			},
			"doubt": func(*rapid.T) { r.Doubt(peer); known = false },
			"": func(t *rapid.T) {
				left := map[netip.Prefix]int{}
				for p := range holds {
					if !announced[p] {
						left[p.prefix]++
					}
				}
				most, told := r.Most(peer)
				if told != known {
					t.Fatalf("told %t, want %t", told, known)
				}
				for p, n := range left {
					if known && n > most {
						t.Fatalf("%d of %s are held, and %d said to be at most", n, p, most)
					}
				}
			},
		})
		r.Settled(peer)
		if most, told := r.Most(peer); most != 0 || !told {
			t.Fatalf("%d are left of what is settled, told %t", most, told)
		}
		r.Gone(peer)
		r.Settled(peer)
		if _, told := r.Most(peer); told {
			t.Fatal("a peer that is gone is told of")
		}
	})
}
