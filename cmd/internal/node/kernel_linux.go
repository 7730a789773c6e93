// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/cmd/internal/config"
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

func (k *kernel) openSteer(c config.Agent, log *slog.Logger, metrics prometheus.Registerer) error {
	s, err := steer.New(steerOptions(c, log, metrics))
	if err != nil {
		return err
	}
	k.add("steer", s)
	k.closes = append(k.closes, s.Close)
	k.found = func(ctx context.Context) ([]desired.Address, error) {
		found, err := s.Found(ctx)
		out := make([]desired.Address, len(found))
		for i, a := range found {
			out[i] = desired.Address{Prefix: netip.PrefixFrom(a, a.BitLen())}
		}
		return out, err
	}
	return nil
}

func (k *kernel) openNAT(c config.Agent, log *slog.Logger, metrics prometheus.Registerer) error {
	n, err := nat.New(nat.Options{
		Node: c.Node, ClusterCIDRs: c.ClusterRanges(), MasqueradeAll: c.MasqueradeAll, Mark: c.Marks.NAT, NetNS: c.Namespace,
		Log: log, Metrics: metrics,
	})
	if err != nil {
		return err
	}
	k.add("nat", n)
	return nil
}

// cleanKernel removes what the agent made, whatever the configuration says now: it may have said something else once.
func cleanKernel(ctx context.Context, c config.Agent, log *slog.Logger) error {
	steering, translation := steer.Cleanup(ctx, steerOptions(c, log, nil)), nat.Cleanup(ctx, c.Namespace)
	if translation != nil {
		translation = fmt.Errorf("nat: %w", translation)
	}
	return inOneLine(steering, translation)
}
