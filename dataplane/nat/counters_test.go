// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// K52: where elements have to be listed, no look lists many, and after enough looks all sets are known.
// Rule: K52.
func TestPropertyClientsAreCountedByAndBy(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		r := newRemembered(slog.New(slog.DiscardHandler))
		sizes, largest := map[string]int{}, 0
		for i := range rapid.IntRange(0, 12).Draw(t, "sets") {
			n := rapid.SampledFrom([]int{0, 1, clientsMost / 2, clientsMost}).Draw(t, "clients")
			sizes[fmt.Sprintf("keep4-%02d", i)] = n
			largest = max(largest, n)
		}
		looks := 0
		count := func(_ context.Context, sets []string, most int) (map[string]int, error) {
			looks++
			out, listed := map[string]int{}, 0
			for _, s := range sets {
				if listed >= most {
					break
				}
				out[s] = sizes[s]
				listed += sizes[s]
			}
			if listed >= 2*clientsMost {
				t.Fatalf("%d listed at once", listed)
			}
			return out, nil
		}
		look := func() {
			var sets []string
			for s := range sizes {
				sets = append(sets, s)
			}
			r.look(t.Context(), sets, count)
		}
		for range len(sizes) + 1 {
			look()
		}
		sum := 0
		for _, n := range sizes {
			sum += n
		}
		if all, most := testutil.ToFloat64(r.all), testutil.ToFloat64(r.most); all != float64(sum) || most != float64(largest) {
			t.Fatalf("%v clients, %v at most; want %d, %d", all, most, sum, largest)
		}
		clear(sizes)
		look()
		if all := testutil.ToFloat64(r.all); all != 0 {
			t.Fatalf("%v clients of sets that are gone", all)
		}
	})
}
