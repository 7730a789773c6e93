// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count what is sent to agents and what they answer.
type metrics struct {
	steps *prometheus.CounterVec
	marks prometheus.Counter
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		steps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_agent_steps_total",
			Help: "Steps sent to agents: everything (full), or what changed (delta).",
		}, []string{"kind"}),
		marks: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fairlead_agent_acknowledgements_total",
			Help: "Acknowledgements of agents that were committed.",
		}),
	}
	if registry == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.steps, m.marks} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics of agents: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) stepped(full bool) {
	kind := "delta"
	if full {
		kind = "full"
	}
	m.steps.WithLabelValues(kind).Inc()
}

func (m *metrics) acknowledged() { m.marks.Inc() }
