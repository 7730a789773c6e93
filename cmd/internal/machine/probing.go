// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/dataplane/health"
	"fairlead.io/fairlead/dataplane/health/prober"
)

// probing makes what probes addresses of an agent, and whoever goes by it.
type probing struct{ checker *health.Checker }

func (p *probing) open(c config.Agent, log *slog.Logger, metrics prometheus.Registerer) (node.Probing, error) {
	checker, err := health.New(health.Options{
		Node: c.Node, Outside: c.OutOfCluster, Prober: prober.Prober{Namespace: c.Namespace, Exempt: true}, Random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), Log: log, Metrics: metrics,
		Show: func(states []health.State) {
			if err := show(c.StateDir, states); err != nil {
				log.Warn("what is thought of probed addresses is not written down", "err", err)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	p.checker = checker
	return node.ProbingOver(c, checker), nil
}

// show writes down what is thought of probed addresses, whole or not at all.
func show(folder string, states []health.State) error {
	if states == nil {
		states = []health.State{}
	}
	data, err := json.Marshal(states)
	if err != nil {
		return err
	}
	path := filepath.Join(folder, node.ProbesFile)
	if err := os.WriteFile(path+".next", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".next", path)
}
