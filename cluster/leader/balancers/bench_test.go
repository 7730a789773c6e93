// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fairlead.io/fairlead/fsm/world"
)

// crowdedCluster has groups of pods that share one load balancer.
func crowdedCluster(t failer, groups, pods int) *cluster {
	c := newCluster(t)
	c.object([]string{"driver", "shop/d"})
	c.object([]string{"lb", "shop/edge", "driver=d", "spec=vip:192.0.2.1", "created=vip:192.0.2.1", "synced", "finalized"})
	for g := range groups {
		c.object([]string{"group", fmt.Sprintf("shop/group-%d", g), "lbs=edge", fmt.Sprintf("select=app:%d", g), "ports=80/TCP", "parameters=weight:1"})
		for i := range pods {
			m := world.Meta{ID: world.ID{Namespace: "shop", Name: fmt.Sprintf("pod-%d-%d", g, i)}, UID: fmt.Sprintf("5b0c1b6e-2f0a-4d53-9a51-%04d%08d", g, i)}
			c.pods = append(c.pods, &world.Pod{
				Meta: m, IP: fmt.Sprintf("10.%d.%d.%d", g, i/250, i%250), Ready: true, Running: true,
				Labels: []world.KV{{Key: "app", Value: fmt.Sprint(g)}, {Key: "pod-template-hash", Value: "5d4f8c7b9"}, {Key: "team", Value: "shop"}},
			})
		}
	}
	return c
}

// 5,000 pods of 50 groups, everything as it shall be.
func BenchmarkPlanIdle(b *testing.B) {
	c := crowdedCluster(b, 50, 100)
	in := c.input()
	c.record.settle(in)
	for c.record.work() {
	}
	in.Record = c.record.state.Read()
	var kept Index
	b.ReportAllocs()
	for b.Loop() {
		if out := kept.Plan(in); len(out.Proposals) > 0 {
			b.Fatalf("proposes %s", spell(out.Proposals[0]))
		}
	}
}

// One pod more than 5,000 of 50 groups that are bound: it is planned, known to the record, and gone again.
func BenchmarkPlanOnePod(b *testing.B) {
	c := crowdedCluster(b, 50, 100)
	in := c.input()
	c.record.settle(in)
	for c.record.work() {
	}
	in.Record = c.record.state.Read()
	in.Pods = slices.Clone(in.Pods)
	c.object(strings.Fields("pod shop/pod-25-new ip=192.0.2.99 labels=app:25,team:shop"))
	with := c.input()
	with.Record = in.Record
	c.record.apply(Plan(with).Proposals)
	after := with
	after.Record = c.record.state.Read()
	var kept Index
	b.ReportAllocs()
	for b.Loop() {
		for i, in := range []Input{with, after, in} {
			in.Pods = anew(in.Pods)
			if out, want := kept.Plan(in), []int{1, 0, 0}[i]; len(out.Proposals) != want {
				b.Fatalf("%d proposals in step %d", len(out.Proposals), i)
			}
		}
	}
}

// 5,000 pods of 50 groups, none of them known yet.
func BenchmarkPlanCold(b *testing.B) {
	c := crowdedCluster(b, 50, 100)
	in := c.input()
	in.BackendGroups = nil
	c.record.settle(in)
	in = c.input()
	in.Record = c.record.state.Read()
	b.ReportAllocs()
	for b.Loop() {
		if out := Plan(in); len(out.Proposals) != 5000 {
			b.Fatalf("%d proposals", len(out.Proposals))
		}
	}
}
