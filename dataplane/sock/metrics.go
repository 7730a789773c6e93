// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"net/netip"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what is to be seen of resolution on one host.
type metrics struct {
	seconds  prometheus.Histogram
	writes   prometheus.Counter
	failures prometheus.Counter
	rows     *prometheus.GaugeVec
	room     *prometheus.GaugeVec
	recent   *prometheus.GaugeVec
	unfit    prometheus.Gauge
	events   *prometheus.CounterVec
	calls    *prometheus.CounterVec
	ended    prometheus.Counter
	attached prometheus.Gauge
	compared prometheus.Gauge
	backends policyBackends
}

func newMetrics(to prometheus.Registerer, e Edge, room Capacity) (*metrics, error) {
	m := &metrics{
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "fairlead_sock_apply_seconds", Help: "Time to bring the tables of resolution to a state.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9),
		}),
		writes:   prometheus.NewCounter(prometheus.CounterOpts{Name: "fairlead_sock_writes_total", Help: "Rows of tables that were written or removed."}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: "fairlead_sock_failures_total", Help: "Attempts to write tables that failed."}),
		rows:     prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "fairlead_sock_rows", Help: "Rows that a table holds."}, []string{"table"}),
		room:     prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "fairlead_sock_rows_max", Help: "Rows that a table has room for."}, []string{"table"}),
		recent:   prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "fairlead_sock_rows_recent", Help: "Rows of a table of clients that were used within two minutes."}, []string{"table"}),
		unfit:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "fairlead_sock_rules_unfit", Help: "Services that the tables have no room for."}),
		events:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fairlead_sock_events_total", Help: "Calls of clients that were to be logged, by whether they were."}, []string{"fate"}),
		calls:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fairlead_sock_told_calls_total", Help: "Calls of clients that programs told of, by what decided and what failed, if anything did."}, []string{"kind", "mode", "failure"}),
		attached: prometheus.NewGauge(prometheus.GaugeOpts{Name: "fairlead_sock_attached", Help: "Whether the programs are where they shall be, as far as is known."}),
		compared: prometheus.NewGauge(prometheus.GaugeOpts{Name: "fairlead_sock_compared_timestamp_seconds", Help: "When the tables were last compared as a whole and put right."}),
		ended:    prometheus.NewCounter(prometheus.CounterOpts{Name: "fairlead_sock_ended_total", Help: "Sockets that were ended since their endpoint left."}),
	}
	m.room.WithLabelValues("places").Set(float64(room.Places))
	m.room.WithLabelValues("slots").Set(float64(room.Slots))
	if to == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.seconds, m.writes, m.failures, m.rows, m.room, m.recent, m.unfit, m.events, m.calls, m.ended, m.attached, m.compared, &m.backends, callCounters{e}} {
		if err := to.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) is(taken Capacity, unfit int) {
	m.rows.WithLabelValues("places").Set(float64(taken.Places))
	m.rows.WithLabelValues("slots").Set(float64(taken.Slots))
	m.unfit.Set(float64(unfit))
}

// policyBackends are how many backends policies have, and sockets that got to them, counted when somebody asks: there may be tens of thousands of policies. Those of
// Services are not told one by one.
type policyBackends struct {
	rules   atomic.Pointer[[]*Rule]
	sockets atomic.Pointer[map[uint32]int] // by rule, as of the last count; nil before
}

var policySocketsDesc = prometheus.NewDesc("fairlead_sock_policy_sockets", "Sockets that got to a backend of a policy on this host.", []string{"policy"}, nil)

var policyBackendsDesc = prometheus.NewDesc("fairlead_sock_policy_backends", "Backends of a policy on this host: used, or resting for failed probes.", []string{"policy", "state"}, nil)

// of says which rules there are.
func (p *policyBackends) of(rules []*Rule) { p.rules.Store(&rules) }

// Describe implements prometheus.Collector.
func (*policyBackends) Describe(to chan<- *prometheus.Desc) {
	to <- policyBackendsDesc
	to <- policySocketsDesc
}

// Collect implements prometheus.Collector.
func (p *policyBackends) Collect(to chan<- prometheus.Metric) {
	rules := p.rules.Load()
	if rules == nil {
		return
	}
	sockets := p.sockets.Load()
	for _, r := range *rules {
		if r.Kind != Balancing && r.Kind != LocalRedirect {
			continue
		}
		used, resting := map[netip.AddrPort]bool{}, map[netip.AddrPort]bool{}
		for _, f := range r.Fronts {
			for _, b := range f.Backends {
				used[b.At] = true
			}
			for _, b := range f.Resting {
				resting[b.At] = true
			}
		}
		to <- prometheus.MustNewConstMetric(policyBackendsDesc, prometheus.GaugeValue, float64(len(used)), r.Name, "used")
		to <- prometheus.MustNewConstMetric(policyBackendsDesc, prometheus.GaugeValue, float64(len(resting)), r.Name, "resting")
		if sockets != nil {
			to <- prometheus.MustNewConstMetric(policySocketsDesc, prometheus.GaugeValue, float64((*sockets)[r.ID]), r.Name)
		}
	}
}

// callCounters are the counters of programs, read when they are asked for.
type callCounters struct{ edge Edge }

var callsDesc = prometheus.NewDesc("fairlead_sock_calls_total", "Calls of clients, by what kind of rule decided and how they ended.", []string{"kind", "outcome"}, nil)

// Describe implements prometheus.Collector.
func (callCounters) Describe(to chan<- *prometheus.Desc) { to <- callsDesc }

// Collect implements prometheus.Collector.
func (c callCounters) Collect(to chan<- prometheus.Metric) {
	counters, err := c.edge.Counters()
	if err != nil {
		to <- prometheus.NewInvalidMetric(callsDesc, err)
		return
	}
	for kind, outcomes := range counters {
		for outcome, n := range outcomes {
			to <- prometheus.MustNewConstMetric(callsDesc, prometheus.CounterValue, float64(n), kind.Name(), outcome)
		}
	}
}
