// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"fairlead.io/fairlead/sim"
	"fairlead.io/fairlead/sim/mutants"
	"fairlead.io/fairlead/sim/program"
	"fairlead.io/fairlead/sim/scenario"
	"fairlead.io/fairlead/sim/vm"
)

// scenarios is the folder of those that bugs name, from the root of the source.
const scenarios = "sim/mutants/scenarios"

// worlds play the program with planted bugs.
type worlds struct {
	program *vm.Module
	drawn   scenario.Options
}

// open builds the program with all bugs, whichever are hunted: so that it is compiled once.
func open(ctx context.Context, o options) (*worlds, error) {
	if _, err := os.Stat(scenarios); err != nil {
		return nil, fmt.Errorf("%w; run it from the root of the source", err)
	}
	w := &worlds{drawn: scenario.Options{Duration: o.duration}}
	all, err := mutants.All()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, fmt.Errorf("write the source with planted bugs: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }() // it is built by then
	overlay, err := mutants.Overlay(".", folder, all)
	if err != nil {
		return nil, err
	}
	w.program, err = sim.Load(ctx, program.Options{Overlay: overlay})
	return w, err
}

func (w *worlds) close() { _ = w.program.Close(context.Background()) } // the process ends

// play implements mutants.World.
func (w *worlds) play(_ context.Context, m mutants.Mutant, seed uint64) (mutants.Verdict, error) {
	s, err := w.scenario(m, seed)
	if err != nil {
		return mutants.Verdict{}, err
	}
	r, err := sim.Play(s, sim.Setting{Program: w.program, Mutant: m.Name})
	if err != nil || r.Violation == nil {
		return mutants.Verdict{At: r.Virtual}, err
	}
	return mutants.Verdict{Rule: r.Violation.Rule, At: r.Violation.At, Text: r.Violation.Subject + ": " + r.Violation.Text}, nil
}

// scenario is the one that a bug names, played with a seed, or one that is drawn from the seed.
func (w *worlds) scenario(m mutants.Mutant, seed uint64) (scenario.Scenario, error) {
	if m.Scenario == "" {
		return sim.Draw(seed, w.drawn), nil
	}
	s, err := scenario.Read(filepath.Join(scenarios, m.Scenario))
	s.Seed = seed
	return s, err
}
