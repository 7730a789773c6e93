// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/dataplane/nat"
	"fairlead.io/fairlead/dataplane/tunnel"
)

func openTunnel(c config.Agent, log *slog.Logger, metrics prometheus.Registerer) (node.Tunnelling, error) {
	return node.OpenProxying(c, log, metrics, nat.New, tunnel.New, func(services []*desired.Service) ([]desired.Port, error) {
		return tunnel.Listening(c.Namespace, services)
	})
}

func cleanTunnel(ctx context.Context, c config.Agent) error {
	if err := tunnel.Cleanup(c.Namespace); err != nil {
		return err
	}
	return nat.Cleanup(ctx, c.Namespace, node.ProxyTable)
}
