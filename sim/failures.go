// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"fairlead.io/fairlead/sim/scenario"
)

// shrinkRuns is how many runs a failure is shrunk with at most.
const shrinkRuns = 60

// SaveFailures shrinks the scenarios of failed runs and keeps them in a folder, from where a test runs them for ever.
// It writes into the report where they are.
func SaveFailures(ctx context.Context, report *Report, scenarios []scenario.Scenario, o Setting, folder string) error {
	if len(report.Failures) == 0 {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("keep failed scenarios: %w", err)
	}
	bySeed := map[uint64]scenario.Scenario{}
	for _, s := range scenarios {
		bySeed[s.Seed] = s
	}
	for i := range report.Failures {
		f := &report.Failures[i]
		s := Shrink(ctx, bySeed[f.Seed], f.Checker, o)
		s.Name = strings.ToLower(fmt.Sprintf("%s-seed-%d", f.Checker, f.Seed))
		s.About = fmt.Sprintf("Broke %s at %.3fs: %s", f.Checker, f.At, f.Text)
		f.Saved = filepath.Join(folder, s.Name+".yaml")
		if err := os.WriteFile(f.Saved, s.Text(), 0o644); err != nil {
			return fmt.Errorf("keep failed scenarios: %w", err)
		}
	}
	return nil
}

// Shrink looks for a smaller scenario that breaks the same rule.
func Shrink(ctx context.Context, s scenario.Scenario, rule string, o Setting) scenario.Scenario {
	o.Keep = false
	return scenario.Shrink(ctx, s, func(smaller scenario.Scenario) bool {
		r, err := Play(smaller, o)
		return err == nil && r.Violation != nil && r.Violation.Rule == rule
	}, shrinkRuns)
}
