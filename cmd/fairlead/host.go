// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cmd/fairlead/internal/output"
)

// hostChanged is what `fairlead host` prints.
type hostChanged struct {
	Host string `json:"host"`
	In   bool   `json:"in"` // whether the group serves it
}

// WriteTable writes one fact.
func (h hostChanged) WriteTable(w io.Writer) error {
	if h.In {
		return output.WriteFields(w, [2]string{"taken in", h.Host})
	}
	return output.WriteFields(w, [2]string{"taken out", h.Host})
}

func newHost(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "host",
		Short: "Say which hosts outside the cluster the group serves",
		Long: "Say which hosts outside the cluster the group serves (docs/outside.md). `fairlead pki enrol NAME --outside` takes one in\n" +
			"that has no certificate yet; `fairlead get hosts` lists them.",
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "admit NAME",
		Short: "Take in a host that has a certificate of role host already",
		Args:  arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeHost(cmd.Context(), c, args[0], true, func(ctx context.Context, client *admin.Client) error {
				_, err := client.Enrol.AdmitHost(ctx, &fairleadv1.AdmitHostRequest{Name: args[0]})
				return err
			})
		},
	}, &cobra.Command{
		Use:   "remove NAME",
		Short: "Take a host out: it is told nothing more, and its certificate ends within a day",
		Args:  arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeHost(cmd.Context(), c, args[0], false, func(ctx context.Context, client *admin.Client) error {
				_, err := client.Enrol.RemoveHost(ctx, &fairleadv1.RemoveHostRequest{Name: args[0]})
				return err
			})
		},
	})
	return cmd
}

func changeHost(ctx context.Context, c *cli, name string, in bool, call func(context.Context, *admin.Client) error) error {
	what := "take out host " + name
	if in {
		what = "take in host " + name
	}
	_, err := ask(ctx, c, what, changeWithin, func(ctx context.Context, client *admin.Client) (struct{}, error) {
		return struct{}{}, call(ctx, client)
	})
	if err != nil {
		return err
	}
	return c.print(hostChanged{name, in})
}
