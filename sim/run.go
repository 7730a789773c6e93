// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"fairlead.io/fairlead/sim/scenario"
)

// Report is what became of several runs. Its JSON form is stable.
type Report struct {
	Runs     int       `json:"runs"`
	Failed   int       `json:"failed"`
	Failures []Failure `json:"failures"`
	Seeds    []Seed    `json:"seeds"`
	// VirtualSeconds and WallSeconds are of all runs together.
	VirtualSeconds float64 `json:"virtual_seconds"`
	WallSeconds    float64 `json:"wall_seconds"`
	// Digest is of all runs, in order of their seeds, and Module of the program that they ran: runs compare for equal
	// modules only.
	Digest string `json:"digest"`
	Module string `json:"module"`
	// Checks are how often each rule was put to the test.
	Checks map[string]int `json:"checks"`
}

// Failure is a run in which a rule broke.
type Failure struct {
	Seed    uint64  `json:"seed"`
	Checker string  `json:"checker"`
	At      float64 `json:"at"` // virtual seconds
	Subject string  `json:"subject"`
	Text    string  `json:"text"`
	Repeat  string  `json:"repeat"`
	// Saved is the file of the shrunk scenario, where one was saved.
	Saved string `json:"saved,omitempty"`
	// Scenario is the one that failed, as it was played.
	Scenario scenario.Scenario `json:"-"`
}

// Seed is the digest of one run.
type Seed struct {
	Seed   uint64 `json:"seed"`
	Digest string `json:"digest"`
}

// Player plays one scenario from beginning to end, and keeps its trace if it is told to. It gives up when ctx ends, whose
// error it returns then.
type Player func(ctx context.Context, s scenario.Scenario, keep bool) (Result, error)

// Player plays scenarios in worlds of this setting.
func (o Setting) Player() Player {
	return func(ctx context.Context, s scenario.Scenario, keep bool) (Result, error) {
		own := o
		own.Keep = keep
		return playWithin(ctx, s, own)
	}
}

// garbage is how much of it there may be while worlds run, in percent of what is in use: their heaps are small, and
// collecting costs a tenth of the time otherwise.
const garbage = 400

// Run plays scenarios in parallel on all cores, and calls each with every result in their order; optional. After
// within, unless it is 0, no more are begun: the report is of those that were. It stops early when ctx ends, whose error
// it returns, or when a run could not be made: the report then is of the runs before that.
func Run(ctx context.Context, within time.Duration, scenarios iter.Seq[scenario.Scenario], play Player, each func(Result)) (Report, error) {
	began := time.Now()
	defer debug.SetGCPercent(debug.SetGCPercent(garbage))
	inner, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait() // nobody uses the program when this returns
	defer stop()
	r := newReport()
	all := sha256.New()
	var failed error
	for result, err := range playAll(inner, &running, inTime(scenarios, began, within), play) {
		if failed = err; err != nil {
			break
		}
		r.add(result)
		fmt.Fprintf(all, "%d %s\n", result.Seed, result.Digest)
		if each != nil {
			each(result)
		}
	}
	r.WallSeconds = time.Since(began).Seconds()
	r.Digest = hex.EncodeToString(all.Sum(nil)[:16])
	if failed == nil {
		failed = ctx.Err()
	}
	return r, failed
}

// inTime are the scenarios that are asked for within a time; 0 is for ever.
func inTime(scenarios iter.Seq[scenario.Scenario], began time.Time, within time.Duration) iter.Seq[scenario.Scenario] {
	return func(yield func(scenario.Scenario) bool) {
		for s := range scenarios {
			if within > 0 && time.Since(began) > within || !yield(s) {
				return
			}
		}
	}
}

// ReportOf is the report of a single run.
func ReportOf(result Result) Report {
	r := newReport()
	r.add(result)
	r.Digest = result.Digest
	return r
}

func newReport() Report {
	return Report{Failures: []Failure{}, Seeds: []Seed{}, Checks: map[string]int{}}
}

func (r *Report) add(result Result) {
	r.Runs++
	r.Module = result.Module
	r.VirtualSeconds += result.Virtual.Seconds()
	r.Seeds = append(r.Seeds, Seed{Seed: result.Seed, Digest: result.Digest})
	for rule, n := range result.Counts {
		r.Checks[rule] += n
	}
	if v := result.Violation; v != nil {
		r.Failed++
		r.Failures = append(r.Failures, Failure{
			Seed: result.Seed, Checker: v.Rule, At: v.At.Seconds(), Subject: v.Subject, Text: v.Text, Repeat: result.Repeat,
			Scenario: result.Scenario,
		})
	}
}

// ahead is how many results per core may wait for one that takes longer.
const ahead = 8

// playAll plays scenarios, as many at a time as there are cores, and gives their results in order. What it begins is among
// running.
func playAll(ctx context.Context, running *sync.WaitGroup, scenarios iter.Seq[scenario.Scenario], play Player) iter.Seq2[Result, error] {
	type outcome struct {
		result Result
		err    error
	}
	cores := runtime.GOMAXPROCS(0)
	order := make(chan chan outcome, ahead*cores)
	running.Go(func() {
		defer close(order)
		next, stop := iter.Pull(scenarios)
		defer stop()
		free := make(chan int, cores)
		for core := range cores {
			free <- core
		}
		for {
			var core int
			select {
			case core = <-free:
			case <-ctx.Done():
				return
			}
			s, ok := next() // only now: time has passed
			if !ok {
				return
			}
			done := make(chan outcome, 1)
			running.Go(func() {
				stayOn(core)
				result, err := play(ctx, s, false)
				done <- outcome{result, err}
				free <- core
			})
			select {
			case order <- done:
			case <-ctx.Done():
				return
			}
		}
	})
	return func(yield func(Result, error) bool) {
		for done := range order {
			if out := <-done; !yield(out.result, out.err) {
				return
			}
		}
	}
}
