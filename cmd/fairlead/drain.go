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
	"fairlead.io/fairlead/fsm"
)

// drained is what `fairlead drain` prints.
type drained struct {
	Drain  string               `json:"drain"`
	Undone bool                 `json:"undone"`
	Done   bool                 `json:"done"`
	Left   []records.DrainLeft  `json:"left"`
	Flows  []records.DrainFlows `json:"flows"`
}

// WriteTable writes how far it has come.
func (d drained) WriteTable(w io.Writer) error {
	switch {
	case d.Undone:
		return output.WriteFields(w, [2]string{"no longer drained", d.Drain})
	case d.Done && len(d.Flows) == 0:
		return output.WriteFields(w, [2]string{"drained", d.Drain})
	case d.Done:
		return output.WriteFields(w, [2]string{"drained", d.Drain}, [2]string{"flows", d.flows()})
	}
	return output.WriteFields(w, [2]string{"draining", d.Drain}, [2]string{"left", d.left()})
}

// flows tells what is left of the connections.
func (d drained) flows() string {
	if len(d.Flows) == 0 {
		return "not counted yet"
	}
	var text []string
	for _, f := range d.Flows {
		if f.Why != "" {
			text = append(text, f.Node+" could not count them: "+f.Why)
			continue
		}
		text = append(text, fmt.Sprintf("%d open by way of %s, %d busy in the last 30 s", f.Open, f.Node, f.Busy))
	}
	return strings.Join(text, ", ")
}

// quiet tells whether nothing is to be waited for of flows: all nodes counted them after the fabric had converged and found none
// that is busy, or cannot count.
func (d drained) quiet(converged time.Duration) bool {
	for _, f := range d.Flows {
		if f.Why == "" && (f.Busy > 0 || time.Duration(f.AgeMs)*time.Millisecond > converged) {
			return false
		}
	}
	return len(d.Flows) > 0
}

// left tells what a drain has not taken away yet, and why.
func (d drained) left() string { return leftText(d.Left) }

// leftText names what is left, and why, the first few of it.
func leftText(left []records.DrainLeft) string {
	const most = 3
	var text []string
	for _, l := range left[:min(most, len(left))] {
		switch {
		case l.Prefix == "":
			text = append(text, l.State+" still: "+l.Why)
		case l.Node == "":
			text = append(text, fmt.Sprintf("%s (%s: %s)", l.Prefix, l.State, l.Why))
		default:
			text = append(text, fmt.Sprintf("%s via %s (%s: %s)", l.Prefix, l.Node, l.State, l.Why))
		}
	}
	if more := len(left) - most; more > 0 {
		text = append(text, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(text, ", ")
}

// watchPoll is how often what is waited for is looked at.
const watchPoll = 500 * time.Millisecond

// newDrain makes the commands that have new flows go elsewhere.
func newDrain(c *cli, over wordOver) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "Have new flows go past a node or a Service, or the group do without a member",
		Long: "Have new flows go past a node or a Service, or the group do without a member, until --undo. The last next hop of an address\n" +
			"that works is never taken away by the drain of a node, and the last member that announces never leaves. `fairlead get drains` lists drains and what they have left, `fairlead why` tells why.",
	}
	cmd.AddCommand(newDrainOf(c, over, "node", "NAME", "Have new flows go past a node, wherever another one serves"))
	cmd.AddCommand(newDrainOf(c, over, "service", "NAMESPACE/NAME", "Announce the addresses of a Service nowhere; they stay its own"))
	cmd.AddCommand(newDrainOf(c, over, "member", "NAME", "Have another member lead, and end the BGP sessions of this one once others announce the same"))
	return cmd
}

func newDrainOf(c *cli, over wordOver, of, name, short string) *cobra.Command {
	var ch change
	var undo, wait bool
	var timeout, quietWithin time.Duration
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
			if of == string(fsm.DrainMember) { // `get members` names servers
				return c.completeServers(cmd, args, "")
			}
			return c.completeNames(cmd.Context(), of+"s"), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case undo && wait:
				return usagef("--undo and --wait exclude each other: there is nothing to wait for")
			case timeout <= 0:
				return usagef("--timeout %s: it is a time above 0", timeout)
			case quietWithin < 0:
				return usagef("--quiet-within %s: it is a time, or 0 for not waiting for flows", quietWithin)
			}
			if err := needs(cmd, "wait", "timeout", "quiet-within"); err != nil {
				return err
			}
			what := "drain " + of + " " + args[0]
			err := c.tell(cmd.Context(), what, over, func(ctx context.Context, w word) error {
				return w.Drain(ctx, of, args[0], undo, ch.reason)
			})
			d := drained{Drain: of + "/" + args[0], Undone: undo, Left: []records.DrainLeft{}, Flows: []records.DrainFlows{}}
			switch {
			case err != nil:
				return err
			case wait:
				if err = c.awaitDrain(cmd.Context(), what, timeout, &d); err == nil && quietWithin > 0 {
					err = c.awaitQuiet(cmd.Context(), what, quietWithin, &d)
				}
			case !undo:
				err = c.lookSoon(cmd.Context(), what, "the drain stays: see `fairlead get drains "+d.Drain+"`", func(ctx context.Context) error { return c.lookAtDrain(ctx, &d) })
			}
			if err != nil {
				return err
			}
			return c.print(d)
		},
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "end the drain")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until that is so; progress goes to standard error")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "how long --wait waits for that; the drain stays and goes on")
	if of == string(fsm.DrainNode) {
		cmd.Flags().DurationVar(&quietWithin, "quiet-within", 5*time.Minute, "how long --wait then waits for the node's connections to fall quiet; 0: not at all")
	}
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
	d.Done, d.Left, d.Flows = doc.Done, doc.Left, doc.Flows
	if d.Flows == nil {
		d.Flows = []records.DrainFlows{} // of a member of an older release
	}
	return nil
}

// awaitDrain looks until a drain is done. A look that fails is repeated: leaders come and go meanwhile.
func (c *cli) awaitDrain(ctx context.Context, what string, timeout time.Duration, d *drained) error {
	said, over := c.watchDrain(ctx, what, timeout, d, func() (string, bool) {
		if strings.HasPrefix(d.Drain, string(fsm.DrainMember)+"/") {
			return "left: " + d.left(), d.Done
		}
		return fmt.Sprintf("%d next hops left: %s", len(d.Left), d.left()), d.Done
	})
	if over {
		return nil
	}
	return fmt.Errorf("%s: not done within %s: %s; the drain stays and goes on: see `fairlead get drains %s`, or end it with --undo", what, timeout, said, d.Drain)
}

// awaitQuiet looks until no connection by way of what is drained is busy. What is left when the time is over is shown, and no
// failure: no switch leads there, and how long the rest is worth waiting for was said by who asked.
func (c *cli) awaitQuiet(ctx context.Context, what string, within time.Duration, d *drained) error {
	converged := time.Now()
	_, _ = c.watchDrain(ctx, what, within, d, func() (string, bool) {
		return "flows: " + d.flows(), !d.Done || d.quiet(time.Since(converged))
	})
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: no longer waited for: %w; the drain stays: see `fairlead get drains %s`", what, ctx.Err(), d.Drain)
	case !d.Done:
		return fmt.Errorf("%s: it leads there again: %s; the drain stays and goes on: see `fairlead get drains %s`", what, d.left(), d.Drain)
	}
	return nil
}

// lookPatience is how long what was taken is looked at, where nobody answers: an election takes some seconds.
const lookPatience = 10 * time.Second

// lookSoon reads how far something has come that the group has taken. A look that fails says nothing of that, and is repeated.
func (c *cli) lookSoon(ctx context.Context, what, stays string, read func(context.Context) error) error {
	if said, over := c.watch(ctx, what, lookPatience, read, func() (string, bool) { return "", true }); !over {
		return fmt.Errorf("%s: it is taken, and %s; %s", what, said, stays)
	}
	return nil
}

// watchDrain is watch of a drain.
func (c *cli) watchDrain(ctx context.Context, what string, within time.Duration, d *drained, look func() (now string, over bool)) (said string, over bool) {
	return c.watch(ctx, what, within, func(ctx context.Context) error { return c.lookAtDrain(ctx, d) }, look)
}

// watch reads and looks until it is over, or the time is, and tells how it stands on standard error whenever that changes. It
// returns what it told last.
func (c *cli) watch(ctx context.Context, what string, within time.Duration, read func(context.Context) error, look func() (now string, over bool)) (said string, over bool) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		var now string
		err := read(ctx)
		if err == nil {
			now, over = look()
		} else {
			now = "cannot be looked at: " + err.Error()
		}
		if over {
			return said, true
		}
		if now != said && ctx.Err() == nil {
			said = now
			fmt.Fprintf(c.err, "%s: %s\n", what, now)
		}
		select {
		case <-time.After(watchPoll):
		case <-ctx.Done():
			return said, false
		}
	}
}
