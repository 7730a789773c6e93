// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"fairlead.io/fairlead/e2e/demo/internal/load"
)

// report is what --json writes.
type report struct {
	Steps []stepReport `json:"steps"`
}

// figures count requests.
type figures struct {
	Requests   int     `json:"requests"`
	Failed     int     `json:"failed"`
	LongestGap float64 `json:"longest_gap_ms"`
	// Unjudged counts requests answered at a second try, because this machine stood still during the first.
	Unjudged int `json:"unjudged"`
}

func figuresOf(f load.Figures) figures {
	return figures{Requests: f.Requests, Failed: f.Failed, Unjudged: f.Unjudged, LongestGap: f.Gap.Seconds() * 1000}
}

// stepReport is what became of the requests of a step.
type stepReport struct {
	Name string `json:"name"`
	figures
	// NextHops has the same by the node that the switch chose; "none" where it sent the request to none.
	NextHops map[string]figures `json:"next_hops"`
	Services map[string]figures `json:"services"`
	Causes   map[string]int     `json:"causes"` // of failures
	// Dropped counts requests that were not made because this machine was too busy.
	Dropped int     `json:"dropped"`
	Seconds float64 `json:"seconds"`
	// After has the requests while what was killed was brought back, for steps that end before that.
	After *figures `json:"after,omitempty"`
}

func newStepReport(name string, t load.Tally) stepReport {
	r := stepReport{
		Name: name, figures: figuresOf(t.Figures), Causes: t.Causes,
		NextHops: map[string]figures{}, Services: map[string]figures{},
	}
	r.LongestGap = t.LongestGap().Seconds() * 1000
	for hop, f := range t.Hops {
		r.NextHops[hop] = figuresOf(f)
	}
	for target, f := range t.Targets {
		r.Services[target] = figuresOf(f)
	}
	return r
}

func (r report) write(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

func printHead(out io.Writer) {
	fmt.Fprintf(out, "%-20s %9s %7s %12s  %s\n", "STEP", "REQUESTS", "FAILED", "LONGEST GAP", "FAILED BY NEXT HOP (GAP); CAUSES")
}

func (r stepReport) print(out io.Writer) {
	fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("%-20s %9d %7d %9.0f ms  %s", r.Name, r.Requests, r.Failed, r.LongestGap, r.remarks()), " "))
}

// remarks say where and why requests failed.
func (r stepReport) remarks() string {
	var hops, causes, out []string
	for _, hop := range slices.Sorted(maps.Keys(r.NextHops)) {
		if f := r.NextHops[hop]; f.Failed > 0 {
			hops = append(hops, fmt.Sprintf("%s %d (%.0f ms)", hop, f.Failed, f.LongestGap))
		}
	}
	for _, cause := range slices.Sorted(maps.Keys(r.Causes)) {
		causes = append(causes, fmt.Sprintf("%s: %d", cause, r.Causes[cause]))
	}
	if len(hops) > 0 {
		out = append(out, strings.Join(hops, ", "))
	}
	out = append(out, causes...)
	if r.After != nil && r.After.Failed > 0 {
		out = append(out, fmt.Sprintf("while it came back: %d of %d failed", r.After.Failed, r.After.Requests))
	}
	if r.Unjudged > 0 {
		out = append(out, fmt.Sprintf("this machine stood still during %d more", r.Unjudged))
	}
	if r.Dropped > r.Requests/20 {
		out = append(out, fmt.Sprintf("this machine was too busy for %d more", r.Dropped))
	}
	return strings.Join(out, "; ")
}
