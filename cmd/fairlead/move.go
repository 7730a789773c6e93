// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cmd/fairlead/internal/output"
)

// moved is what `fairlead move` prints.
type moved struct {
	Service string              `json:"service"`
	Node    string              `json:"node"`
	Undone  bool                `json:"undone"`
	Done    bool                `json:"done"`
	Left    []records.DrainLeft `json:"left"`
}

// WriteTable writes how far it has come.
func (m moved) WriteTable(w io.Writer) error {
	switch {
	case m.Undone:
		return output.WriteFields(w, [2]string{"no longer moved", m.Service})
	case m.Done:
		return output.WriteFields(w, [2]string{"moved", m.Service}, [2]string{"to", m.Node})
	}
	return output.WriteFields(w, [2]string{"moving", m.Service}, [2]string{"to", m.Node}, [2]string{"left", leftText(m.Left)})
}

// newMove makes the command that has a Service's traffic come in by one node.
func newMove(c *cli, over wordOver) *cobra.Command {
	var ch change
	var undo, wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "move NAMESPACE/NAME [NODE]",
		Short: "Have the traffic of a Service come in by one node",
		Long: "Have the traffic of a Service come in by one node, until --undo. The node becomes the only next hop once it has the rules, and at layer 2\n" +
			"the one that answers. While it cannot serve, the addresses lead where they would otherwise. `fairlead get moves` lists moves and what they\n" +
			"have left, `fairlead why` tells why.",
		Example: "  fairlead move shop/web n2 --wait --reason 'new line cards in n1'\n" +
			"  fairlead move shop/web --undo",
		Args: arguments(1, 2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if kinds := []string{"services", "nodes"}; len(args) < len(kinds) {
				return c.completeNames(cmd.Context(), kinds[len(args)]), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case undo && len(args) > 1:
				return usagef("--undo ends the move, wherever it is to: leave %s out", args[1])
			case !undo && len(args) < 2:
				return usagef("want NAMESPACE/NAME and NODE, or --undo")
			case undo && wait:
				return usagef("--undo and --wait exclude each other: there is nothing to wait for")
			case timeout <= 0:
				return usagef("--timeout %s: it is a time above 0", timeout)
			}
			if err := needs(cmd, "wait", "timeout"); err != nil {
				return err
			}
			m := moved{Service: args[0], Undone: undo, Left: []records.DrainLeft{}}
			what := "move " + m.Service
			if !undo {
				m.Node = args[1]
				what += " to " + m.Node
			}
			err := c.tell(cmd.Context(), what, over, func(ctx context.Context, w word) error {
				return w.Move(ctx, m.Service, m.Node, undo, ch.reason)
			})
			switch {
			case err != nil:
				return err
			case wait:
				err = c.awaitMove(cmd.Context(), what, timeout, &m)
			case !undo:
				err = c.lookSoon(cmd.Context(), what, "the move stays: see `fairlead get moves "+m.Service+"`", func(ctx context.Context) error { return c.lookAtMove(ctx, &m) })
			}
			if err != nil {
				return err
			}
			return c.print(m)
		},
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "end the move")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until that is so; progress goes to standard error")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "how long --wait waits for that; the move stays and goes on")
	ch.addReason(cmd)
	return cmd
}

// lookAtMove reads how far a move has come. Another word may have come meanwhile, to move it elsewhere.
func (c *cli) lookAtMove(ctx context.Context, m *moved) error {
	kind, _ := records.Find("moves")
	found, err := c.get(ctx, kind, &fairleadv1.GetRequest{Name: m.Service, Linearizable: true})
	if err != nil {
		return err
	}
	var doc records.Move
	if err := json.Unmarshal(found.Items[0], &doc); err != nil {
		return fmt.Errorf("get moves %s: the answer is not what this release reads: %w; use the release of fairlead that the group runs", m.Service, err)
	}
	m.Node, m.Done, m.Left = doc.Node, doc.Done, doc.Left
	return nil
}

// awaitMove looks until a move is done. A look that fails is repeated: leaders come and go meanwhile.
func (c *cli) awaitMove(ctx context.Context, what string, timeout time.Duration, m *moved) error {
	said, over := c.watch(ctx, what, timeout, func(ctx context.Context) error { return c.lookAtMove(ctx, m) }, func() (string, bool) {
		return "left: " + leftText(m.Left), m.Done
	})
	if over {
		return nil
	}
	return fmt.Errorf("%s: not done within %s: %s; the move stays and goes on: see `fairlead get moves %s`, or end it with --undo", what, timeout, said, m.Service)
}
