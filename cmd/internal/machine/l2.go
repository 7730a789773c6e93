// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/dataplane/l2"
)

func openL2(c config.Agent, log *slog.Logger, metrics prometheus.Registerer) (node.Answering, error) {
	edge := l2.NewLinux(l2.LinuxOptions{Patterns: c.Interfaces, Namespace: c.Namespace})
	return l2.New(l2.Options{Edge: edge, Clock: bootClock{}, Log: log, Metrics: metrics})
}
