// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
)

func newRaft(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "raft",
		Short: "Look after the group of controllers",
		Long: "Look after the group of controllers.\n\n" +
			"Any member answers and hands on to the leader what only that can do. What would cost the group its\n" +
			"quorum is refused unless --force is given. Only recover works on a stopped member's data folder.",
	}
	cmd.AddCommand(
		newRaftStatus(c), newRaftPeers(c),
		newRaftAdd(c), newRaftRemove(c), newRaftTransfer(c), newRaftSnapshot(c), newRaftFinalize(c),
		newRaftBackup(c), newRaftRestore(c), newRaftRecover(c, recoverHere),
	)
	return cmd
}

// change is what every change of the group takes.
type change struct {
	force  bool
	reason string
}

func (ch *change) addFlags(cmd *cobra.Command, force string) {
	cmd.Flags().BoolVar(&ch.force, "force", false, force)
	ch.addReason(cmd)
}

func (ch *change) addReason(cmd *cobra.Command) {
	cmd.Flags().StringVar(&ch.reason, "reason", "", "why, for logs and histories")
}

const forceQuorum = "do it even if it costs the group its quorum"

// revision orders what a group decided.
type revision struct {
	Epoch uint64 `json:"epoch"`
	Index uint64 `json:"index"`
}

// String gives "epoch.index".
func (r revision) String() string { return fmt.Sprintf("%d.%d", r.Epoch, r.Index) }

func revisionOf(r *fairleadv1.Revision) revision {
	return revision{Epoch: r.GetEpoch(), Index: r.GetIndex()}
}
