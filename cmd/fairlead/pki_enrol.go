// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cmd/fairlead/internal/output"
)

// offered is what `fairlead pki enrol` prints.
type offered struct {
	Node    string `json:"node"`
	Token   string `json:"token"`
	GoodFor string `json:"goodFor"`
}

// WriteTable writes one fact a line.
func (o offered) WriteTable(w io.Writer) error {
	return output.WriteFields(w, [2]string{"node", o.Node},
		[2]string{"token", o.Token + " (good once; write it to the agent's enrol.tokenFile)"}, [2]string{"good for", o.GoodFor})
}

func newPKIEnrol(c *cli) *cobra.Command {
	ttl, outside := time.Hour, false
	cmd := &cobra.Command{
		Use:   "enrol NAME",
		Short: "Offer a one-time token with which the agent of a node, or of a host outside, gets its first certificate",
		Long: "Offer a one-time token with which the agent of a node gets its first certificate. The token is printed once;\n" +
			"the group keeps only its SHA-256. Agents in Kubernetes need none: they show the token of their ServiceAccount.\n" +
			"With --outside it is for a host outside the cluster (docs/outside.md), which the group takes in by it.",
		Example: "  fairlead pki enrol edge-1 --outside",
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := pki.CheckName(args[0]); err != nil {
				return usagef("%w", err)
			}
			if ttl < time.Second {
				return usagef("--ttl: %v is too short; a second at least", ttl)
			}
			token := enrol.NewToken()
			_, err := ask(cmd.Context(), c, "offer a token for "+args[0], changeWithin,
				func(ctx context.Context, client *admin.Client) (*fairleadv1.OfferResponse, error) {
					return client.Enrol.Offer(ctx, &fairleadv1.OfferRequest{
						Node: args[0], TokenSha256: string(enrol.Sum(token)), TtlSeconds: uint32(ttl / time.Second), Outside: outside,
					})
				})
			if err != nil {
				return err
			}
			return c.print(offered{Node: args[0], Token: token, GoodFor: ttl.Truncate(time.Second).String()})
		},
	}
	cmd.Flags().BoolVar(&outside, "outside", false, "for a host outside the cluster, whose agent.yaml says outOfCluster: true")
	cmd.Flags().DurationVar(&ttl, "ttl", ttl, "for how long the token is good")
	return cmd
}
