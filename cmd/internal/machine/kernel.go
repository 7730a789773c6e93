// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/dataplane/flows"
	"fairlead.io/fairlead/dataplane/nat"
	"fairlead.io/fairlead/dataplane/steer"
	"fairlead.io/fairlead/internal/netns"
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

// listenEverywhere opens a port of both families in the agent's namespace.
func listenEverywhere(c config.Agent, port uint16) (l net.Listener, err error) {
	err = netns.Do(c.Namespace, func() (err error) {
		l, err = net.Listen("tcp", fmt.Sprintf(":%d", port))
		return err
	})
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w; `ss -ltnp 'sport = :%d'` tells who holds it: where that is kube-proxy, leave healthCheckNodePorts out of agent.yaml", err, port)
	}
	return l, err
}

func openFlows(c config.Agent) agent.Flows {
	return flows.Reader{Inside: c.ClusterRanges(), SysNet: c.SysNet, NetNS: c.Namespace}
}

func cleanSteer(ctx context.Context, c config.Agent, log *slog.Logger) error {
	return steer.Cleanup(ctx, node.SteerOptions(c, log, nil))
}

func cleanNAT(ctx context.Context, c config.Agent) error { return nat.Cleanup(ctx, c.Namespace, "") }
