// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"fairlead.io/fairlead/sim"
	"fairlead.io/fairlead/sim/scenario"
	"fairlead.io/fairlead/sim/trace"
)

// simRun is `fairlead sim run`.
type simRun struct {
	worldFlags
	seeds, part string
	seedsGiven  bool
	json        bool
	html, save  string
	within      time.Duration
	whatIf      whatIf
}

func newSimRun(c *cli, load loadSimulator) *cobra.Command {
	r := &simRun{}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run worlds drawn from seeds, one scenario, or what-ifs of your manifests; fails when a rule broke",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := together(r.whatIf.check(cmd), r.check(cmd)); err != nil {
				return err
			}
			c.jsonToo(r.json)
			r.seedsGiven = cmd.Flags().Changed("seeds")
			if r.whatIf.manifests != "" {
				return r.ask(cmd.Context(), c, load)
			}
			return r.run(cmd.Context(), c, load)
		},
	}
	r.add(cmd)
	cmd.Flags().StringVar(&r.seeds, "seeds", "1..10", "seeds, A..B")
	cmd.Flags().StringVar(&r.part, "part", "", "run one part of the seeds only, I/N, counted from 0: for many machines")
	cmd.Flags().StringVar(&r.file, "scenario", "", "run this scenario instead of drawing some")
	cmd.Flags().BoolVar(&r.json, "json", false, "print one JSON object; as -o json")
	cmd.Flags().StringVar(&r.html, "html", "", "write the first run that failed, else the first, as a page for a browser")
	cmd.Flags().StringVar(&r.save, "save", "", "folder to keep the shrunk scenarios of failed runs in")
	cmd.Flags().DurationVar(&r.within, "within", 0, "begin no more runs after this much real time; 0: run all")
	r.whatIf.add(cmd)
	return cmd
}

// check refuses what cannot be meant.
func (r *simRun) check(cmd *cobra.Command) error {
	if r.within < 0 {
		return usagef("--within %v: want a time from 0 up; 0 runs all", r.within)
	}
	return alone(cmd, "scenario", "the file says which world", append([]string{"seeds", "part"}, drawing...)...)
}

// scenarios are those to be played, and how many.
func (r *simRun) scenarios() (iter.Seq[scenario.Scenario], int, error) {
	if r.file != "" {
		s, err := r.read()
		return slices.Values([]scenario.Scenario{s}), 1, err
	}
	o, err := r.options()
	if err != nil {
		return nil, 0, err
	}
	s, err := parseSeeds(r.seeds, r.part)
	if err != nil {
		return nil, 0, err
	}
	return s.draw(o), s.count(), nil
}

func (r *simRun) run(ctx context.Context, c *cli, load loadSimulator) error {
	scenarios, count, err := r.scenarios()
	if err != nil {
		return err
	}
	if err := checkFolder(r.save); err != nil {
		return err
	}
	page, err := openPage(r.html)
	if err != nil {
		return err
	}
	defer page.drop()
	s, err := load(ctx, r.file)
	if err != nil {
		return interrupted(err, ended(0, count))
	}
	defer s.close()
	var first sim.Result
	report, stopped := sim.Run(ctx, r.within, scenarios, s.play, func(result sim.Result) {
		if first.Repeat == "" || first.Violation == nil && result.Violation != nil {
			first = result
		}
		tellRun(c.err, result)
	})
	if report.Runs == 0 && stopped != nil {
		return interrupted(stopped, ended(0, count))
	}
	// What the runs told is printed, whatever fails afterwards.
	var saved, shown error
	if r.save != "" {
		shrinking, done := context.WithTimeout(ctx, shrinkWithin)
		saved = sim.SaveFailures(shrinking, &report, s.play, r.save)
		done()
	}
	if stopped == nil {
		shown = page.write(func(to io.Writer) error { return showRun(ctx, to, s.play, first.Scenario) })
	}
	printed := c.print(runsReport{report})
	return together(interrupted(stopped, ended(report.Runs, count)), broken(report), saved, shown, printed)
}

// shrinkWithin is how long looking for smaller scenarios that fail may take. A run takes half a minute, and many may fail.
const shrinkWithin = 10 * time.Minute

// broken is the error of runs of which some broke a rule.
func broken(report sim.Report) error {
	if report.Failed == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d runs broke a rule: the first was seed %d; repeat it with `%s`",
		report.Failed, report.Runs, report.Failures[0].Seed, report.Failures[0].Repeat)
}

// checkFolder finds out whether scenarios can be kept in a folder, before an hour of runs.
func checkFolder(name string) error {
	if name == "" {
		return nil
	}
	if info, err := os.Stat(name); err == nil && !info.IsDir() {
		return usagef("--save %s: it is a file; name a folder", name)
	}
	err := os.MkdirAll(name, 0o755)
	if err == nil {
		err = tryFolder(name)
	}
	if err != nil {
		return fmt.Errorf("--save %s: %s; name a folder that can be written", name, plainly(err))
	}
	return nil
}

func tryFolder(name string) error {
	f, err := os.CreateTemp(name, ".try-*")
	if err != nil {
		return err
	}
	_ = f.Close() // nothing is in it
	return os.Remove(f.Name())
}

// tellRun is a line of progress.
func tellRun(to io.Writer, r sim.Result) {
	if r.Violation != nil {
		fmt.Fprintf(to, "seed %d: %v\n", r.Seed, brokenRule(r))
		return
	}
	fmt.Fprintf(to, "seed %d: ok, %s\n", r.Seed, r.Digest)
}

// showRun plays a scenario again, now keeping its trace, and writes it as a page.
func showRun(ctx context.Context, to io.Writer, play sim.Player, s scenario.Scenario) error {
	result, err := play(ctx, s, true)
	if err != nil {
		return err
	}
	return trace.WriteHTML(to, result.Trace, trace.Page{})
}
