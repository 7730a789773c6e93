// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count what the loop does.
type metrics struct {
	seconds   prometheus.Histogram
	lag       prometheus.Histogram
	addresses prometheus.Gauge
	refused   prometheus.Gauge
	connected prometheus.Gauge
	revoked   prometheus.Gauge
	failures  *prometheus.CounterVec
	beats     *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "fairlead_agent_apply_seconds", Help: "How long it took to carry a state out.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "fairlead_agent_lag_seconds", Help: "From when a member told something new to when that was carried out.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}),
		addresses: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fairlead_agent_addresses", Help: "Service addresses that this node carries out.",
		}),
		refused: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fairlead_agent_failed_addresses", Help: "Service addresses that this node could not carry out.",
		}),
		connected: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fairlead_agent_connected", Help: "1 while a member serves this node.",
		}),
		revoked: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fairlead_agent_revocations", Help: "Revocations that this node heeds: of members by name, and of serial numbers.",
		}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_agent_failures_total",
			Help: "What failed: follow (no member, or it left), merge, store, apply, acknowledge, renew, count, revocations.",
		}, []string{"at"}),
		beats: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_agent_heartbeats_total", Help: "Heartbeats that ask for an answer, by whether it came; false also for each stream of them that broke.",
		}, []string{"answered"}),
	}
	if registry == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.seconds, m.lag, m.addresses, m.refused, m.connected, m.revoked, m.failures, m.beats} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics of the agent: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) failed(at string) { m.failures.WithLabelValues(at).Inc() }

func (m *metrics) beat(answered bool) { m.beats.WithLabelValues(fmt.Sprint(answered)).Inc() }

func (m *metrics) applied(took time.Duration, addresses, failed int) {
	m.seconds.Observe(took.Seconds())
	m.addresses.Set(float64(addresses))
	m.refused.Set(float64(failed))
}

func (m *metrics) following(yes bool) {
	m.connected.Set(0)
	if yes {
		m.connected.Set(1)
	}
}
