// SPDX-License-Identifier: Apache-2.0

package health

import "github.com/prometheus/client_golang/prometheus"

// metrics are what is to be seen of probes on one host.
type metrics struct {
	checker *Checker
	probes  *prometheus.CounterVec
}

var (
	targetsDesc = prometheus.NewDesc("fairlead_health_targets", "Targets that are probed for policies, by what is thought of them.", []string{"opinion"}, nil)
	voidDesc    = prometheus.NewDesc("fairlead_health_void", "Targets that this host could not ask the last time.", nil, nil)
	unfitDesc   = prometheus.NewDesc("fairlead_health_unfit", "Targets that are not probed, since there are too many.", nil, nil)
)

func newMetrics(c *Checker) *metrics {
	return &metrics{c, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fairlead_health_probes_total", Help: "Probes of listed addresses of policies, by type and result.",
	}, []string{"type", "result"})}
}

func (m *metrics) probed(t Target, r Result) {
	result := "failed"
	switch {
	case r.Void:
		result = "void"
	case r.OK:
		result = "ok"
	}
	m.probes.WithLabelValues(t.Type, result).Inc()
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	m.probes.Describe(to)
	to <- targetsDesc
	to <- voidDesc
	to <- unfitDesc
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	m.probes.Collect(to)
	m.checker.mu.Lock()
	by, void := m.checker.book.Counts()
	unfit := m.checker.unfit
	m.checker.mu.Unlock()
	for _, o := range []Opinion{Unknown, Good, Bad} {
		to <- prometheus.MustNewConstMetric(targetsDesc, prometheus.GaugeValue, float64(by[o]), o.String())
	}
	to <- prometheus.MustNewConstMetric(voidDesc, prometheus.GaugeValue, float64(void))
	to <- prometheus.MustNewConstMetric(unfitDesc, prometheus.GaugeValue, float64(unfit))
}
