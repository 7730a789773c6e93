// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/fsm"
)

// metrics count what was judged. How the nodes stand every member tells, from its record.
type metrics struct {
	verdicts *prometheus.HistogramVec
	held     prometheus.Gauge
	judging  prometheus.Gauge
}

func newMetrics(registry prometheus.Registerer, record fsm.Reader) (*metrics, error) {
	m := &metrics{
		verdicts: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "fairlead_liveness_verdict_seconds",
			Help:    "Time from the last sign of life of a node to the commit of the verdict that it or its agent is down.",
			Buckets: []float64{0.3, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 1, 1.5, 2, 3, 5, 10},
		}, []string{"state"}),
		held: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fairlead_liveness_held",
			Help: "Silent nodes that are not taken to be down because too many are silent at once; on the leader.",
		}),
		judging: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fairlead_liveness_judging",
			Help: "1 while this member leads and a quorum of members tells it which nodes are silent.",
		}),
	}
	if registry == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.verdicts, m.held, m.judging, nodeStates{record}} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics of liveness: %w", err)
		}
	}
	return m, nil
}

// show tells what a look of the leader found out.
func (m *metrics) show(d *Decision) {
	m.held.Set(float64(len(d.Held)))
	if d.Problem == "" {
		m.judging.Set(1)
	} else {
		m.judging.Set(0)
	}
}

// rest tells that this member does not lead.
func (m *metrics) rest() {
	m.held.Set(0)
	m.judging.Set(0)
}

// nodeStates shows the record's verdicts when it is asked.
type nodeStates struct{ record fsm.Reader }

func (nodeStates) desc() *prometheus.Desc {
	return prometheus.NewDesc("fairlead_node_liveness", "1 for the state that the group takes a node to be in, 0 for the others.", []string{"node", "state"}, nil)
}

// Describe implements prometheus.Collector.
func (s nodeStates) Describe(out chan<- *prometheus.Desc) { out <- s.desc() }

// Collect implements prometheus.Collector.
func (s nodeStates) Collect(out chan<- prometheus.Metric) {
	desc := s.desc()
	for _, n := range fsm.List[*fsm.Node](s.record.Read(), fsm.TableNodes) {
		for _, l := range []fsm.Liveness{fsm.NodeUp, fsm.AgentDown, fsm.NodeDown} {
			is := 0.0
			if n.Liveness == l {
				is = 1
			}
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, is, string(n.ID), l.String())
		}
	}
}
