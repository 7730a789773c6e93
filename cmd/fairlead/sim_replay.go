// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"fairlead.io/fairlead/cmd/fairlead/internal/output"
	"fairlead.io/fairlead/sim"
	"fairlead.io/fairlead/sim/scenario"
	"fairlead.io/fairlead/sim/trace"
)

// simReplay is `fairlead sim replay`.
type simReplay struct {
	worldFlags
	seed    uint64
	html    string
	verbose bool
	filter  trace.Filter
}

func newSimReplay(c *cli, load loadSimulator) *cobra.Command {
	r := &simReplay{}
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Repeat one run, and show it",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (r.file != "") == cmd.Flags().Changed("seed") {
				return usagef("want one of --seed N and --scenario FILE")
			}
			if err := together(r.check(c), alone(cmd, "scenario", "the file says which world", drawing...)); err != nil {
				return err
			}
			return r.run(cmd.Context(), c, load)
		},
	}
	r.add(cmd)
	flags := cmd.Flags()
	flags.Uint64Var(&r.seed, "seed", 0, "the seed of the run")
	flags.StringVar(&r.file, "scenario", "", "the scenario of the run")
	flags.StringVar(&r.html, "html", "", "write the run as a page for a browser")
	flags.BoolVarP(&r.verbose, "verbose", "v", false, "print each event")
	flags.StringSliceVar(&r.filter.Words, "about", nil, "with -v: only events with one of these words")
	flags.StringSliceVar(&r.filter.Lanes, "of", nil, "with -v: only events of these processes, machines and models")
	flags.StringSliceVar(&r.filter.Kinds, "kind", nil, "with -v: only events of these kinds")
	return cmd
}

// check refuses what cannot be meant.
func (r *simReplay) check(c *cli) error {
	if err := r.filter.Check(); err != nil {
		return usagef("--kind: %w", err)
	}
	filtered := len(r.filter.Words)+len(r.filter.Lanes)+len(r.filter.Kinds) > 0
	switch {
	case filtered && !r.verbose:
		return usagef("--about, --of and --kind choose among the events that -v prints; add -v")
	case r.verbose && c.format != output.Table:
		return usagef("-v prints lines for people; leave out -o %s, or -v", c.format)
	}
	return nil
}

func (r *simReplay) scenario() (scenario.Scenario, error) {
	if r.file != "" {
		return r.read()
	}
	o, err := r.options()
	if err != nil {
		return scenario.Scenario{}, err
	}
	return sim.Draw(r.seed, o), nil
}

func (r *simReplay) run(ctx context.Context, c *cli, load loadSimulator) error {
	s, err := r.scenario()
	if err != nil {
		return err
	}
	page, err := openPage(r.html)
	if err != nil {
		return err
	}
	defer page.drop()
	simulated, err := load(ctx, r.file)
	if err != nil {
		return interrupted(err, ended(0, 1))
	}
	defer simulated.close()
	result, err := simulated.play(ctx, s, r.verbose || page.wanted())
	if err != nil {
		return interrupted(err, ended(0, 1))
	}
	shown := page.write(func(to io.Writer) error { return trace.WriteHTML(to, result.Trace, trace.Page{}) })
	return together(brokenRule(result), shown, r.print(c, result))
}

func (r *simReplay) print(c *cli, result sim.Result) error {
	if r.verbose {
		if err := trace.WriteText(c.out, result.Trace, r.filter); err != nil {
			return err
		}
	}
	return c.print(runReport{sim.ReportOf(result), result})
}

// brokenRule is the error of a run that broke a rule.
func brokenRule(result sim.Result) error {
	v := result.Violation
	if v == nil {
		return nil
	}
	return fmt.Errorf("%s broke at %s: %s: %s", v.Rule, trace.Clock(v.At), v.Subject, v.Text)
}
