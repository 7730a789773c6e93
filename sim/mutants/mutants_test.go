// SPDX-License-Identifier: Apache-2.0

package mutants_test

import (
	"testing"

	"fairlead.io/fairlead/sim/mutants"
	"fairlead.io/fairlead/sim/program"
)

const root = "../.."

func all(t *testing.T) []mutants.Mutant {
	t.Helper()
	all, err := mutants.All()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Every planted bug applies to the source of today, each alone and all together.
func TestEveryPlantedBugAppliesToTheSource(t *testing.T) {
	list := all(t)
	if len(list) < 25 {
		t.Errorf("%d planted bugs, want 25 at least", len(list))
	}
	for i := range list {
		if _, err := mutants.Sources(root, list[i:i+1]); err != nil {
			t.Error(err)
		}
	}
	if _, err := mutants.Sources(root, list); err != nil {
		t.Error(err)
	}
}

// The program with all planted bugs compiles.
func TestProgramWithPlantedBugsBuilds(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program of simulated processes: not under -short")
	}
	overlay, err := mutants.Overlay(root, t.TempDir(), all(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := program.Find(t.Context(), program.Options{Source: root, Overlay: overlay}); err != nil {
		t.Fatal(err)
	}
}
