// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/dataplane/flows"
	"fairlead.io/fairlead/dataplane/nat"
	"fairlead.io/fairlead/dataplane/steer"
)

func openSteer(c config.Agent, log *slog.Logger, metrics prometheus.Registerer) (node.Steering, error) {
	s, err := steer.New(node.SteerOptions(c, log, metrics))
	if err != nil {
		return nil, err
	}
	return s, nil
}

func openNAT(c config.Agent, log *slog.Logger, metrics prometheus.Registerer) (node.Part, error) {
	n, err := nat.New(node.NATOptions(c, log, metrics))
	if err != nil {
		return nil, err
	}
	return n, nil
}

func openFlows(c config.Agent) agent.Flows {
	return flows.Reader{Inside: c.ClusterRanges(), SysNet: c.SysNet, NetNS: c.Namespace}
}

func cleanSteer(ctx context.Context, c config.Agent, log *slog.Logger) error {
	return steer.Cleanup(ctx, node.SteerOptions(c, log, nil))
}

func cleanNAT(ctx context.Context, c config.Agent) error { return nat.Cleanup(ctx, c.Namespace) }
