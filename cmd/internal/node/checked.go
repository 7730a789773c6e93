// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/dataplane/healthcheck"
)

// checked is an Applier whose states are told to outside load balancers once they are carried out: they are to send nobody
// whom this node does not expect. What leaves slowly is told at once, on the other hand, for it is around the drain.
type checked struct {
	agent.Applier
	checks *healthcheck.Checks
}

// Apply implements agent.Applier. A health check that cannot be answered fails no address: packets come all the same.
func (c checked) Apply(ctx context.Context, want desired.State) ([]agent.Failure, error) {
	failed, err := c.Applier.Apply(ctx, want)
	if err == nil {
		var services []*desired.Service
		for _, t := range want.Told() {
			if t.HasHealthCheck() {
				services = append(services, t.Service())
			}
		}
		c.checks.Apply(services)
	}
	return failed, err
}

// openChecks makes the health checks that a configuration asks for, with no port open.
func openChecks(c config.Agent, e Edges, alive func() error, log *slog.Logger, metrics prometheus.Registerer) (*healthcheck.Checks, error) {
	if e.ListenEverywhere == nil {
		return nil, errors.New("healthCheckNodePorts: this build of the agent opens no ports")
	}
	return healthcheck.New(healthcheck.Options{
		Node:    c.Node,
		Listen:  func(port uint16) (net.Listener, error) { return e.ListenEverywhere(c, port) },
		Healthy: func() bool { return alive() == nil },
		Log:     log, Metrics: metrics,
	})
}
