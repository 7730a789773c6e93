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
// It writes into the report where they are. When ctx ends the rest is kept as it was played.
func SaveFailures(ctx context.Context, report *Report, play Player, folder string) error {
	if len(report.Failures) == 0 {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("keep failed scenarios: %w", err)
	}
	for i := range report.Failures {
		f := &report.Failures[i]
		s := Shrink(ctx, f.Scenario, f.Checker, play)
		s.Name = strings.ToLower(fmt.Sprintf("%s-seed-%d", f.Checker, f.Seed))
		s.About = fmt.Sprintf("Broke %s at %.3fs: %s", f.Checker, f.At, f.Text)
		file := filepath.Join(folder, s.Name+".yaml")
		if err := s.Write(file); err != nil {
			return fmt.Errorf("keep failed scenarios: %w", err)
		}
		f.Saved = file
	}
	return nil
}

// Shrink looks for a smaller scenario that breaks the same rule.
func Shrink(ctx context.Context, s scenario.Scenario, rule string, play Player) scenario.Scenario {
	return scenario.Shrink(ctx, s, func(smaller scenario.Scenario) bool {
		r, err := play(ctx, smaller, false)
		return err == nil && r.Violation != nil && r.Violation.Rule == rule
	}, shrinkRuns)
}
