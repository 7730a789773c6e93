// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"fmt"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/internal/connlimit"
)

// metrics count ports and answers.
type metrics struct {
	open        *prometheus.GaugeVec
	answers     *prometheus.CounterVec
	connections *connlimit.Metrics // nil without a registry
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fairlead_healthcheck_ports", Help: "Health-check node ports of Services, by state: open, or failed where somebody else holds the port.",
		}, []string{"state"}),
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_healthcheck_answers_total", Help: "Health checks answered, by HTTP status.",
		}, []string{"code"}),
	}
	if registry == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.open, m.answers} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics of health checks: %w", err)
		}
	}
	var err error
	m.connections, err = connlimit.NewMetrics(registry)
	return m, err
}

func (m *metrics) ports(open, failed int) {
	m.open.WithLabelValues("open").Set(float64(open))
	m.open.WithLabelValues("failed").Set(float64(failed))
}

func (m *metrics) answered(code int) { m.answers.WithLabelValues(strconv.Itoa(code)).Inc() }
