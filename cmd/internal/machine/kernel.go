// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/dataplane/nat"
	"fairlead.io/fairlead/dataplane/steer"
)

func steerOptions(c config.Agent, log *slog.Logger, metrics prometheus.Registerer) steer.Options {
	return steer.Options{
		Folder:     c.StateDir,
		PriorityIn: c.Priorities.In, PriorityOut: c.Priorities.Out, PriorityMark: c.Priorities.Mark,
		MarkIn: c.Marks.In, MarkOut: c.Marks.Out, RulesMax: c.RulesMax, Interfaces: c.Interfaces, SysNet: c.SysNet, Namespace: c.Namespace,
		Log: log, Metrics: metrics,
	}
}

// steering is a Steer that finds addresses in the words of what is desired.
type steering struct{ *steer.Steer }

// Found implements node.Steering.
func (s steering) Found(ctx context.Context) ([]desired.Address, error) {
	found, err := s.Steer.Found(ctx)
	out := make([]desired.Address, len(found))
	for i, a := range found {
		out[i] = desired.Address{Prefix: netip.PrefixFrom(a, a.BitLen())}
	}
	return out, err
}

func openSteer(c config.Agent, log *slog.Logger, metrics prometheus.Registerer) (node.Steering, error) {
	s, err := steer.New(steerOptions(c, log, metrics))
	if err != nil {
		return nil, err
	}
	return steering{s}, nil
}

func openNAT(c config.Agent, log *slog.Logger, metrics prometheus.Registerer) (node.Part, error) {
	n, err := nat.New(nat.Options{
		Node: c.Node, ClusterCIDRs: c.ClusterRanges(), MasqueradeAll: c.MasqueradeAll, Mark: c.Marks.NAT, NetNS: c.Namespace,
		Log: log, Metrics: metrics,
	})
	if err != nil {
		return nil, err
	}
	return n, nil
}

func cleanSteer(ctx context.Context, c config.Agent, log *slog.Logger) error {
	return steer.Cleanup(ctx, steerOptions(c, log, nil))
}

func cleanNAT(ctx context.Context, c config.Agent) error { return nat.Cleanup(ctx, c.Namespace) }
