// SPDX-License-Identifier: Apache-2.0

package mutants_test

import (
	"path/filepath"
	"testing"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/sim/mutants"
	"fairlead.io/fairlead/sim/program"
	"fairlead.io/fairlead/sim/scenario"
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
	testkit.Long(t, "builds the program of simulated processes")
	overlay, err := mutants.Overlay(root, t.TempDir(), all(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := program.Find(t.Context(), program.Options{Source: root, Overlay: overlay}); err != nil {
		t.Fatal(err)
	}
}

// Every scenario that a planted bug names can be read, and every one that is kept is named.
func TestScenariosOfPlantedBugsAreValidAndUsed(t *testing.T) {
	used := map[string]bool{}
	for _, m := range all(t) {
		if m.Scenario == "" || used[m.Scenario] {
			continue
		}
		used[m.Scenario] = true
		if _, err := scenario.Read(filepath.Join("scenarios", m.Scenario)); err != nil {
			t.Errorf("planted bug %s: %v", m.Name, err)
		}
	}
	files, err := filepath.Glob("scenarios/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !used[filepath.Base(f)] {
			t.Errorf("%s: no planted bug names it", f)
		}
	}
}
