// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// Whatever is written after a vector was frozen, what was frozen stays as it was.
func TestPropertyFrozenVectorsStay(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		var v vector
		var model []Record
		type copied struct {
			frozen vector
			model  []Record
		}
		var copies []copied
		put := func(slot int) {
			r := &Register{Version: rapid.Uint64().Draw(t, "version")}
			v.set(uint32(slot), r)
			if slot == len(model) {
				model = append(model, nil)
			}
			model[slot] = r
		}
		for range rapid.IntRange(0, 3*pageSize*blockSize).Draw(t, "size") {
			put(len(model))
		}
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			if rapid.IntRange(0, 4).Draw(t, "freeze") == 0 {
				copies = append(copies, copied{v.frozen(), slices.Clone(model)})
			} else {
				put(rapid.IntRange(0, len(model)).Draw(t, "slot"))
			}
		}
		for i, c := range append(copies, copied{v, model}) {
			for slot, want := range c.model {
				if got := c.frozen.at(uint32(slot)); got != want {
					t.Fatalf("copy %d of %d, slot %d: %v, want %v", i, len(copies), slot, got, want)
				}
			}
		}
	})
}
