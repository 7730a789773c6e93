// SPDX-License-Identifier: Apache-2.0

// Package node puts the agent of one node together: its loop, the way to the members, the folder that keeps the last
// state, and what touches the kernel.
//
// It promises that the node keeps its state when the agent ends, for whatever reason, and that Cleanup leaves nothing
// of it. Start reading at Process.Run, which is `fairlead agent`; Run is the loop alone, for `fairlead dev`.
package node

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/dataplane/agent/disk"
)

// Files of the state folder.
const (
	stateFile    = "desired.state"  // what the node was told last
	drainingFile = "draining.state" // what left that and still has its rules
	tlsFolder    = "tls"            // a certificate that cannot be renewed where it was given
)

// Options say what an agent is made of.
type Options struct {
	Node    string // as in its certificate
	Boot    string // empty: the kernel's
	Servers []string
	Files   pki.Files
	Enrol   enrol.Ask // how to get another certificate once the present one has expired; optional
	State   string    // folder
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

// Run works until ctx ends, and returns its error. The node keeps its state at the end.
func Run(ctx context.Context, o Options) error {
	o.Log = o.Log.With("node", o.Node)
	source, err := pki.OpenSource(o.Files, o.Log)
	if err != nil {
		return err
	}
	a, err := open(o, source)
	if err != nil {
		return err
	}
	return a.run(ctx)
}

// loop is the agent's loop, and what keeps its certificate fresh.
type loop struct {
	*agent.Agent
	holder *enrol.Holder
	peers  *admin.Peers // that are asked for certificates
}

func (l *loop) run(ctx context.Context) error {
	defer l.peers.Close()
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return l.Run(running) })
	group.Go(func() error { return l.holder.Run(running) })
	return group.Wait()
}

// open makes the agent's loop.
func open(o Options, source *pki.Source) (*loop, error) {
	if id := source.Material().Identity; id.Role != pki.Agent || id.Name != o.Node {
		return nil, fmt.Errorf("%s: the certificate is %s's, this is agent/%s; issue one with `fairlead pki issue agent %s`",
			o.Files.Cert, id, o.Node, o.Node)
	}
	if o.Boot == "" {
		boot, err := disk.BootID()
		if err != nil {
			return nil, err
		}
		o.Boot = boot
	}
	store, err := disk.Open(o.State, stateFile)
	if err != nil {
		return nil, err
	}
	endpoint := &pki.Endpoint{Source: source, OrNewer: true}
	a, err := agent.New(agent.Options{
		Node: o.Node, Boot: o.Boot, Seeds: o.Servers, Store: store, Applier: o.Applier,
		Log: o.Log, Metrics: o.Metrics,
		Connect: func(address string) agent.Conn {
			client := admin.NewClient(admin.ClientOptions{Endpoint: endpoint, Servers: []string{address}})
			return conn{client.Agent, client}
		},
	})
	if err != nil {
		return nil, err
	}
	endpoint.Self = a.Membership
	l := &loop{Agent: a, peers: admin.NewPeers(endpoint, nil)}
	l.holder, err = enrol.NewHolder(enrol.HolderOptions{
		Files: o.Files, Source: source, Log: o.Log, Metrics: o.Metrics, Enrol: o.Enrol,
		Renew: enrol.AsAgent(o.Node, func() []enrol.Other { return enrol.Members(l.peers, o.Servers) }),
	})
	return l, err
}
