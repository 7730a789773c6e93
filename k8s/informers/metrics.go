// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm/world"
)

// metrics is what this package counts. Without a registerer it counts for nobody.
type metrics struct {
	source *Source
	events *prometheus.CounterVec // by kind and event
	lists  *prometheus.CounterVec // by kind
	errors *prometheus.CounterVec // by kind and reason
	lag    prometheus.Histogram

	age, listAge, complete, objects, unused *prometheus.Desc
}

func newMetrics(s *Source) *metrics {
	gauge := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"kind"}, nil)
	}
	return &metrics{
		source: s,
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_kubernetes_events_total", Help: "What watches of the API server said.",
		}, []string{"kind", "event"}),
		lists: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_kubernetes_lists_total", Help: "Complete lists that were taken in.",
		}, []string{"kind"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_kubernetes_errors_total", Help: "Requests to the API server that failed, and watches that broke.",
		}, []string{"kind", "reason"}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "fairlead_kubernetes_watch_lag_seconds",
			Help:    "From the change of a pod, as its EndpointSlice states it, to the event here.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 14),
		}),
		age:      gauge("fairlead_kubernetes_age_seconds", "How long ago anything was heard of a kind."),
		listAge:  gauge("fairlead_kubernetes_list_age_seconds", "How long ago the newest complete list of a kind began."),
		complete: gauge("fairlead_kubernetes_complete", "1 while everything of a kind is known."),
		objects:  gauge("fairlead_kubernetes_objects", "Objects of a kind that are known."),
		unused:   gauge("fairlead_kubernetes_objects_unusable", "Objects of a kind whose newest form cannot be used."),
	}
}

func (m *metrics) register(r prometheus.Registerer) error {
	if r == nil {
		return nil
	}
	for _, c := range []prometheus.Collector{m.events, m.lists, m.errors, m.lag, m} {
		if err := r.Register(c); err != nil {
			return fmt.Errorf("kubernetes source: register metrics: %w", err)
		}
	}
	return nil
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.age, m.listAge, m.complete, m.objects, m.unused} {
		to <- d
	}
}

// Collect implements prometheus.Collector: ages are those at the moment of asking.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	s := m.source
	s.mu.Lock()
	defer s.mu.Unlock()
	views, _, _ := s.viewsLocked(s.clock.Now())
	all, unused := map[world.Kind]int{}, map[world.Kind]int{}
	for _, l := range s.lines {
		n, bad := l.store.countLocked()
		all[l.kind] += n
		unused[l.kind] += bad
	}
	for _, v := range views {
		set := func(d *prometheus.Desc, value float64) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, string(v.Kind))
		}
		set(m.objects, float64(all[v.Kind]))
		set(m.unused, float64(unused[v.Kind]))
		complete := 0.0
		if v.Complete {
			complete = 1
		}
		set(m.complete, complete)
		if v.Listed {
			set(m.age, v.Age.Seconds())
			set(m.listAge, v.ListAge.Seconds())
		}
	}
}

// observeLag notes how late an event is, where its object tells when its cause was.
func (m *metrics) observeLag(o any, now time.Time) {
	object, ok := o.(metav1.Object)
	if !ok {
		return
	}
	text := object.GetAnnotations()[corev1.EndpointsLastChangeTriggerTime]
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil && at.Before(now) {
		m.lag.Observe(now.Sub(at).Seconds())
	}
}
