// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fairlead.io/fairlead/sim/check"
	"fairlead.io/fairlead/sim/fault"
	"fairlead.io/fairlead/sim/scenario"
)

// pretend plays nothing: seeds divisible by three break a rule, and those above the limit wait until ctx ends.
func pretend(limit uint64) Player {
	return func(ctx context.Context, s scenario.Scenario, _ bool) (Result, error) {
		if s.Seed > limit {
			<-ctx.Done()
			return Result{}, ctx.Err()
		}
		r := Result{Seed: s.Seed, Scenario: s, Digest: "d", Module: "m", Virtual: time.Second, Repeat: repeat(s, "")}
		if s.Seed%3 == 0 {
			r.Violation = &check.Violation{Rule: "S8", At: time.Second, Subject: "x", Text: "broke"}
		}
		return r, nil
	}
}

func seeds(n uint64) []scenario.Scenario {
	var out []scenario.Scenario
	for seed := uint64(1); seed <= n; seed++ {
		out = append(out, Draw(seed, scenario.Options{}))
	}
	return out
}

func TestRunReportsInTheOrderOfScenarios(t *testing.T) {
	var order []uint64
	r, err := Run(t.Context(), 0, slices.Values(seeds(40)), pretend(100), func(r Result) { order = append(order, r.Seed) })
	if err != nil || r.Runs != 40 || r.Failed != 13 || len(order) != 40 || !slices.IsSorted(order) || r.Module != "m" {
		t.Fatalf("%+v %v %v", r, order, err)
	}
}

// Whoever interrupts is told what became of the runs that had ended.
func TestRunGivesWhatEndedBeforeAnInterruption(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	r, err := Run(ctx, 0, slices.Values(seeds(40)), pretend(4), func(r Result) {
		if r.Seed == 4 {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) || r.Runs != 4 || r.Failed != 1 || r.Digest == "" {
		t.Fatalf("%+v %v", r, err)
	}
}

// Whoever runs closes the program afterwards: no world may use it any more, also where one of them could not be made.
func TestRunLeavesNoWorldBehind(t *testing.T) {
	for name, end := range map[string]func(stop func()) error{
		"interrupted": func(stop func()) error { stop(); return nil },
		"failed":      func(func()) error { return errors.New("no world") },
	} {
		ctx, stop := context.WithCancel(t.Context())
		var playing atomic.Int32
		_, err := Run(ctx, 0, slices.Values(seeds(8)), func(ctx context.Context, s scenario.Scenario, _ bool) (Result, error) {
			playing.Add(1)
			defer playing.Add(-1)
			if s.Seed == 1 {
				return Result{}, end(stop)
			}
			<-ctx.Done()
			time.Sleep(20 * time.Millisecond) // until it notices
			return Result{}, ctx.Err()
		}, nil)
		if err == nil || playing.Load() != 0 {
			t.Errorf("%s: %d worlds left, %v", name, playing.Load(), err)
		}
		stop()
	}
}

func TestRunBeginsNoMoreAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endless := func(yield func(scenario.Scenario) bool) {
			for s := (scenario.Scenario{Seed: 1}); yield(s); {
				time.Sleep(time.Second) // a scenario takes time to be made
			}
		}
		// One at once, then one a second; the one that is asked for last is not made in time.
		r, err := Run(t.Context(), 5*time.Second, endless, pretend(100), nil)
		if err != nil || r.Runs != 6 {
			t.Fatalf("%+v %v", r, err)
		}
	})
}

// Repeating draws the same scenario, whatever was asked for; what was not drawn is repeated by its file.
func TestRepeatNamesWhatDrawsTheSame(t *testing.T) {
	plain := Draw(7, scenario.Options{})
	many := Draw(7, scenario.Options{Services: 150, Nodes: 9, Members: 5, Duration: 30 * time.Second})
	edited := plain
	edited.Drift++
	for want, s := range map[string]scenario.Scenario{
		"fairlead sim replay --seed 7 --duration 1m0s --members 3 --nodes 5":               plain,
		"fairlead sim replay --seed 7 --duration 30s --members 5 --nodes 9 --services 150": many,
		"fairlead sim replay --scenario seed-7.yaml":                                       edited,
	} {
		if got := repeat(s, ""); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
	if got := repeat(plain, "here/it.yaml"); got != "fairlead sim replay --scenario here/it.yaml" {
		t.Error(got)
	}
}

// Snapshots are sent only where members keep so little of their logs that who was away lacks some of them.
func TestSomeWorldsHaveShortLogs(t *testing.T) {
	with := 0
	for seed := range uint64(80) {
		s := Draw(seed, scenario.Options{})
		if !s.ShortLogs {
			continue
		}
		with++
		if kept := s.Stage().Raft.TrailingLogs; kept == 0 || kept > 64 {
			t.Errorf("seed %d: %d entries are kept", seed, kept)
		}
	}
	if with != 10 {
		t.Errorf("%d worlds of 80", with)
	}
}

// One world of five has prefixes in the place of addresses. What goes wrong in it is what would without them.
func TestSomeWorldsAnnouncePrefixes(t *testing.T) {
	with := 0
	for seed := range uint64(100) {
		s := Draw(seed, scenario.Options{})
		if s.Aggregate == 0 {
			continue
		}
		with++
		plain := scenario.Draw(seed, scenario.Options{Balancers: s.Balancers, Outside: s.Outside, Clients: s.Clients})
		if !slices.EqualFunc(s.Faults, plain.Faults, func(f, g fault.Fault) bool { return f.String() == g.String() }) {
			t.Errorf("seed %d: other faults", seed)
		}
		if Draw(seed, scenario.Options{Segments: 1}).Aggregate != 0 {
			t.Errorf("seed %d: with segments, too", seed)
		}
	}
	if with != 20 {
		t.Errorf("%d worlds of 100", with)
	}
}

func TestFailuresAreSavedSmallerOrNotAtAll(t *testing.T) {
	r, err := Run(t.Context(), 0, slices.Values(seeds(3)), pretend(100), nil)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "a", "b")
	if err := SaveFailures(t.Context(), &r, pretend(100), folder); err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Read(r.Failures[0].Saved)
	if err != nil || s.Members != 1 || len(s.Faults)+len(s.Work) != 0 || s.Name != "s8-seed-3" || !strings.Contains(s.About, "broke") {
		t.Fatalf("%s %v", s.Text(), err)
	}
	if err := SaveFailures(t.Context(), &r, pretend(100), filepath.Join(folder, "s8-seed-3.yaml")); err == nil {
		t.Error("saved in a file")
	}
	if left, _ := os.ReadDir(folder); len(left) != 1 {
		t.Errorf("left over: %v", left)
	}
}
