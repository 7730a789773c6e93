// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/sim"
	"fairlead.io/fairlead/sim/program"
	"fairlead.io/fairlead/sim/scenario"
	"fairlead.io/fairlead/sim/vm"
)

// shipped is the program that ships, for tests that run worlds.
func shipped(t *testing.T) *vm.Module {
	t.Helper()
	return load(t, program.Options{})
}

// programs holds, by program.Options, what loads that program once for all tests. It stays loaded until the tests end.
var programs sync.Map

func load(t *testing.T, o program.Options) *vm.Module {
	t.Helper()
	testkit.Long(t, "runs worlds")
	once, _ := programs.LoadOrStore(o, sync.OnceValues(func() (*vm.Module, error) { return sim.Load(context.Background(), o) }))
	m, err := once.(func() (*vm.Module, error))()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// cores are those on which no world runs: there are never more worlds at a time than cores, whatever -parallel says.
var cores = func() chan int {
	free := make(chan int, runtime.GOMAXPROCS(0))
	for core := range cap(free) {
		free <- core
	}
	return free
}()

// play plays a world on the next core that is free.
func play(s scenario.Scenario, o sim.Setting) (sim.Result, error) {
	core := <-cores
	defer func() { cores <- core }()
	return sim.PlayOn(core, s, o)
}

// What broke a rule once and was mended breaks none again.
func TestScenariosThatFailedOnceHold(t *testing.T) {
	t.Parallel()
	hold(t, shipped(t), "testdata/regressions/*.yaml", 1)
}

// hold plays the scenarios whose files match, of which there are some at least, and expects them to break no rule.
func hold(t *testing.T, m *vm.Module, pattern string, least int) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) < least {
		t.Fatalf("%s: %v, %v", pattern, files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			s, err := scenario.Read(file)
			if err != nil {
				t.Fatal(err)
			}
			r, err := play(s, sim.Setting{Program: m})
			if err != nil {
				t.Fatal(err)
			}
			if v := r.Violation; v != nil {
				t.Errorf("%s broke at %v: %s", v.Rule, v.At, v.Text)
			}
		})
	}
}

// Machines without a runtime for worlds have WebAssembly, which is slow: one world is enough to see that all of it is there.
func TestWebAssemblyHoldsToo(t *testing.T) {
	t.Parallel()
	m := load(t, program.Options{Engine: program.WebAssembly})
	s := scenario.Draw(1, scenario.Options{Duration: 10 * time.Second, Services: 3})
	r, err := play(s, sim.Setting{Program: m})
	if err != nil || r.Violation != nil {
		t.Fatal(r.Violation, err)
	}
	if r.Counts["S1"] == 0 || r.Counts["L1"] == 0 {
		t.Errorf("nothing happened: %v", r.Counts)
	}
}

// One integer repeats a run, whoever runs it beside others or alone.
func TestEqualSeedsGiveEqualDigests(t *testing.T) {
	m := shipped(t)
	o := scenario.Options{Services: 5}
	var scenarios []scenario.Scenario
	for _, seed := range []uint64{1, 2, 1, 2} {
		scenarios = append(scenarios, scenario.Draw(seed, o))
	}
	report, err := sim.Run(context.Background(), 0, slices.Values(scenarios), sim.Setting{Program: m}.Player(), nil)
	if err != nil {
		t.Fatal(err)
	}
	d := report.Seeds
	if d[0] != d[2] || d[1] != d[3] || d[0].Digest == d[1].Digest {
		t.Fatalf("%v", d)
	}
}

// What goes on in a world does not depend on whether its trace is kept.
func TestKeepingTheTraceChangesNothing(t *testing.T) {
	t.Parallel()
	m := shipped(t)
	s := scenario.Draw(3, scenario.Options{Services: 5})
	bare, err := play(s, sim.Setting{Program: m})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := play(s, sim.Setting{Program: m, Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	if bare.Digest != kept.Digest || kept.Trace.Kept() == 0 {
		t.Fatalf("%s, %s with %d events", bare.Digest, kept.Digest, kept.Trace.Kept())
	}
}
