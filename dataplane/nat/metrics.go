// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/internal/nftally"
)

// metrics count what is done to the table.
type metrics struct {
	seconds  prometheus.Histogram
	elements *prometheus.CounterVec
	repairs  prometheus.Counter
	failures prometheus.Counter
	flows    prometheus.Counter
	shape    *shape
	away     *nftally.Away
	clients  *remembered
}

func newMetrics(registry prometheus.Registerer, edge Edge, log *slog.Logger) (*metrics, error) {
	m := &metrics{
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "fairlead_nat_apply_seconds", Help: "How long it took to bring the table to a state.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 8),
		}),
		elements: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_nat_elements_total", Help: "Elements of maps that were added and removed.",
		}, []string{"op"}),
		repairs: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fairlead_nat_repairs_total", Help: "How often the table was put right after somebody else changed it.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fairlead_nat_failures_total", Help: "How often the kernel refused.",
		}),
		flows: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fairlead_nat_flows_ended_total", Help: "UDP flows that were ended because their endpoint left.",
		}),
		shape: newShape(),
		away: nftally.NewAway("fairlead_nat_turned_away_total",
			"Packets to service addresses and node ports that were refused or dropped, by reason.", reasons, edge, log),
		clients: newRemembered(log),
	}
	if registry == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.seconds, m.elements, m.repairs, m.failures, m.flows, m.shape, m.away, m.clients.all, m.clients.most} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics of nat: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) changed(c Change) {
	m.elements.WithLabelValues("add").Add(float64(len(c.Add)))
	m.elements.WithLabelValues("remove").Add(float64(len(c.Remove)))
}
