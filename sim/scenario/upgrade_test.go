// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/sim/fault"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/scenario"
)

// Everybody begins with the older release exactly where there is an upgrade, and the format that is to be expected in the
// end is the newest unless nobody was to raise it.
func TestWorldsBeginWithTheReleaseThatIsToBeUpgraded(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		s := scenario.Generate(scenario.Options{Kinds: rapid.SampledFrom([][]string{nil, {"rolling-upgrade", "kill"}, {"downgrade"}}).Draw(t, "kinds")}).Draw(t, "scenario")
		upgrades, raised := false, true
		for _, f := range s.Faults {
			if f.Kind == fault.RollingUpgrade {
				upgrades, raised = true, f.With["finalize"] != "never"
			}
		}
		if older := s.Stage().Release == start.Older; older != upgrades {
			t.Fatalf("it begins with %q: %s", s.Stage().Release, s.Text())
		}
		if want := s.Format() == fsm.NewestFormat; want != raised {
			t.Fatalf("its format is %d in the end: %s", s.Format(), s.Text())
		}
	})
}
