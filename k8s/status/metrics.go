// SPDX-License-Identifier: Apache-2.0

package status

import "github.com/prometheus/client_golang/prometheus"

// metrics is what this package counts. Without a registerer it counts for nobody.
type metrics struct {
	writes      *prometheus.CounterVec // by result
	events      *prometheus.CounterVec // by result
	overwritten prometheus.Counter
	pending     prometheus.Gauge
	last        prometheus.Gauge
	lag         prometheus.Histogram
}

func newMetrics() *metrics {
	return &metrics{
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_status_writes_total", Help: "Writes of the status of Services, by how they ended.",
		}, []string{"result"}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_status_events_total", Help: "Events on Services, by what became of them.",
		}, []string{"result"}),
		overwritten: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fairlead_status_overwritten_total", Help: "Times that somebody else had changed what was written into the status of a Service.",
		}),
		pending: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fairlead_status_pending", Help: "Services whose status is yet to be looked at or written.",
		}),
		last: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fairlead_status_last_success_timestamp_seconds", Help: "When a status was last written; zero if none was since the start.",
		}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "fairlead_status_lag_seconds", Help: "Time from a committed change to the status that shows it.",
			Buckets: prometheus.ExponentialBuckets(0.002, 2, 14),
		}),
	}
}

func (m *metrics) register(r prometheus.Registerer) error {
	if r == nil {
		return nil
	}
	for _, c := range []prometheus.Collector{m.writes, m.events, m.overwritten, m.pending, m.last, m.lag} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}
