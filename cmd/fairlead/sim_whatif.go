// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"fairlead.io/fairlead/sim/whatif"
)

// whatIf is what `fairlead sim run --manifests` adds.
type whatIf struct {
	manifests string
	only      []string
}

func (w *whatIf) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.manifests, "manifests", "", "ask what would happen to the cluster of these manifests: a folder; see docs/what-if.md")
	cmd.Flags().StringSliceVar(&w.only, "what-if", nil, "with --manifests: only these of the questions, by id")
	if err := cmd.RegisterFlagCompletionFunc("what-if", w.complete); err != nil {
		panic(err) // no such flag: this program is wrong
	}
}

// complete offers the ids of the questions about the manifests that are named; nothing if they cannot be read.
func (w *whatIf) complete(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	cluster, err := whatif.Read(w.manifests)
	if w.manifests == "" || err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	members, _ := cmd.Flags().GetInt("members") // its default, where it is none
	nodes, _ := cmd.Flags().GetInt("nodes")
	ids, err := cluster.IDs(whatif.Options{Members: members, Nodes: nodes})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// check refuses flags that do not go together.
func (w *whatIf) check(cmd *cobra.Command) error {
	if w.manifests == "" {
		if len(w.only) > 0 {
			return usagef("--what-if: needs --manifests DIR")
		}
		return nil
	}
	return alone(cmd, "manifests", "each question has one world, of your own objects", "scenario", "part", "save", "within", "services", "segments")
}

// ask answers all questions about the user's manifests.
func (r *simRun) ask(ctx context.Context, c *cli, load loadSimulator) error {
	cluster, o, err := r.cluster(c)
	if err != nil {
		return err
	}
	page, err := openPage(r.html)
	if err != nil {
		return err
	}
	defer page.drop()
	s, err := load(ctx, "")
	if err != nil {
		return interrupted(err, answered(0))
	}
	defer s.close()
	o.Program = s.program
	report, stopped := cluster.Ask(ctx, o)
	if len(report.Answers) == 0 {
		return interrupted(stopped, answered(0))
	}
	var shown error
	if stopped == nil {
		shown = page.write(func(to io.Writer) error { return cluster.WriteHTML(ctx, to, o, worthLooking(report)) })
	}
	printed := c.print(answersReport{report})
	return together(interrupted(stopped, answered(len(report.Answers))), brokenAnswer(report), shown, printed)
}

// answered says how many questions are.
func answered(n int) string { return fmt.Sprintf("%d questions had been answered", n) }

// cluster reads the manifests and how they are asked about.
func (r *simRun) cluster(c *cli) (*whatif.Cluster, whatif.Options, error) {
	if _, err := r.options(); err != nil {
		return nil, whatif.Options{}, err
	}
	seeds, err := parseSeeds(r.seeds, "")
	if err != nil {
		return nil, whatif.Options{}, err
	}
	if r.seedsGiven && seeds.count() > 1 {
		return nil, whatif.Options{}, usagef("--seeds %s: with --manifests one seed is played; name it: --seeds %d..%d", r.seeds, seeds.first, seeds.first)
	}
	cluster, err := whatif.Read(r.whatIf.manifests)
	if err != nil {
		return nil, whatif.Options{}, usagef("--manifests: %w", err)
	}
	o := whatif.Options{
		Members: r.members, Nodes: r.nodes, Seed: seeds.first, Duration: r.duration, Only: r.whatIf.only,
		Each: func(a whatif.Answer) { fmt.Fprintf(c.err, "%s: %s\n", a.ID, a.Brief()) },
	}
	if err := cluster.Check(o); err != nil {
		return nil, whatif.Options{}, usagef("--manifests: %w", err)
	}
	return cluster, o, nil
}

// worthLooking is the answer to be shown: the first in which a rule broke, else the first.
func worthLooking(report whatif.Report) string {
	if broken := report.Failed(); broken != nil {
		return broken.ID
	}
	return report.Answers[0].ID
}

// brokenAnswer is the error of answers in which a rule broke.
func brokenAnswer(report whatif.Report) error {
	broken := report.Failed()
	if broken == nil {
		return nil
	}
	return fmt.Errorf("rule %s broke in %s: repeat it with `%s`", broken.Violation.Rule, broken.ID, broken.Replay)
}
