// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
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
}

// Seed is the digest of one run.
type Seed struct {
	Seed   uint64 `json:"seed"`
	Digest string `json:"digest"`
}

// Run plays scenarios in parallel on all cores, and calls each with every result in their order; optional. After
// within, unless it is 0, no more are begun: the report is of those that were. It stops early when ctx ends, whose error
// it returns, or when a run could not be made.
func Run(ctx context.Context, within time.Duration, scenarios []scenario.Scenario, o Setting, each func(Result)) (Report, error) {
	began := time.Now()
	enough := func() bool { return within > 0 && time.Since(began) > within }
	results := playAll(ctx, enough, scenarios, o)
	r := newReport(moduleOf(o))
	all := sha256.New()
	for _, wait := range results {
		result, err := wait()
		if errors.Is(err, errEnough) {
			break
		}
		if err != nil {
			return r, err
		}
		r.add(result)
		fmt.Fprintf(all, "%d %s\n", result.Seed, result.Digest)
		if each != nil {
			each(result)
		}
	}
	r.WallSeconds = time.Since(began).Seconds()
	r.Digest = hex.EncodeToString(all.Sum(nil)[:16])
	return r, ctx.Err()
}

// ReportOf is the report of a single run.
func ReportOf(result Result) Report {
	r := newReport(result.Module)
	r.add(result)
	r.Digest = result.Digest
	return r
}

func newReport(module string) Report {
	return Report{Failures: []Failure{}, Seeds: []Seed{}, Checks: map[string]int{}, Module: module}
}

func (r *Report) add(result Result) {
	r.Runs++
	r.VirtualSeconds += result.Virtual.Seconds()
	r.Seeds = append(r.Seeds, Seed{Seed: result.Seed, Digest: result.Digest})
	for rule, n := range result.Counts {
		r.Checks[rule] += n
	}
	if v := result.Violation; v != nil {
		r.Failed++
		r.Failures = append(r.Failures, Failure{
			Seed: result.Seed, Checker: v.Rule, At: v.At.Seconds(), Subject: v.Subject, Text: v.Text, Repeat: Repeat(result.Scenario),
		})
	}
}

// errEnough says that a run was not begun, because the time for beginning runs is over.
var errEnough = errors.New("not begun")

// playAll begins the runs in order, as many at a time as there are cores, and gives a function for each that waits
// for it.
func playAll(ctx context.Context, enough func() bool, scenarios []scenario.Scenario, o Setting) []func() (Result, error) {
	type outcome struct {
		result Result
		err    error
	}
	outcomes := make([]chan outcome, len(scenarios))
	waits := make([]func() (Result, error), len(scenarios))
	for i := range scenarios {
		outcomes[i] = make(chan outcome, 1)
		waits[i] = func() (Result, error) {
			out := <-outcomes[i]
			return out.result, out.err
		}
	}
	next := make(chan int)
	go func() {
		defer close(next)
		for i := range scenarios {
			next <- i
		}
	}()
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for i := range next {
				out := outcome{err: ctx.Err()}
				if enough() {
					out.err = errEnough
				}
				if out.err == nil {
					out.result, out.err = Play(scenarios[i], o)
				}
				outcomes[i] <- out
			}
		}()
	}
	return waits
}
