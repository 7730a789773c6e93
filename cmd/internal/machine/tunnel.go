// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/dataplane/nat"
	"fairlead.io/fairlead/dataplane/tunnel"
)

// proxyTable is the nftables table in which proxy ports lead to pods.
const proxyTable = "fairlead-proxy"

// proxying is this machine's tunnel, and what its proxy ports lead to.
type proxying struct {
	*tunnel.Tunnel
	ports *nat.NAT
	host  string
}

// Apply implements agent.Applier.
func (p proxying) Apply(ctx context.Context, want desired.State) ([]agent.Failure, error) {
	failed, err := p.Tunnel.Apply(ctx, want)
	if err != nil {
		return nil, err
	}
	more, err := p.ports.Serve(ctx, tunnel.Services(want, p.host))
	if err != nil {
		return nil, err
	}
	return append(failed, more...), nil
}

// Run puts right what others change, until ctx ends or either fails.
func (p proxying) Run(ctx context.Context) error {
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return p.Tunnel.Run(running) })
	group.Go(func() error { return p.ports.Run(running) })
	return group.Wait()
}

func openTunnel(c config.Agent, log *slog.Logger, metrics prometheus.Registerer) (node.Tunnelling, error) {
	ports, err := nat.New(nat.Options{
		Node: c.Node, Audit: c.SyncPeriod, Mark: cmp.Or(c.Marks.Proxy, nat.DefaultProxyMark), Table: proxyTable, LeaveOthers: true, NetNS: c.Namespace,
		Log: log,
	})
	if err != nil {
		return nil, err
	}
	t, err := tunnel.New(tunnel.Options{Host: c.Node, Audit: c.SyncPeriod, Namespace: c.Namespace, Log: log, Metrics: metrics})
	if err != nil {
		return nil, err
	}
	return proxying{t, ports, c.Node}, nil
}

func cleanTunnel(ctx context.Context, c config.Agent) error {
	if err := tunnel.Cleanup(c.Namespace); err != nil {
		return err
	}
	return nat.Cleanup(ctx, c.Namespace, proxyTable)
}
