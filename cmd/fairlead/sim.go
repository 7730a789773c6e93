// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairlead.io/fairlead/cmd/fairlead/internal/output"
	"fairlead.io/fairlead/sim"
	"fairlead.io/fairlead/sim/program"
	"fairlead.io/fairlead/sim/scenario"
	"fairlead.io/fairlead/sim/trace"
)

func newSim(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Run the shipped code in simulated worlds under faults, and judge it",
		Long: "Run the shipped code in simulated worlds under faults, and judge it.\n\n" +
			"Members and agents run as they ship; the network, disks, Kubernetes, switches, kernels and load balancers around\n" +
			"them are models. One integer, the seed, repeats a run event by event.",
	}
	cmd.AddCommand(newSimRun(c), newSimReplay(c), newSimList(c))
	return cmd
}

// worldFlags say what kind of worlds are drawn.
type worldFlags struct {
	duration       time.Duration
	members, nodes int
	services       int
}

func (w *worldFlags) add(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&w.duration, "duration", time.Minute, "virtual time of a run, in which faults begin and end")
	cmd.Flags().IntVar(&w.members, "members", 3, "members of the group, from 1 to 9")
	cmd.Flags().IntVar(&w.nodes, "nodes", 5, "nodes of the cluster, from 1 to 50")
	cmd.Flags().IntVar(&w.services, "services", 0, "Services at the beginning, up to 200; 0: drawn")
}

// options checks them.
func (w *worldFlags) options() (scenario.Options, error) {
	for _, f := range []struct {
		name              string
		have, least, most int
	}{{"members", w.members, 1, 9}, {"nodes", w.nodes, 1, 50}, {"services", w.services, 0, 200}} {
		if f.have < f.least || f.have > f.most {
			return scenario.Options{}, usagef("--%s %d: want %d to %d", f.name, f.have, f.least, f.most)
		}
	}
	if w.duration < leastDuration || w.duration > mostDuration {
		return scenario.Options{}, usagef("--duration %v: want %v to %v", w.duration, leastDuration, mostDuration)
	}
	return scenario.Options{
		Duration: w.duration, Members: w.members, Nodes: w.nodes, Services: w.services, Balancers: drivers, Clients: clients,
	}, nil
}

// Every drawn world has outside load balancers behind a driver, and clients that write and read the record.
const drivers, clients = 1, 2

// A run of less has no time for anything, and one of more is better made of several.
const leastDuration, mostDuration = 10 * time.Second, 24 * time.Hour

// parseSeeds reads A..B, or one seed.
func parseSeeds(text string) (first, last uint64, err error) {
	from, to, ranged := strings.Cut(text, "..")
	if !ranged {
		to = from
	}
	first, err1 := strconv.ParseUint(from, 10, 64)
	last, err2 := strconv.ParseUint(to, 10, 64)
	switch {
	case err1 != nil || err2 != nil:
		return 0, 0, usagef("--seeds %q: want A..B, two numbers from 0 up, such as 1..50", text)
	case last < first:
		return 0, 0, usagef("--seeds %q: the first seed is greater than the last; write %d..%d", text, last, first)
	case last-first >= maxSeeds:
		return 0, 0, usagef("--seeds %q: more than %d seeds; run them in parts", text, maxSeeds)
	}
	return first, last, nil
}

// maxSeeds bounds what one command holds in memory of its runs.
const maxSeeds = 1_000_000

// simRun is `fairlead sim run`.
type simRun struct {
	worldFlags
	seeds, part string
	file        string
	json        bool
	html, save  string
	within      time.Duration
	whatIf      whatIf
}

func newSimRun(c *cli) *cobra.Command {
	r := &simRun{}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run worlds drawn from seeds, one scenario, or what-ifs of your manifests; fails when a rule broke",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := r.whatIf.check(cmd); err != nil {
				return err
			}
			if r.whatIf.manifests != "" {
				return r.ask(cmd.Context(), c)
			}
			return r.run(cmd.Context(), c)
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

func (r *simRun) scenarios() ([]scenario.Scenario, error) {
	if r.file != "" {
		s, err := scenario.Read(r.file)
		return []scenario.Scenario{s}, err
	}
	o, err := r.options()
	if err != nil {
		return nil, err
	}
	first, last, err := parseSeeds(r.seeds)
	if err != nil {
		return nil, err
	}
	index, parts, err := parsePart(r.part)
	if err != nil {
		return nil, err
	}
	var out []scenario.Scenario
	for n := index; n <= last-first; n += parts {
		out = append(out, scenario.Draw(first+n, o))
	}
	if len(out) == 0 {
		return nil, usagef("--part %s: there are only %d seeds; ask for fewer parts", r.part, last-first+1)
	}
	return out, nil
}

// parsePart reads I/N; nothing is all of one part.
func parsePart(text string) (index, parts uint64, err error) {
	if text == "" {
		return 0, 1, nil
	}
	i, n, _ := strings.Cut(text, "/")
	index, err1 := strconv.ParseUint(i, 10, 64)
	parts, err2 := strconv.ParseUint(n, 10, 64)
	if err1 != nil || err2 != nil || index >= parts {
		return 0, 0, usagef("--part %q: want I/N with I from 0 to N-1, such as 3/20", text)
	}
	return index, parts, nil
}

func (r *simRun) run(ctx context.Context, c *cli) error {
	scenarios, err := r.scenarios()
	if err != nil {
		return err
	}
	page, err := openPage(r.html) // before an hour of runs
	if err != nil {
		return err
	}
	module, err := sim.Load(ctx, program.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = module.Close(ctx) }() // the process ends
	o := sim.Setting{Program: module}
	report, err := sim.Run(ctx, r.within, scenarios, o, func(result sim.Result) { tellRun(c.err, result) })
	if err != nil {
		return err
	}
	if r.save != "" {
		if err := sim.SaveFailures(ctx, &report, scenarios, o, r.save); err != nil {
			return err
		}
	}
	if err := page.write(worst(scenarios, report), o); err != nil {
		return err
	}
	if err := r.print(c, report); err != nil {
		return err
	}
	if report.Failed > 0 {
		return fmt.Errorf("%d of %d runs broke a rule: the first was seed %d; repeat it with `%s`",
			report.Failed, report.Runs, report.Failures[0].Seed, report.Failures[0].Repeat)
	}
	return nil
}

// worst is the scenario worth looking at.
func worst(scenarios []scenario.Scenario, report sim.Report) scenario.Scenario {
	for _, f := range report.Failures {
		for _, s := range scenarios {
			if s.Seed == f.Seed {
				return s
			}
		}
	}
	return scenarios[0]
}

// tellRun is a line of progress.
func tellRun(to io.Writer, r sim.Result) {
	if v := r.Violation; v != nil {
		fmt.Fprintf(to, "seed %d: %s broke at %s: %s\n", r.Seed, v.Rule, trace.Clock(v.At), v.Text)
		return
	}
	fmt.Fprintf(to, "seed %d: ok, %s\n", r.Seed, r.Digest)
}

func (r *simRun) print(c *cli, report sim.Report) error {
	if r.json || c.format == output.JSON {
		encoder := json.NewEncoder(c.out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	}
	_, err := fmt.Fprintf(c.out, "%d runs, %d failed, %.0f virtual seconds in %.0f s; digest %s of program %s\n",
		report.Runs, report.Failed, report.VirtualSeconds, report.WallSeconds, report.Digest, report.Module)
	return err
}

// page is where a run is to be shown; without a file nowhere.
type page struct{ file *os.File }

func openPage(path string) (page, error) {
	if path == "" {
		return page{}, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return page{}, fmt.Errorf("--html: %w; name a file in a folder that can be written", err)
	}
	return page{f}, nil
}

// write plays a scenario again, now keeping its trace.
func (p page) write(s scenario.Scenario, o sim.Setting) error {
	if p.file == nil {
		return nil
	}
	o.Keep = true
	result, err := sim.Play(s, o)
	if err == nil {
		err = trace.WriteHTML(p.file, result.Trace, trace.Page{})
	}
	if end := p.file.Close(); err == nil {
		err = end
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", p.file.Name(), err)
	}
	return nil
}
