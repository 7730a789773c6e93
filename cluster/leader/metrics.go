// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/fsm"
)

// metrics is what this package counts. Without a registerer it counts for nobody.
type metrics struct {
	plans      prometheus.Histogram
	shorts     prometheus.Histogram
	proposals  *prometheus.CounterVec // by command and result
	waiting    *prometheus.GaugeVec   // by kind and code
	usable     *prometheus.GaugeVec   // by source
	absent     *prometheus.GaugeVec   // by source
	operations *prometheus.CounterVec // by driver, action and result
	calls      *prometheus.HistogramVec
	flying     *prometheus.GaugeVec // by driver
	lines      *prometheus.GaugeVec // by driver

	programming *programming

	counted map[kindAndCode]int // by the newest plan; owned by the planning goroutine
}

func newMetrics() *metrics {
	return &metrics{
		plans: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "fairlead_leader_plan_seconds", Help: "Time to compare the sources with the record.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}),
		shorts: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "fairlead_leader_endpoints_plan_seconds", Help: "Time to plan a change of endpoints alone.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 14),
		}),
		proposals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_leader_proposals_total", Help: "Commands that the leader proposed, by result.",
		}, []string{"command", "result"}),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fairlead_leader_waiting", Help: "Objects that are not as the sources ask for, by reason.",
		}, []string{"kind", "code"}),
		usable: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fairlead_leader_source_usable", Help: "1 while the view of a source may be acted on.",
		}, []string{"source"}),
		absent: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fairlead_leader_source_absent", Help: "Objects of the record that are absent from a source and may not be removed yet.",
		}, []string{"source"}),
		operations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_operations_total", Help: "Calls to drivers, by how they ended.",
		}, []string{"driver", "action", "result"}),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "fairlead_operation_seconds", Help: "Time that calls to drivers took.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 14),
		}, []string{"driver", "action"}),
		flying: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fairlead_operations_in_flight", Help: "Calls to drivers whose attempt was begun and whose end is not known.",
		}, []string{"driver"}),
		lines: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fairlead_operations_waiting", Help: "Calls to drivers that are due and wait for a place.",
		}, []string{"driver"}),
		programming: newProgramming(),
	}
}

func (m *metrics) register(r prometheus.Registerer) error {
	if r == nil {
		return nil
	}
	for _, c := range []prometheus.Collector{m.plans, m.shorts, m.proposals, m.waiting, m.usable, m.absent, m.operations, m.calls, m.flying, m.lines, m.programming.commits, m.programming.nodes} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// kindAndCode is what waiting objects are counted by.
type kindAndCode struct{ kind, code string }

// planned counts a plan, and what waits by it.
func (m *metrics) planned(took time.Duration, waiting []Explanation) {
	m.plans.Observe(took.Seconds())
	now := map[kindAndCode]int{}
	for _, w := range waiting {
		now[kindAndCode{w.Kind, w.Code}]++
	}
	for k := range m.counted {
		if now[k] == 0 {
			m.waiting.DeleteLabelValues(k.kind, k.code)
		}
	}
	for k, n := range now {
		m.waiting.WithLabelValues(k.kind, k.code).Set(float64(n))
	}
	m.counted = now
}

// short counts a plan of endpoints alone.
func (m *metrics) short(took time.Duration) { m.shorts.Observe(took.Seconds()) }

// called counts a call to a driver.
func (m *metrics) called(r result) {
	m.operations.WithLabelValues(r.driver, r.action.String(), resultName(r.answer.Result)).Inc()
	m.calls.WithLabelValues(r.driver, r.action.String()).Observe((r.ended - r.begun).Seconds())
}

// queued tells how many calls to a driver there are and could be.
func (m *metrics) queued(q *queue) {
	m.flying.WithLabelValues(q.driver).Set(float64(q.running))
	m.lines.WithLabelValues(q.driver).Set(float64(q.size()))
}

func resultName(r fsm.Result) string {
	switch r {
	case fsm.ResultSucceeded:
		return "succeeded"
	case fsm.ResultFailed:
		return "failed"
	case fsm.ResultRunning:
		return "running"
	}
	return "unknown"
}

func (m *metrics) judged(source string, v *Verdict) {
	usable := 0.0
	if v.Act {
		usable = 1
	}
	m.usable.WithLabelValues(source).Set(usable)
	m.absent.WithLabelValues(source).Set(float64(len(v.Waiting)))
}

func (m *metrics) proposed(c fsm.Command, result fsm.Reject) {
	m.proposals.WithLabelValues(kindOf(c), result.String()).Inc()
}

func (m *metrics) failed(proposals []fsm.Proposal) {
	for _, p := range proposals {
		m.proposals.WithLabelValues(kindOf(p.Command), "not-committed").Inc()
	}
}

// kindOf is the name of a command.
func kindOf(c fsm.Command) string { return strings.TrimPrefix(fmt.Sprintf("%T", c), "*fsm.") }
