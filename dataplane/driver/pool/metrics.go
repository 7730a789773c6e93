// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/dataplane/driver"
)

// metrics counts calls. LBCF's names have no prefix, and mean what they meant there (lbcf §8): what was never sent was no
// call, and an answer that says nothing is neither error nor failure.
type metrics struct {
	calls, errors, fails *prometheus.CounterVec
	latency              *prometheus.HistogramVec

	results *prometheus.CounterVec // by how calls ended, those that were not sent among them
	took    *prometheus.HistogramVec
}

// buckets are LBCF's, and one for the longest call that there is. Seconds.
func buckets() []float64 {
	return []float64{0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 2, 3, 4, 5, 10, 20, 30, 60}
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	theirs, ours := []string{"driver_name", "webhook_name"}, []string{"driver", "webhook"}
	m := &metrics{
		calls:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "webhook_calls", Help: "Calls to drivers."}, theirs),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "webhook_errors", Help: "Calls to drivers without a usable answer."}, theirs),
		fails:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "webhook_fails", Help: "Calls to drivers that they answered with no."}, theirs),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "webhook_latency", Help: "Time that answered calls to drivers took, in seconds.", Buckets: buckets(),
		}, theirs),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_driver_calls_total", Help: "Calls to drivers, by how they ended.",
		}, append(ours, "result")),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "fairlead_driver_call_seconds", Help: "Time that calls to drivers took, whatever became of them.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 14),
		}, ours),
	}
	var errs []error
	for _, c := range m.all() {
		errs = append(errs, r.Register(c))
	}
	return m, errors.Join(errs...)
}

// vector is what metrics with labels have in common.
type vector interface {
	prometheus.Collector
	DeletePartialMatch(prometheus.Labels) int
}

func (m *metrics) all() []vector {
	return []vector{m.calls, m.errors, m.fails, m.latency, m.results, m.took}
}

func (m *metrics) forget(driver string) {
	for _, v := range m.all() {
		v.DeletePartialMatch(prometheus.Labels{"driver_name": driver})
		v.DeletePartialMatch(prometheus.Labels{"driver": driver})
	}
}

// of counts the calls of one driver.
func (m *metrics) of(name string) func(driver.Observation) {
	return func(o driver.Observation) {
		webhook, took := string(o.Webhook), o.Took.Seconds()
		m.results.WithLabelValues(name, webhook, result(o)).Inc()
		m.took.WithLabelValues(name, webhook).Observe(took)
		if o.Err != nil && unsent(o.Err.Cause) {
			return
		}
		m.calls.WithLabelValues(name, webhook).Inc()
		if o.Err == nil || o.Err.Cause == driver.CauseInvalid {
			m.latency.WithLabelValues(name, webhook).Observe(took)
		} else {
			m.errors.WithLabelValues(name, webhook).Inc()
		}
		if o.Refused {
			m.fails.WithLabelValues(name, webhook).Inc()
		}
	}
}

// result is the label of how a call ended.
func result(o driver.Observation) string {
	switch {
	case o.Err != nil:
		return string(o.Err.Cause)
	case o.Refused:
		return "refused"
	default:
		return "ok"
	}
}

// unsent tells of calls that nobody tried to send.
func unsent(c driver.Cause) bool {
	switch c {
	case driver.CauseDryRun, driver.CauseRequest, driver.CauseLate, driver.CauseBusy, driver.CauseOpen:
		return true
	default:
		return false
	}
}
