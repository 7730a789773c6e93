// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"fmt"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count ports and answers.
type metrics struct {
	open    *prometheus.GaugeVec
	answers *prometheus.CounterVec
	evicted prometheus.Counter
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fairlead_healthcheck_ports", Help: "Health-check node ports of Services, by state: open, or failed where somebody else holds the port.",
		}, []string{"state"}),
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_healthcheck_answers_total", Help: "Health checks answered, by HTTP status.",
		}, []string{"code"}),
		evicted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fairlead_healthcheck_connections_ended_total", Help: "Connections to health-check node ports that were ended because too many newer ones came.",
		}),
	}
	if registry == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.open, m.answers, m.evicted} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics of health checks: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) ports(open, failed int) {
	m.open.WithLabelValues("open").Set(float64(open))
	m.open.WithLabelValues("failed").Set(float64(failed))
}

func (m *metrics) answered(code int) { m.answers.WithLabelValues(strconv.Itoa(code)).Inc() }

func (m *metrics) crowded() { m.evicted.Inc() }
