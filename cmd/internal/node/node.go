// SPDX-License-Identifier: Apache-2.0

// Package node puts the agent of one node together: its loop, the way to the members, and the folder that keeps the
// last state. Start reading at Run.
package node

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/dataplane/agent/disk"
)

// Options say what an agent is made of.
type Options struct {
	Node    string // as in its certificate
	Boot    string // empty: the kernel's
	Servers []string
	Files   pki.Files
	State   string // folder
	Applier agent.Applier
	Log     *slog.Logger
	Metrics prometheus.Registerer // optional
}

// conn is a way to one member.
type conn struct {
	fairleadv1connect.AgentServiceClient
	client *admin.Client
}

func (c conn) Close() { c.client.Close() }

// Run works until ctx ends. The node keeps its state at the end.
func Run(ctx context.Context, o Options) error {
	source, err := pki.OpenSource(o.Files, o.Log)
	if err != nil {
		return err
	}
	if o.Boot == "" {
		if o.Boot, err = disk.BootID(); err != nil {
			return err
		}
	}
	store, err := disk.Open(o.State, "desired.state")
	if err != nil {
		return err
	}
	endpoint := &pki.Endpoint{Source: source, OrNewer: true}
	a, err := agent.New(agent.Options{
		Node: o.Node, Boot: o.Boot, Seeds: o.Servers, Store: store, Applier: o.Applier,
		Log: o.Log.With("node", o.Node), Metrics: o.Metrics,
		Connect: func(address string) agent.Conn {
			client := admin.NewClient(admin.ClientOptions{Endpoint: endpoint, Servers: []string{address}})
			return conn{client.Agent, client}
		},
	})
	if err != nil {
		return err
	}
	endpoint.Self = a.Membership
	return a.Run(ctx)
}
