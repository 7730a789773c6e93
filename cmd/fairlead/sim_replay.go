// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"fairlead.io/fairlead/cmd/fairlead/internal/output"
	"fairlead.io/fairlead/sim"
	"fairlead.io/fairlead/sim/program"
	"fairlead.io/fairlead/sim/scenario"
	"fairlead.io/fairlead/sim/trace"
)

// simReplay is `fairlead sim replay`.
type simReplay struct {
	worldFlags
	seed    uint64
	file    string
	html    string
	verbose bool
	filter  trace.Filter
}

func newSimReplay(c *cli) *cobra.Command {
	r := &simReplay{}
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Repeat one run, and show it",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (r.file != "") == cmd.Flags().Changed("seed") {
				return usagef("want one of --seed N and --scenario FILE")
			}
			return r.run(cmd.Context(), c)
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

func (r *simReplay) scenario() (scenario.Scenario, error) {
	if r.file != "" {
		return scenario.Read(r.file)
	}
	o, err := r.options()
	if err != nil {
		return scenario.Scenario{}, err
	}
	return scenario.Draw(r.seed, o), nil
}

func (r *simReplay) run(ctx context.Context, c *cli) error {
	s, err := r.scenario()
	if err != nil {
		return err
	}
	if err := r.filter.Check(); err != nil {
		return usagef("%w", err)
	}
	page, err := openPage(r.html)
	if err != nil {
		return err
	}
	module, err := sim.Load(ctx, program.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = module.Close(ctx) }() // the process ends
	o := sim.Setting{Program: module, Keep: r.verbose}
	result, err := sim.Play(s, o)
	if err != nil {
		return err
	}
	if err := page.write(s, o); err != nil {
		return err
	}
	if r.verbose {
		if err := trace.WriteText(c.out, result.Trace, r.filter); err != nil {
			return err
		}
	}
	return r.print(c, result)
}

func (r *simReplay) print(c *cli, result sim.Result) error {
	if c.format == output.JSON {
		report := sim.ReportOf(result)
		encoder := json.NewEncoder(c.out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(report); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintf(c.out, "%s\nseed %d: %d events in %s, digest %s\n", result.Scenario.Text(), result.Seed, result.Events,
		trace.Clock(result.Virtual), result.Digest); err != nil {
		return err
	}
	if v := result.Violation; v != nil {
		return fmt.Errorf("%s broke at %s: %s", v.Rule, trace.Clock(v.At), v.Text)
	}
	return nil
}
