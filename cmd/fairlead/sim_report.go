// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"fairlead.io/fairlead/cmd/fairlead/internal/output"
	"fairlead.io/fairlead/sim"
	"fairlead.io/fairlead/sim/trace"
	"fairlead.io/fairlead/sim/whatif"
)

// runsReport prints what became of several runs.
type runsReport struct{ sim.Report }

// WriteTable implements output.Tabler.
func (r runsReport) WriteTable(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%d runs, %d failed, %.0f virtual seconds in %.0f s; digest %s of program %s\n",
		r.Runs, r.Failed, r.VirtualSeconds, r.WallSeconds, r.Digest, r.Module)
	return err
}

// runReport prints what became of one run.
type runReport struct {
	sim.Report
	result sim.Result
}

// WriteTable implements output.Tabler.
func (r runReport) WriteTable(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s\nseed %d: %d events in %s, digest %s\n", r.result.Scenario.Text(), r.result.Seed, r.result.Events,
		trace.Clock(r.result.Virtual), r.result.Digest)
	return err
}

// answersReport prints what would happen to a cluster.
type answersReport struct{ whatif.Report }

// WriteTable implements output.Tabler.
func (r answersReport) WriteTable(w io.Writer) error { return r.WriteText(w) }

// jsonToo has --json mean -o json, which it is older than.
func (c *cli) jsonToo(yes bool) {
	if yes {
		c.format = output.JSON
	}
}

// interrupted says that somebody ended the command, and what is known all the same.
func interrupted(err error, known string) error {
	if !errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("interrupted: %s, and nothing else is reported", known)
}

// ended says how many of some runs are known.
func ended(runs, of int) string {
	if of == 1 {
		return fmt.Sprintf("%d of 1 run had ended", runs)
	}
	return fmt.Sprintf("%d of %d runs had ended", runs, of)
}

// together is one error of those that there are.
func together(all ...error) error {
	var out error
	for _, err := range all {
		switch {
		case err == nil:
		case out == nil:
			out = err
		default:
			out = fmt.Errorf("%w; also %w", out, err)
		}
	}
	return out
}
