// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/internal/weights"
)

// K40: turns are dealt by weight. Shares are exact where there are as many turns as the weights are together, in any case
// no turn could go to another one for them to be more alike, and everybody has one.
// Rule: K40.
func TestPropertyTurnsAreDealtByWeight(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		drawn := rapid.SliceOfN(rapid.OneOf(rapid.Uint32Range(1, 9), rapid.Uint32Range(1, 65535)), 2, 40).Draw(t, "weights")
		reduced := weights.Reduce(drawn)
		if reduced == nil {
			for _, w := range drawn {
				if w != drawn[0] {
					t.Fatalf("%v are taken for one weight", drawn)
				}
			}
			return
		}
		sum := uint64(0)
		for i, w := range reduced {
			if uint64(w)*uint64(drawn[0]) != uint64(reduced[0])*uint64(drawn[i]) {
				t.Fatalf("%v became %v", drawn, reduced)
			}
			sum += uint64(w)
		}
		turns := slotsFor(reduced)
		had := make([]uint64, len(reduced))
		for _, i := range weights.Deal(reduced, turns) {
			had[i]++
		}
		if most := bucketsFor(len(reduced)); uint64(turns) != min(sum, uint64(most)) {
			t.Fatalf("%d turns for %v, which are %d together", turns, reduced, sum)
		}
		for i, n := range had {
			w := uint64(reduced[i])
			if n == 0 || uint64(turns) == sum && n != w {
				t.Fatalf("%d has %d of %d turns, weights %v", i, n, turns, reduced)
			}
			for j, m := range had {
				if n > 1 && (2*n-1)*uint64(reduced[j]) > (2*m+1)*w {
					t.Fatalf("%d has %d turns and %d has %d, weights %v", i, n, j, m, reduced)
				}
			}
		}
	})
}

// K40: no more slots are made than the weights need.
// Rule: K40.
func TestWeightsAreReduced(t *testing.T) {
	if have, want := weights.Reduce([]uint32{400, 200, 600}), []uint32{2, 1, 3}; !slices.Equal(have, want) {
		t.Errorf("reduced to %v, want %v", have, want)
	}
}

// K40: turns of one endpoint do not follow each other while another one's are due.
// Rule: K40.
func TestTurnsAreSpreadOut(t *testing.T) {
	if have, want := weights.Deal([]uint32{3, 1, 2}, 6), []int{0, 1, 2, 0, 2, 0}; !slices.Equal(have, want) {
		t.Errorf("turns %v, want %v", have, want)
	}
}

// K40: endpoints that all weigh the same make the table that they make without weights, whatever they weigh.
// Rule: K40.
func TestPropertyEqualWeightsAreNoWeights(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		config, services := genConfig().Draw(t, "config"), genServices().Draw(t, "services")
		weight := rapid.SampledFrom([]uint16{1, 2, 65535}).Draw(t, "weight")
		var heavy []*desired.Service
		for _, was := range services {
			s := *was
			s.Endpoints = slices.Clone(was.Endpoints)
			for i := range s.Endpoints {
				was.Endpoints[i].Weight, s.Endpoints[i].Weight = 0, weight
			}
			heavy = append(heavy, &s)
		}
		sameRuleset(t, planOf(config, heavy).Ruleset(), planOf(config, services).Ruleset())
	})
}

// K40: no more flows than its part move to an endpoint that weighs more from now on, and few between others.
// Rule: K40.
func TestPropertyWeightMovesFewFlows(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 60).Draw(t, "endpoints")
		was := targets{at: someEndpoints(t, n)}
		for range n {
			was.weights = append(was.weights, rapid.Uint32Range(1, 4).Draw(t, "weight"))
		}
		is := targets{at: was.at, weights: slices.Clone(was.weights)}
		heavier := rapid.IntRange(0, n-1).Draw(t, "heavier")
		is.weights[heavier] *= 2
		before, after := dealBuckets(was), dealBuckets(is)
		moved := 0
		for b := range before {
			if before[b] != after[b] && after[b] != heavier {
				moved++
			}
		}
		if share := float64(moved) / float64(len(before)); share > 0.15 {
			t.Fatalf("weights %v, %d weighs twice as much, and %.2f of the flows move between others", was.weights, heavier, share)
		}
	})
}
