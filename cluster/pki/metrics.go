// SPDX-License-Identifier: Apache-2.0

package pki

import "github.com/prometheus/client_golang/prometheus"

// ExpiryGauge shows when the certificate of a source ends, so that one that nobody renews is seen in time.
func ExpiryGauge(source *Source) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "fairlead_certificate_not_after_seconds",
		Help: "When the certificate in use ends, seconds since 1970.",
	}, func() float64 {
		return float64(source.Material().Certificate.Leaf.NotAfter.Unix())
	})
}
