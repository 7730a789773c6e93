// SPDX-License-Identifier: Apache-2.0

package informers_test

import (
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm/world"
)

// metric finds the value of a metric; -1 if there is none.
func (r *reading) metric(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	families, err := r.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var have []string
			for _, l := range m.GetLabel() {
				have = append(have, l.GetValue())
			}
			if f.GetName() != name || strings.Join(have, " ") != strings.Join(labels, " ") {
				continue
			}
			return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return -1
}

func TestMetricsTellWhatWasHeardAndWhatWasNot(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.set(func() { s.resources[pools].missing = false })
	s.put(pools, "m", "bad", pool("nonsense"))
	r := read(t, s, fast)
	r.until(t, "complete", complete)
	s.put(services, "default", "first", service(80))
	r.until(t, "heard", func(w world.World) bool { return len(w.Services) == 1 }) // from now on each state is passed on
	at := time.Now().Add(-time.Second).UTC().Format(time.RFC3339Nano)
	changed := slice("web", "192.0.2.7")
	changed["metadata"].(object)["annotations"] = object{"endpoints.kubernetes.io/last-change-trigger-time": at}
	s.put(endpoints, "default", "web-1", changed)
	s.put(services, "default", "web", service(80))
	s.put(services, "default", "web", service(81))
	s.remove(services, "default", "web")
	r.until(t, "gone", func(w world.World) bool { return len(w.Deleted) == 1 && len(w.EndpointSlices) == 1 })
	s.answer(nodes, refusal(403, "Forbidden", "no"))
	r.until(t, "told", func(w world.World) bool { return !w.Complete })
	const prefix = "fairlead_kubernetes_"
	for _, c := range []struct {
		name   string
		labels string
		want   float64
	}{
		{"events_total", "added Service", 2}, {"events_total", "modified Service", 1}, {"events_total", "deleted Service", 1},
		{"watch_lag_seconds", "", 1}, {"objects", "Service", 1}, {"objects", "EndpointSlice", 1}, {"objects_unusable", "IPAddressPool", 1},
		{"complete", "Node", 0}, {"complete", "Service", 1},
	} {
		if got := r.metric(t, prefix+c.name, strings.Fields(c.labels)...); got != c.want {
			t.Errorf("%s{%s} is %v, want %v", c.name, c.labels, got, c.want)
		}
	}
	if n := r.metric(t, prefix+"errors_total", "Node", "forbidden"); n < 1 {
		t.Errorf("%v errors", n)
	}
	if n := r.metric(t, prefix+"lists_total", "Service"); n < 1 {
		t.Errorf("%v lists", n)
	}
	for _, gauge := range []string{"age_seconds", "list_age_seconds"} {
		if age := r.metric(t, prefix+gauge, "Service"); age <= 0 || age > 60 {
			t.Errorf("%s %v", gauge, age)
		}
	}
}
