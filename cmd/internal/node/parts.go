// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/nat"
	"fairlead.io/fairlead/dataplane/steer"
)

// SteerOptions are what a configuration says of steering, over whatever kernel.
func SteerOptions(c config.Agent, log *slog.Logger, metrics prometheus.Registerer) steer.Options {
	return steer.Options{
		Folder:     c.StateDir,
		PriorityIn: c.Priorities.In, PriorityOut: c.Priorities.Out, PriorityMark: c.Priorities.Mark,
		MarkIn: c.Marks.In, MarkOut: c.Marks.Out, RulesMax: c.RulesMax, Interfaces: c.Interfaces, SysNet: c.SysNet, Namespace: c.Namespace,
		Log: log, Metrics: metrics,
	}
}

// NATOptions are what a configuration says of translation.
func NATOptions(c config.Agent, log *slog.Logger, metrics prometheus.Registerer) nat.Options {
	return nat.Options{
		Node: c.Node, ClusterCIDRs: c.ClusterRanges(), MasqueradeAll: c.MasqueradeAll, Consistent: c.Consistent,
		Mark: c.Marks.NAT, NetNS: c.Namespace, Log: log, Metrics: metrics,
	}
}

// Steered gives a Steer as the part that Edges.Steer opens.
func Steered(s *steer.Steer) Steering { return steering{s} }

// steering finds addresses in the words of what is desired.
type steering struct{ *steer.Steer }

// Found implements Steering.
func (s steering) Found(ctx context.Context) ([]desired.Address, error) {
	found, err := s.Steer.Found(ctx)
	out := make([]desired.Address, len(found))
	for i, a := range found {
		out[i] = desired.Address{Prefix: netip.PrefixFrom(a, a.BitLen())}
	}
	return out, err
}
