// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

var descUp = prometheus.NewDesc("fairlead_bgp_session_up", "1 while the session with a peer is established.",
	[]string{"peer", "address"}, nil)

// Describe implements prometheus.Collector.
func (s *Speaker) Describe(to chan<- *prometheus.Desc) { to <- descUp }

// Collect implements prometheus.Collector. A speaker that has stopped has nothing to show.
func (s *Speaker) Collect(to chan<- prometheus.Metric) {
	peers, err := s.Peers(context.Background())
	if err != nil {
		return
	}
	for _, p := range peers {
		up := 0.0
		if p.Established {
			up = 1
		}
		to <- prometheus.MustNewConstMetric(descUp, prometheus.GaugeValue, up, p.Name, p.Address.String())
	}
}
