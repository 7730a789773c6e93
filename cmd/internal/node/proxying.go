// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/dataplane/nat"
	"fairlead.io/fairlead/dataplane/tunnel"
)

// ProxyTable is the nftables table in which proxy ports lead to pods.
const ProxyTable = "fairlead-proxy"

// proxying is a machine's tunnel, and what its proxy ports lead to.
type proxying struct {
	*tunnel.Tunnel
	ports *nat.NAT // nil for a host outside the cluster, which has none
	host  string
	heard *overheard
}

// OpenProxying makes the tunnel that a configuration asks for and what its proxy ports lead to, over whatever kernel. Nothing is changed
// before the first Apply.
func OpenProxying(c config.Agent, log *slog.Logger, metrics prometheus.Registerer,
	translate func(nat.Options) (*nat.NAT, error), join func(tunnel.Options) (*tunnel.Tunnel, error), listening Listening) (Tunnelling, error) {
	heard, err := newOverheard(listening, log, metrics)
	if err != nil {
		return nil, err
	}
	t, err := join(tunnel.Options{Host: c.Node, Audit: c.SyncPeriod, Namespace: c.Namespace, Log: log, Metrics: metrics})
	if err != nil {
		return nil, err
	}
	if c.OutOfCluster {
		return proxying{Tunnel: t, host: c.Node, heard: heard}, nil
	}
	ports, err := translate(nat.Options{
		Node: c.Node, Audit: c.SyncPeriod, Mark: cmp.Or(c.Marks.Proxy, nat.DefaultProxyMark), Table: ProxyTable, LeaveOthers: true, NetNS: c.Namespace,
		Log: log,
	})
	if err != nil {
		t.Close()
		return nil, err
	}
	return proxying{t, ports, c.Node, heard}, nil
}

// Apply implements agent.Applier.
func (p proxying) Apply(ctx context.Context, want desired.State) ([]agent.Failure, error) {
	failed, err := p.Tunnel.Apply(ctx, want)
	if err != nil || p.ports == nil {
		return failed, err
	}
	services := tunnel.Services(want, p.host)
	p.heard.serve(services)
	more, err := p.ports.Serve(ctx, services)
	if err != nil {
		return nil, err
	}
	return append(failed, more...), nil
}

// Run puts right what others change, until ctx ends or either fails.
func (p proxying) Run(ctx context.Context) error {
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return p.Tunnel.Run(running) })
	if p.ports != nil {
		group.Go(func() error { return p.ports.Run(running) })
		group.Go(func() error { return p.heard.run(running) })
	}
	return group.Wait()
}
