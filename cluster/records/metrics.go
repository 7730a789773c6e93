// SPDX-License-Identifier: Apache-2.0

package records

import (
	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/fsm"
)

var (
	descRows     = prometheus.NewDesc("fairlead_record_rows", "Rows of the record.", []string{"kind"}, nil)
	descServices = prometheus.NewDesc("fairlead_services", "Services, by why they have no address, empty for those that have.", []string{"pending"}, nil)
	descHops     = prometheus.NewDesc("fairlead_next_hops", "Next hops, by how far they got.", []string{"state"}, nil)
	descNodes    = prometheus.NewDesc("fairlead_nodes", "Nodes, by what the group found of them.", []string{"liveness"}, nil)
	descBehind   = prometheus.NewDesc("fairlead_node_acknowledged_index", "Log index that a node has carried out.", []string{"node"}, nil)
	descHolds    = prometheus.NewDesc("fairlead_holds", "Mass changes that wait for an operator.", nil, nil)
	descRanBack  = prometheus.NewDesc("fairlead_source_ran_back", "1 while nothing of a source is acted on until an operator accepts that it ran back.", []string{"source"}, nil)
	descApplied  = prometheus.NewDesc("fairlead_record_applied_index", "Log index that this member has applied.", nil, nil)
)

// Collector shows the record in numbers, as it is at the moment of a scrape.
type Collector struct{ Record fsm.Reader }

// Describe implements prometheus.Collector.
func (c Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descRows, descServices, descHops, descNodes, descBehind, descHolds, descRanBack, descApplied} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c Collector) Collect(to chan<- prometheus.Metric) {
	v := c.Record.Read()
	gauge := func(d *prometheus.Desc, n float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n, labels...)
	}
	counts := func(d *prometheus.Desc, by map[string]int) {
		for label, n := range by {
			gauge(d, float64(n), label)
		}
	}
	rows := map[string]int{}
	for _, t := range fsm.Tables() {
		rows[string(t)] = v.Count(t)
	}
	services := map[string]int{"": 0}
	for _, s := range fsm.List[*fsm.Service](v, fsm.TableServices) {
		services[s.Pending.Code]++
	}
	hops := map[string]int{}
	for _, r := range fsm.List[*fsm.Route](v, fsm.TableRoutes) {
		for _, h := range r.NextHops {
			hops[string(v.HopState(r, h))]++
		}
	}
	nodes, held := map[string]int{}, 0
	for _, n := range fsm.List[*fsm.Node](v, fsm.TableNodes) {
		nodes[n.Liveness.String()]++
		gauge(descBehind, float64(n.Acknowledged.Index), string(n.ID))
	}
	for _, h := range fsm.List[*fsm.Hold](v, fsm.TableHolds) {
		if !h.Released {
			held++
		}
	}
	for _, source := range fsm.List[*fsm.SourceView](v, fsm.TableViews) {
		ranBack := 0.0
		if leader.RewindOf(v, source.Source) != nil {
			ranBack = 1
		}
		gauge(descRanBack, ranBack, source.Source)
	}
	counts(descRows, rows)
	counts(descServices, services)
	counts(descHops, hops)
	counts(descNodes, nodes)
	gauge(descHolds, float64(held))
	gauge(descApplied, float64(v.Revision().Index))
}
