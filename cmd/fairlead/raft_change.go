// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cmd/fairlead/internal/output"
)

// changed is what `fairlead raft add` and `remove` print.
type changed struct {
	Server             string `json:"server"`
	ConfigurationIndex uint64 `json:"configurationIndex"`
	Warning            string `json:"warning"`
	done               string
}

// WriteTable writes one line, and the warning if there is one.
func (ch changed) WriteTable(w io.Writer) error {
	return output.WriteFields(w, [2]string{ch.done, ch.Server}, [2]string{"warning", ch.Warning})
}

func newRaftAdd(c *cli) *cobra.Command {
	req := &fairleadv1.AddRequest{}
	var ch change
	var voter bool
	cmd := &cobra.Command{
		Use:   "add SERVER-ID ADDRESS",
		Short: "Add a server as non-voter, or change its address or vote",
		Long: "Add a server; ADDRESS is host:port of its Raft transport. A controller that starts empty and knows the others\n" +
			"asks to be added by itself. It becomes a voter once it has caught up. A voter added again without --voter loses its vote.",
		Example: "  fairlead raft add m4-k3x9 192.0.2.4:7444 --api-address 192.0.2.4:7443",
		Args:    arguments(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			req.ServerId, req.Address, req.Force, req.Reason = args[0], args[1], ch.force, ch.reason
			if req.Name == "" {
				req.Name = cluster.NameOf(req.ServerId)
			}
			req.Suffrage = fairleadv1.Suffrage_SUFFRAGE_NONVOTER
			if voter {
				req.Suffrage = fairleadv1.Suffrage_SUFFRAGE_VOTER
			}
			answer, err := ask(cmd.Context(), c, "raft add "+args[0], changeWithin, func(ctx context.Context, client *admin.Client) (*fairleadv1.AddResponse, error) {
				return client.Raft.Add(ctx, req)
			})
			if err != nil {
				return err
			}
			return c.print(changed{done: "added", Server: args[0], ConfigurationIndex: answer.GetConfigurationIndex(), Warning: answer.GetWarning()})
		},
	}
	cmd.Flags().StringVar(&req.Name, "name", "", "name in its certificate (default: SERVER-ID up to the last dash)")
	cmd.Flags().StringVar(&req.ApiAddress, "api-address", "", "host:port of its API")
	cmd.Flags().BoolVar(&voter, "voter", false, "give it a vote at once, caught up or not")
	ch.addFlags(cmd, forceQuorum)
	return cmd
}

func newRaftRemove(c *cli) *cobra.Command {
	var ch change
	cmd := &cobra.Command{
		Use:               "remove SERVER",
		Short:             "Remove a server, by id or name; its data folder can never rejoin",
		Args:              arguments(1, 1),
		ValidArgsFunction: c.completeServers,
		RunE: func(cmd *cobra.Command, args []string) error {
			req := &fairleadv1.RemoveRequest{Server: args[0], Force: ch.force, Reason: ch.reason}
			answer, err := ask(cmd.Context(), c, "raft remove "+args[0], changeWithin, func(ctx context.Context, client *admin.Client) (*fairleadv1.RemoveResponse, error) {
				return client.Raft.Remove(ctx, req)
			})
			if err != nil {
				return err
			}
			return c.print(changed{done: "removed", Server: args[0], ConfigurationIndex: answer.GetConfigurationIndex(), Warning: answer.GetWarning()})
		},
	}
	ch.addFlags(cmd, forceQuorum)
	return cmd
}

// transferred is what `fairlead raft transfer` prints.
type transferred struct {
	Leader string `json:"leader"`
}

// WriteTable writes one line.
func (t transferred) WriteTable(w io.Writer) error {
	return output.WriteFields(w, [2]string{"leader", t.Leader})
}

func newRaftTransfer(c *cli) *cobra.Command {
	var ch change
	cmd := &cobra.Command{
		Use:               "transfer [SERVER]",
		Short:             "Hand leadership to another voter, by id or name; without one, to the most advanced",
		Args:              arguments(0, 1),
		ValidArgsFunction: c.completeServers,
		RunE: func(cmd *cobra.Command, args []string) error {
			req := &fairleadv1.TransferRequest{Force: ch.force, Reason: ch.reason}
			if len(args) > 0 {
				req.Server = args[0]
			}
			answer, err := ask(cmd.Context(), c, "raft transfer", changeWithin, func(ctx context.Context, client *admin.Client) (*fairleadv1.TransferResponse, error) {
				return client.Raft.Transfer(ctx, req)
			})
			if err != nil {
				return err
			}
			return c.print(transferred{Leader: answer.GetLeader()})
		},
	}
	ch.addFlags(cmd, "hand it to one that does not seem healthy")
	return cmd
}

// snapshotTaken is what `fairlead raft snapshot` prints.
type snapshotTaken struct {
	ID        string `json:"id"`
	Index     uint64 `json:"index"`
	Term      uint64 `json:"term"`
	SizeBytes uint64 `json:"sizeBytes"`
}

// WriteTable writes one fact a line.
func (s snapshotTaken) WriteTable(w io.Writer) error {
	return output.WriteFields(w, [2]string{"snapshot", s.ID}, [2]string{"index", number(s.Index)}, [2]string{"bytes", number(s.SizeBytes)})
}

func newRaftSnapshot(c *cli) *cobra.Command {
	var ch change
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Make the leader take a snapshot and shorten its log",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := ask(cmd.Context(), c, "raft snapshot", longWithin, func(ctx context.Context, client *admin.Client) (*fairleadv1.SnapshotResponse, error) {
				return client.Raft.Snapshot(ctx, &fairleadv1.SnapshotRequest{Reason: ch.reason})
			})
			if err != nil {
				return err
			}
			return c.print(snapshotTaken{ID: answer.GetId(), Index: answer.GetIndex(), Term: answer.GetTerm(), SizeBytes: answer.GetSizeBytes()})
		},
	}
	ch.addReason(cmd)
	return cmd
}

// finalized is what `fairlead raft finalize` prints.
type finalized struct {
	Format uint32 `json:"format"`
}

// WriteTable writes one line.
func (f finalized) WriteTable(w io.Writer) error {
	return output.WriteFields(w, [2]string{"format", number(uint64(f.Format))})
}

func newRaftFinalize(c *cli) *cobra.Command {
	req := &fairleadv1.FinalizeRequest{}
	var ch change
	cmd := &cobra.Command{
		Use:   "finalize",
		Short: "Raise the record's format after an upgrade; older releases can then no longer take part",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			req.Force, req.Reason = ch.force, ch.reason
			answer, err := ask(cmd.Context(), c, "raft finalize", changeWithin, func(ctx context.Context, client *admin.Client) (*fairleadv1.FinalizeResponse, error) {
				return client.Raft.Finalize(ctx, req)
			})
			if err != nil {
				return err
			}
			return c.print(finalized{Format: answer.GetFormat()})
		},
	}
	cmd.Flags().Uint32Var(&req.Format, "format", 0, "the format to raise to (default: the newest that every member knows)")
	ch.addFlags(cmd, "do it although a server has not told what it knows")
	return cmd
}
