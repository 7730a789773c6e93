// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"path/filepath"
	"testing"

	"fairlead.io/fairlead/sim"
	"fairlead.io/fairlead/sim/scenario"
)

// What operators do once in years holds: they upgrade, restore a backup, recover what is left of a group.
func TestRareScenariosHold(t *testing.T) {
	m := shipped(t)
	for pattern, least := range map[string]int{"testdata/rare/*.yaml": 2, "mutants/scenarios/upgrade*.yaml": 2} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) < least {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			t.Run(filepath.Base(file), func(t *testing.T) {
				s, err := scenario.Read(file)
				if err != nil {
					t.Fatal(err)
				}
				r, err := sim.Play(s, sim.Setting{Program: m})
				if err != nil {
					t.Fatal(err)
				}
				if v := r.Violation; v != nil {
					t.Errorf("%s broke at %v: %s", v.Rule, v.At, v.Text)
				}
			})
		}
	}
}
