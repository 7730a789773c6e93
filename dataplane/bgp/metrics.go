// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics is what an announcer counts. Without a registerer it counts for nobody.
type metrics struct {
	applied  prometheus.Histogram
	written  prometheus.Histogram
	failures prometheus.Counter
}

func newMetrics() *metrics {
	return &metrics{
		applied: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "fairlead_bgp_apply_seconds", Help: "Time to hand a change of routes to the speaker.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 12),
		}),
		written: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "fairlead_bgp_written_seconds", Help: "Time from a change of routes until it was written to all sessions.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2.5, 12),
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fairlead_bgp_failures_total", Help: "Attempts to announce that failed.",
		}),
	}
}

// Register makes what the announcer counts and how it stands visible. It is called once, before Run.
func (a *Announcer) Register(r prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{a.metrics.applied, a.metrics.written, a.metrics.failures, standings{a}} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// standings shows how an announcer stands at the moment of a scrape.
type standings struct{ *Announcer }

var (
	descOpen     = prometheus.NewDesc("fairlead_bgp_open", "1 while this member announces, 0 before it may.", nil, nil)
	descDemoted  = prometheus.NewDesc("fairlead_bgp_demoted", "1 while this member's paths rank behind all others.", nil, nil)
	descPaths    = prometheus.NewDesc("fairlead_bgp_paths", "Paths that this member announces.", nil, nil)
	descLeftOut  = prometheus.NewDesc("fairlead_bgp_left_out", "Paths and peers of the record that cannot be announced as they are; the log names them.", nil, nil)
	descOverfull = prometheus.NewDesc("fairlead_bgp_overfull_prefixes", "Prefixes with more next hops than some peer is sent.", nil, nil)
	descIndex    = prometheus.NewDesc("fairlead_bgp_announced_index", "Log index up to which the routes are on the wire.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s standings) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descOpen, descDemoted, descPaths, descLeftOut, descOverfull, descIndex} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (s standings) Collect(to chan<- prometheus.Metric) {
	now := s.Status()
	gauge := func(d *prometheus.Desc, v float64) { to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	gauge(descOpen, oneIf(now.Open))
	gauge(descDemoted, oneIf(now.Demoted))
	gauge(descPaths, float64(now.Paths))
	gauge(descLeftOut, float64(now.LeftOut))
	gauge(descOverfull, float64(len(now.Overfull)))
	gauge(descIndex, float64(now.Announced.Index))
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
