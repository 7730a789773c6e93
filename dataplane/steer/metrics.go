// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/internal/nftally"
)

// Chains where packets that nobody translated are turned away and counted.
const (
	chainICMP       = "drop-icmp"         // about a service address, and no echo
	chainUnanswered = "refuse-unanswered" // the Service has the port, but nobody here answers
	chainNoPort     = "refuse-port"       // no Service has it
	chainQuiet      = "quiet"             // this host's own neighbour advertisements
)

// reasons are the names that metrics have for these chains.
var reasons = map[string]string{
	chainICMP: "icmp", chainUnanswered: "unanswered", chainNoPort: "no-port", chainQuiet: "advertisement",
}

// metrics counts what was done.
type metrics struct {
	repairs   prometheus.Counter
	addresses *prometheus.GaugeVec
	failed    prometheus.Gauge
	away      *nftally.Away
}

func newMetrics(r prometheus.Registerer, edge Edge, log *slog.Logger) (*metrics, error) {
	m := &metrics{
		repairs: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fairlead_steer_repairs_total",
			Help: "Changes made to undo what somebody else did to rules, routes, nftables or settings.",
		}),
		addresses: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fairlead_steer_addresses", Help: "Service addresses that this node is to steer.",
		}, []string{"family"}),
		failed: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fairlead_steer_failed_addresses", Help: "Service addresses that this node cannot steer.",
		}),
		away: nftally.NewAway("fairlead_steer_turned_away_total",
			"Packets about service addresses that nobody translated and that went no further, by reason.", reasons, edge, log),
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.repairs, m.addresses, m.failed, m.away} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("steer: metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) repaired(changes int) { m.repairs.Add(float64(changes)) }

func (m *metrics) steered(want Wanted, goal Goal) {
	n := map[bool]int{}
	for _, w := range want.Addresses {
		n[w.Prefix.Addr().Is6()]++
	}
	for _, v6 := range []bool{false, true} {
		m.addresses.WithLabelValues(familyName(v6)).Set(float64(n[v6]))
	}
	m.failed.Set(float64(len(goal.Failed)))
}
