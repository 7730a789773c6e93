// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cmd/fairlead/internal/output"
)

// word is an operator's word, which the group commits in the caller's name.
type word interface {
	// ReleaseHold lets the held change go ahead.
	ReleaseHold(ctx context.Context, id, reason string) error
	// AcceptRewind makes an older view of a source the truth.
	AcceptRewind(ctx context.Context, source, reason string) error
	// Drain has new flows go past a node or a service, or takes that back.
	Drain(ctx context.Context, of, name string, undo bool, reason string) error
	// Move has the traffic of a Service come in by one node, or takes that back.
	Move(ctx context.Context, service, node string, undo bool, reason string) error
}

// wordOver gives the group's ear behind a client.
type wordOver func(*admin.Client) word

// newHolds makes the commands about mass changes that wait.
func newHolds(c *cli, more ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "holds",
		Short: "Look after mass changes that wait for an operator's word",
	}
	cmd.AddCommand(newHoldsList(c))
	cmd.AddCommand(more...)
	return cmd
}

func newHoldsList(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List what is held, and why",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			kind, _ := records.Find("holds")
			held, err := c.get(cmd.Context(), kind, &fairleadv1.GetRequest{})
			if err != nil {
				return err
			}
			return c.print(held)
		},
	}
}

// released is what `fairlead holds release` prints.
type released struct {
	Hold string `json:"hold"`
}

// WriteTable writes one line.
func (r released) WriteTable(w io.Writer) error {
	return output.WriteFields(w, [2]string{"released", r.Hold})
}

func newHoldsRelease(c *cli, over wordOver) *cobra.Command {
	var ch change
	cmd := &cobra.Command{
		Use:   "release ID",
		Short: "Let a held change go ahead",
		Args:  arguments(1, 1),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return c.completeNames(cmd.Context(), "holds"), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			err := c.tell(cmd.Context(), "holds release "+args[0], over, func(ctx context.Context, w word) error {
				return w.ReleaseHold(ctx, args[0], ch.reason)
			})
			if err != nil {
				return err
			}
			return c.print(released{Hold: args[0]})
		},
	}
	ch.addReason(cmd)
	return cmd
}

// accepted is what `fairlead accept-rewind` prints.
type accepted struct {
	Source string `json:"source"`
}

// WriteTable writes one line.
func (a accepted) WriteTable(w io.Writer) error {
	return output.WriteFields(w, [2]string{"accepted", "the older view of " + a.Source})
}

func newAcceptRewind(c *cli, over wordOver) *cobra.Command {
	var ch change
	cmd := &cobra.Command{
		Use:   "accept-rewind SOURCE",
		Short: "Take an older view of a source for the truth: its cluster was restored from a backup",
		Long: "Take an older view of a source for the truth: its cluster was restored from a backup. Until then nothing of it is\n" +
			"acted on. `fairlead get sources` tells which sources ran back; of others there is nothing to accept, and the command\n" +
			"says so. Removals in it may be held: see `fairlead holds`.",
		Args: arguments(1, 1),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return c.completeNames(cmd.Context(), "sources"), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			err := c.tell(cmd.Context(), "accept-rewind "+args[0], over, func(ctx context.Context, w word) error {
				return w.AcceptRewind(ctx, args[0], ch.reason)
			})
			if err != nil {
				return err
			}
			return c.print(accepted{Source: args[0]})
		},
	}
	ch.addReason(cmd)
	return cmd
}

// tell gives the group an operator's word.
func (c *cli) tell(ctx context.Context, what string, over wordOver, say func(context.Context, word) error) error {
	_, err := ask(ctx, c, what, changeWithin, func(ctx context.Context, client *admin.Client) (struct{}, error) {
		return struct{}{}, say(ctx, over(client))
	})
	return err
}
