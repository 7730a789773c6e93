// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cmd/fairlead/internal/output"
)

// drained is what `fairlead drain` prints.
type drained struct {
	Drain  string              `json:"drain"`
	Undone bool                `json:"undone"`
	Done   bool                `json:"done"`
	Left   []records.DrainLeft `json:"left"`
}

// WriteTable writes how far it has come.
func (d drained) WriteTable(w io.Writer) error {
	switch {
	case d.Undone:
		return output.WriteFields(w, [2]string{"no longer drained", d.Drain})
	case d.Done:
		return output.WriteFields(w, [2]string{"drained", d.Drain})
	}
	return output.WriteFields(w, [2]string{"draining", d.Drain}, [2]string{"left", d.left()})
}

// left tells what a drain has not taken away yet, and why.
func (d drained) left() string {
	const most = 3
	var text []string
	for _, l := range d.Left[:min(most, len(d.Left))] {
		text = append(text, fmt.Sprintf("%s via %s (%s: %s)", l.Prefix, l.Node, l.State, l.Why))
	}
	if more := len(d.Left) - most; more > 0 {
		text = append(text, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(text, ", ")
}

// drainPoll is how often a drain that is waited for is looked at.
const drainPoll = 500 * time.Millisecond

// newDrain makes the commands that have new flows go elsewhere.
func newDrain(c *cli, over wordOver) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "Have new flows go past a node or a Service",
		Long: "Have new flows go past a node or a Service, until --undo. The last next hop of an address that works is never taken away\n" +
			"by the drain of a node. `fairlead get drains` lists drains and what they have left, `fairlead why` tells why.",
	}
	cmd.AddCommand(newDrainOf(c, over, "node", "NAME", "Have new flows go past a node, wherever another one serves"))
	cmd.AddCommand(newDrainOf(c, over, "service", "NAMESPACE/NAME", "Announce the addresses of a Service nowhere; they stay its own"))
	return cmd
}

func newDrainOf(c *cli, over wordOver, of, name, short string) *cobra.Command {
	var ch change
	var undo, wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   of + " " + name,
		Short: short,
		Example: "  fairlead drain " + of + " " + strings.ToLower(name) + " --wait --timeout 5m\n" +
			"  fairlead drain " + of + " " + strings.ToLower(name) + " --undo",
		Args: arguments(1, 1),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return c.completeNames(cmd.Context(), of+"s"), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case undo && wait:
				return usagef("--undo and --wait exclude each other: there is nothing to wait for")
			case timeout <= 0:
				return usagef("--timeout %s: it is a time above 0", timeout)
			}
			what := "drain " + of + " " + args[0]
			err := c.tell(cmd.Context(), what, over, func(ctx context.Context, w word) error {
				return w.Drain(ctx, of, args[0], undo, ch.reason)
			})
			d := drained{Drain: of + "/" + args[0], Undone: undo, Left: []records.DrainLeft{}}
			switch {
			case err != nil:
				return err
			case wait:
				err = c.awaitDrain(cmd.Context(), what, timeout, &d)
			case !undo:
				err = c.lookAtDrain(cmd.Context(), &d)
			}
			if err != nil {
				return err
			}
			return c.print(d)
		},
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "end the drain")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until no switch leads there any more; progress goes to standard error")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "how long --wait waits; the drain stays and goes on")
	ch.addReason(cmd)
	return cmd
}

// lookAtDrain reads how far a drain has come.
func (c *cli) lookAtDrain(ctx context.Context, d *drained) error {
	kind, _ := records.Find("drains")
	found, err := c.get(ctx, kind, &fairleadv1.GetRequest{Name: d.Drain, Linearizable: true})
	if err != nil {
		return err
	}
	var doc records.Drain
	if err := json.Unmarshal(found.Items[0], &doc); err != nil {
		return fmt.Errorf("get drains %s: the answer is not what this release reads: %w; use the release of fairlead that the group runs", d.Drain, err)
	}
	d.Done, d.Left = doc.Done, doc.Left
	return nil
}

// awaitDrain looks until a drain is done. A look that fails is repeated: leaders come and go meanwhile.
func (c *cli) awaitDrain(ctx context.Context, what string, timeout time.Duration, d *drained) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	said := ""
	for {
		err := c.lookAtDrain(ctx, d)
		if err == nil && d.Done {
			return nil
		}
		now := fmt.Sprintf("%d next hops left: %s", len(d.Left), d.left())
		if err != nil {
			now = "cannot be looked at: " + err.Error()
		}
		if now != said && ctx.Err() == nil {
			said = now
			fmt.Fprintf(c.err, "%s: %s\n", what, now)
		}
		select {
		case <-time.After(drainPoll):
		case <-ctx.Done():
			return fmt.Errorf("%s: not done within %s: %s; the drain stays and goes on: see `fairlead get drains %s`, or end it with --undo", what, timeout, said, d.Drain)
		}
	}
}
