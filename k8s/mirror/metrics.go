// SPDX-License-Identifier: Apache-2.0

package mirror

import "github.com/prometheus/client_golang/prometheus"

// metrics is what this package counts: LBCF's under their names (lbcf §8), and ours. Without a registerer it
// counts for nobody.
type metrics struct {
	latency *prometheus.HistogramVec // LBCF's
	pending *prometheus.GaugeVec     // LBCF's, by kind
	working *prometheus.GaugeVec     // LBCF's, by kind
	process *prometheus.HistogramVec // LBCF's, by kind

	writes *prometheus.CounterVec // by kind, verb and result
	events *prometheus.CounterVec // by result
	lag    *prometheus.HistogramVec
}

// buckets are LBCF's, in seconds, and one more.
func buckets() []float64 {
	return []float64{.02, .05, .1, .15, .2, .25, .3, .35, .4, .45, .5, .6, .7, .8, .9, 1, 2, 3, 4, 5, 10, 20, 30, 60}
}

func newMetrics() *metrics {
	return &metrics{
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "k8s_operation_latency", Help: "Seconds that writes of BackendRecords took.", Buckets: buckets(),
		}, []string{"k8s_op_obj", "k8s_op_type"}),
		pending: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pending_key", Help: "Objects that are yet to be looked at or written.",
		}, []string{"key_kind"}),
		working: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "working_key", Help: "Objects that are being written.",
		}, []string{"key_kind"}),
		process: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "key_process_latency", Help: "Seconds from the decision to write an object to the server's answer.", Buckets: buckets(),
		}, []string{"crd"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_mirror_writes_total", Help: "Writes of objects of outside load balancers, by kind, by how, and by how they ended.",
		}, []string{"kind", "verb", "result"}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_mirror_events_total", Help: "Events on objects of outside load balancers, by what became of them.",
		}, []string{"result"}),
		lag: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "fairlead_mirror_lag_seconds", Help: "Time from a change to the objects that show it.",
			Buckets: prometheus.ExponentialBuckets(0.002, 2, 16),
		}, []string{"kind"}),
	}
}

func (m *metrics) register(r prometheus.Registerer) error {
	if r == nil {
		return nil
	}
	for _, c := range []prometheus.Collector{m.latency, m.pending, m.working, m.process, m.writes, m.events, m.lag} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}
