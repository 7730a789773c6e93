// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/sim/fault"
	"fairlead.io/fairlead/sim/scenario"
	"fairlead.io/fairlead/sim/workload"
)

// A failure that needs m2 to be killed for two seconds and web1 to be scaled afterwards is shrunk to just that.
func TestShrinkingFindsAPlantedCause(t *testing.T) {
	cause := fault.Fault{Kind: "kill", At: 20300 * time.Millisecond, For: 7 * time.Second, On: []string{"m1", "m2"}}
	step := workload.Step{At: 30 * time.Second, Do: "scale", With: map[string]string{"name": "web1", "replicas": "5"}}
	fails := func(s scenario.Scenario) bool {
		return slices.ContainsFunc(s.Faults, func(f fault.Fault) bool {
			return f.Kind == "kill" && f.For >= 2*time.Second && slices.Contains(f.On, "m2") &&
				slices.ContainsFunc(s.Work, func(w workload.Step) bool { return w.Do == "scale" && w.At > f.End() })
		})
	}
	testkit.Check(t, func(t *rapid.T) {
		s := scenario.Draw(rapid.Uint64().Draw(t, "seed"), scenario.Options{})
		s.Faults, s.Work = append(s.Faults, cause), append(s.Work, step)
		runs := 0
		small := scenario.Shrink(context.Background(), s, func(s scenario.Scenario) bool {
			runs++
			if err := s.Validate(); err != nil {
				t.Fatalf("ran an invalid scenario: %v", err)
			}
			return fails(s)
		}, 2000)
		if !fails(small) || runs > 2000 {
			t.Fatalf("after %d runs:\n%s", runs, small.Text())
		}
		if len(small.Faults) != 1 || len(small.Work) != 1 || small.Services != 0 || small.Nodes != 1 || small.Members != 2 ||
			small.Switches != 1 || small.Drift != 0 || !reflect.DeepEqual(small.Faults[0].On, []string{"m2"}) ||
			small.Faults[0].For > 4*time.Second || small.Faults[0].At > 4*time.Second || small.Seed != s.Seed {
			t.Fatalf("after %d runs:\n%s", runs, small.Text())
		}
		again := scenario.Shrink(context.Background(), s, fails, 2000)
		if !reflect.DeepEqual(small, again) {
			t.Fatalf("another time:\n%s", again.Text())
		}
	})
}

func TestShrinkingKeepsToItsBudget(t *testing.T) {
	s := scenario.Draw(1, scenario.Options{})
	for _, budget := range []int{0, 1, 5, 30} {
		runs := 0
		got := scenario.Shrink(context.Background(), s, func(scenario.Scenario) bool { runs++; return runs%2 == 0 }, budget)
		if runs > budget {
			t.Errorf("%d runs of %d", runs, budget)
		}
		if budget == 0 && !reflect.DeepEqual(got, s) {
			t.Error("changed without a run")
		}
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if got := scenario.Shrink(over, s, func(scenario.Scenario) bool { t.Error("ran"); return true }, 100); !reflect.DeepEqual(got, s) {
		t.Error("changed after the end")
	}
}
