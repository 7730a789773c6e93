// SPDX-License-Identifier: Apache-2.0

package world

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// Families are a list in a number: each stands in it once, where it stands first.
func TestPropertyFamiliesAreAList(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.SampledFrom([]Family{IPv4, IPv6}), 0, 3).Draw(t, "families")
		var want []Family
		for _, f := range list {
			if !slices.Contains(want, f) {
				want = append(want, f)
			}
		}
		f := FamiliesOf(list...)
		if got := f.List(); !slices.Equal(got, want) || (f == 0) != (len(want) == 0) {
			t.Fatalf("%v became %d, which lists %v, want %v", list, f, got, want)
		}
		text, _ := json.Marshal(f)
		if wanted, _ := json.Marshal(want); string(text) != string(wanted) {
			t.Fatalf("as JSON %s, want %s", text, wanted)
		}
	})
}
