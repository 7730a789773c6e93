// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/records"
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

// completeObjects offers kinds, then the names of the objects of the kind.
func (c *cli) completeObjects(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return records.Names(), cobra.ShellCompDirectiveNoFileComp
	case 1:
		return c.completeNames(cmd.Context(), args[0]), cobra.ShellCompDirectiveNoFileComp
	default:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFlag offers the names of the objects of a kind for a flag.
func (c *cli) completeFlag(cmd *cobra.Command, flag, kind string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return c.completeNames(cmd.Context(), kind), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // no such flag: this program is wrong
	}
}

// completeNames gives the names of one page of objects; nothing if the group cannot be asked.
func (c *cli) completeNames(ctx context.Context, of string) []string {
	k, ok := records.Find(of)
	if !ok {
		return nil
	}
	page, err := ask(ctx, c, "complete", completeWithin, func(ctx context.Context, client *admin.Client) (*fairleadv1.GetResponse, error) {
		return client.Record.Get(ctx, &fairleadv1.GetRequest{Kind: k.Name})
	})
	if err != nil {
		return nil
	}
	var names []string
	for _, document := range page.GetDocuments() {
		if name, err := nameOf(k, []byte(document)); err == nil {
			names = append(names, name)
		}
	}
	return names
}
