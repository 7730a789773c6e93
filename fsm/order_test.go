// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// An order has what was put in and not taken out, in order, whatever is done to those that were made of it.
func TestPropertyOrdersAreInOrder(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		var o order
		model := map[uint32]bool{}
		type copied struct {
			order
			want []uint32
		}
		var copies []copied
		by := func(wanted uint32) func(uint32) int {
			return func(slot uint32) int { return cmp.Compare(slot, wanted) }
		}
		toggle := func(slot uint32) {
			if model[slot] {
				delete(model, slot)
				o.remove(by(slot))
			} else {
				model[slot] = true
				o.insert(slot, by(slot))
			}
		}
		sorted := func() []uint32 {
			out := make([]uint32, 0, len(model))
			for slot := range model {
				out = append(out, slot)
			}
			slices.Sort(out)
			return out
		}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			// Stretches make what grows at its end, from its end, or in the middle, and what shrinks likewise.
			from, n := rapid.Uint32Range(0, 4*runSize).Draw(t, "from"), rapid.Uint32Range(0, 3*runSize).Draw(t, "many")
			stride, down := rapid.Uint32Range(1, 3).Draw(t, "stride"), rapid.Bool().Draw(t, "down")
			for i := range n {
				if down {
					i = n - 1 - i
				}
				toggle(from + i*stride)
			}
			if rapid.Bool().Draw(t, "freeze") {
				copies = append(copies, copied{o.frozen(), sorted()})
			}
		}
		for i, c := range append(copies, copied{o, sorted()}) {
			var have []uint32
			c.each(nil, func(slot uint32) bool { have = append(have, slot); return true })
			if !slices.Equal(have, c.want) || c.count != len(c.want) {
				t.Fatalf("copy %d of %d has %d slots, of %d, want %d:\n%v\n%v", i, len(copies), len(have), c.count, len(c.want), have, c.want)
			}
			wanted := rapid.Uint32Range(0, 8*runSize).Draw(t, "wanted")
			at, there := slices.BinarySearch(c.want, wanted)
			if _, found := c.search(by(wanted)); found != there {
				t.Fatalf("copy %d of %d: %d found: %v, want %v", i, len(copies), wanted, found, there)
			}
			have = nil
			c.each(by(wanted), func(slot uint32) bool { have = append(have, slot); return len(have) < 2 })
			if want := c.want[at:min(at+2, len(c.want))]; !slices.Equal(have, want) {
				t.Fatalf("copy %d of %d: from %d on %v, want %v", i, len(copies), wanted, have, want)
			}
		}
	})
}

// What shrinks gives its room back, and what only grows at its end has none to spare.
func TestOrdersTakeLittleMoreThanTheyNeed(t *testing.T) {
	var o order
	by := func(wanted uint32) func(uint32) int {
		return func(slot uint32) int { return cmp.Compare(slot, wanted) }
	}
	const n = 40 * runSize
	for slot := range uint32(n) {
		o.insert(slot, by(slot))
	}
	if len(o.runs) != 40 {
		t.Errorf("%d runs for as much as 40 hold", len(o.runs))
	}
	for slot := range uint32(n) {
		if slot%40 != 0 {
			o.remove(by(slot))
		}
	}
	if most := 4; len(o.runs) > most {
		t.Errorf("%d runs for as much as one holds, want %d at most", len(o.runs), most)
	}
}
