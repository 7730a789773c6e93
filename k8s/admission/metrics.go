// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts what the API server asks and what it hears. Nil counts for nobody.
type Metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	denials  *prometheus.CounterVec
}

// Verdicts on requests, as metrics have them.
const (
	allowed    = "allowed"
	warned     = "warned" // allowed, and something is said about it
	denied     = "denied"
	unreadable = "unreadable" // no AdmissionReview of a version that is known
	failed     = "failed"     // it was judged, and could not be answered
)

// NewMetrics makes the metrics and registers them. It fails where they are registered already.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_admission_requests_total", Help: "Requests of the API server about objects of outside load balancers, and policies, by path and verdict.",
		}, []string{"path", "verdict"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "fairlead_admission_seconds", Help: "Time from a request of the API server to the answer, calls of drivers included.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 17),
		}, []string{"path"}),
		denials: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_admission_denials_total", Help: "Requests of the API server about policies that were denied, by kind and rule.",
		}, []string{"kind", "rule"}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.denials} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Metrics) answered(path, verdict string, took time.Duration) {
	if m != nil {
		m.requests.WithLabelValues(path, verdict).Inc()
		m.seconds.WithLabelValues(path).Observe(took.Seconds())
	}
}

// judged counts the rules that denied a request, each once.
func (m *Metrics) judged(kind Kind, d *Decision) {
	if m == nil {
		return
	}
	rules := slices.Clone(d.Rules)
	slices.Sort(rules)
	for _, rule := range slices.Compact(rules) {
		m.denials.WithLabelValues(string(kind), rule).Inc()
	}
}

// verdictOf is what became of a request that was judged.
func verdictOf(d Decision) string {
	switch {
	case d.Denied != "":
		return denied
	case len(d.Warnings) > 0:
		return warned
	}
	return allowed
}
