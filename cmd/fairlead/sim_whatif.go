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
}

// check refuses flags that do not go together.
func (w *whatIf) check(cmd *cobra.Command) error {
	if w.manifests == "" {
		if len(w.only) > 0 {
			return usagef("--what-if: needs --manifests DIR")
		}
		return nil
	}
	for _, flag := range []string{"scenario", "part", "save", "within", "services"} {
		if cmd.Flags().Changed(flag) {
			return usagef("--%s does not go with --manifests: each question has one world, of your own objects", flag)
		}
	}
	return nil
}

// ask answers all questions about the user's manifests. Of several seeds the first counts.
func (r *simRun) ask(ctx context.Context, c *cli) error {
	if _, err := r.options(); err != nil {
		return err
	}
	seed, _, err := parseSeeds(r.seeds)
	if err != nil {
		return err
	}
	cluster, err := whatif.Read(r.whatIf.manifests)
	if err != nil {
		return usagef("--manifests: %w", err)
	}
	o := whatif.Options{
		Members: r.members, Nodes: r.nodes, Seed: seed, Duration: r.duration, Only: r.whatIf.only,
		Each: func(a whatif.Answer) { fmt.Fprintf(c.err, "%s: %s\n", a.ID, a.Brief()) },
	}
	if err := cluster.Check(o); err != nil {
		return usagef("--manifests: %w", err)
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
	o.Program = module
	report, err := cluster.Ask(ctx, o)
	if err != nil {
		return err
	}
	if page.file != nil {
		shown := report.Answers[0]
		if broken := report.Failed(); broken != nil {
			shown = *broken
		}
		err := cluster.WriteHTML(page.file, o, shown.ID)
		if end := page.file.Close(); err == nil {
			err = end
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", page.file.Name(), err)
		}
	}
	if err := r.tell(c, report); err != nil {
		return err
	}
	if broken := report.Failed(); broken != nil {
		return fmt.Errorf("rule %s broke in %s: repeat it with `%s`", broken.Violation.Rule, broken.ID, broken.Replay)
	}
	return nil
}

// tell prints a report.
func (r *simRun) tell(c *cli, report whatif.Report) error {
	if r.json || c.format == output.JSON {
		encoder := json.NewEncoder(c.out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	}
	return report.WriteText(c.out)
}
