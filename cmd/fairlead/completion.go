// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
)

// completeWithin bounds how long somebody who pressed Tab waits for the group.
const completeWithin = 2 * time.Second

// completeServers offers the names of the group's servers; nothing if the group cannot be asked.
func (c *cli) completeServers(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	peers, err := ask(cmd.Context(), c, "complete", completeWithin, func(ctx context.Context, client *admin.Client) (*fairleadv1.PeersResponse, error) {
		return client.Raft.Peers(ctx, &fairleadv1.PeersRequest{})
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, m := range peers.GetMembers() {
		names = append(names, m.GetName())
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
