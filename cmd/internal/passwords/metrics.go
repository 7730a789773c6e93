// SPDX-License-Identifier: Apache-2.0

package passwords

import "github.com/prometheus/client_golang/prometheus"

var descMissing = prometheus.NewDesc("fairlead_bgp_password_missing",
	"1 for a peer that is left out, since this process does not have its password.", []string{"peer"}, nil)

// Missing shows which peers are left out for want of their password.
type Missing func() []string

// Describe implements prometheus.Collector.
func (m Missing) Describe(to chan<- *prometheus.Desc) { to <- descMissing }

// Collect implements prometheus.Collector.
func (m Missing) Collect(to chan<- prometheus.Metric) {
	for _, peer := range m() {
		to <- prometheus.MustNewConstMetric(descMissing, prometheus.GaugeValue, 1, peer)
	}
}
