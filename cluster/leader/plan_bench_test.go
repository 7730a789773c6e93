// SPDX-License-Identifier: Apache-2.0

//go:build unix

package leader

import (
	"fmt"
	"net/netip"
	"runtime"
	"syscall"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/heap"
)

// bigWorld has n Services with two endpoints each, on 50 nodes; half of them name an address, half take one of a pool.
func bigWorld(n int) *world.World {
	w := &world.World{Source: "bench", Cluster: "bench", Complete: true}
	for _, k := range world.Kinds() {
		w.Kinds = append(w.Kinds, world.KindView{Kind: k, Listed: true, Complete: true, Lists: 1, Version: 1})
	}
	for i := range 50 {
		w.Nodes = append(w.Nodes, &world.Node{
			Meta: world.Meta{ID: world.ID{Name: fmt.Sprintf("node-%02d", i)}, UID: fmt.Sprint(i), Version: 1}, Ready: true,
			Addresses: []world.NodeAddress{{Type: world.InternalIP, Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)})}},
		})
	}
	pool := world.Range{From: netip.MustParseAddr("10.128.0.0"), To: netip.MustParseAddr("10.129.255.255")}
	w.AddressPolicies = []*world.AddressPolicy{anything()}
	w.Pools = []*world.Pool{{Meta: world.Meta{ID: world.ID{Name: "pool"}}, Ranges: []world.Range{pool}, AutoAssign: true}}
	for i := range n {
		meta := world.Meta{ID: world.ID{Namespace: "default", Name: fmt.Sprintf("service-%05d", i)}, UID: fmt.Sprint("u", i), Version: 7}
		s := world.Service{Meta: meta, Type: world.LoadBalancer, ExternalTrafficPolicy: world.PolicyCluster, Ports: []world.ServicePort{{Name: "http", Protocol: world.TCP, Port: 80}}}
		if i%2 == 0 {
			s.ExternalIPs = []netip.Addr{netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)})}
		}
		w.Services = append(w.Services, &s)
		slice := world.EndpointSlice{Meta: meta, ServiceName: meta.Name, Ports: []world.EndpointPort{{Name: "http", Protocol: world.TCP, Port: 8080}}}
		for e := range 2 {
			slice.Endpoints = append(slice.Endpoints, world.Endpoint{
				Address: netip.AddrFrom4([4]byte{10, byte(e), byte(i >> 8), byte(i)}), Place: &world.Place{Node: fmt.Sprintf("node-%02d", (i+e*7)%50)}, Ready: true, Serving: true,
			})
		}
		w.EndpointSlices = append(w.EndpointSlices, &slice)
	}
	w.Sort()
	return w
}

const benchServices = 5000

// cpuTime reports what an iteration cost in time on a processor, which a busy machine does not stretch.
func cpuTime(b *testing.B) func() {
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	return func() {
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
		spent := after.Utime.Nano() - before.Utime.Nano() + after.Stime.Nano() - before.Stime.Nano()
		b.ReportMetric(float64(spent)/float64(b.N)/1e6, "cpu-ms/op")
	}
}

func benchInput(g *group, w *world.World) Input {
	return Input{
		Record: g.state.Read(), Now: time.UnixMilli(1),
		Views: []Admitted{{World: w, Complete: true, MayRemove: func(world.Kind, world.ID) bool { return true }}},
	}
}

func BenchmarkPlanCold(b *testing.B) {
	g, w := newGroup(b), bigWorld(benchServices)
	in := benchInput(g, w)
	defer cpuTime(b)()
	for b.Loop() {
		Plan(in)
	}
}

func BenchmarkPlanUnchanged(b *testing.B) {
	g, w := newGroup(b), bigWorld(benchServices)
	g.propose(all(Plan(benchInput(g, w))), 500)
	in := benchInput(g, w)
	b.ReportAllocs()
	defer cpuTime(b)()
	for b.Loop() {
		if out := Plan(in); len(out.Bulk)+len(out.Urgent) != 0 {
			b.Fatalf("%d proposals", len(out.Bulk))
		}
	}
}

// What the loop does for one change: judge the view, plan, and find the one Service.
func BenchmarkStepOneChange(b *testing.B) {
	g, w := newGroup(b), bigWorld(benchServices)
	g.propose(all(Plan(benchInput(g, w))), 500)
	guard := NewGuard(Limits{})
	changed := w.Clone()
	changed.EndpointSlices[benchServices/2].Endpoints[0].Ready = false
	record := g.state.Read()
	now := time.Duration(0)
	b.ReportAllocs()
	defer cpuTime(b)()
	for b.Loop() {
		now += time.Second
		known := KnownOf(record, "bench", PartServices)
		v := guard.Judge(now, &changed, &known)
		out := Plan(Input{Record: record, Views: []Admitted{v.Admit(&changed)}})
		if n := len(out.Bulk) + len(out.Urgent); n != 2 {
			b.Fatalf("%d proposals", n)
		}
	}
}

// What a guard keeps of each Service with a slice beside the views that it judged, of which each was listed anew.
func BenchmarkGuardHeld(b *testing.B) {
	const services = 50_000
	w := bigWorld(services)
	var known Known
	for _, s := range w.Services {
		known.Objects = append(known.Objects, KnownObject{world.KindService, s.ID, s.UID}, KnownObject{Kind: world.KindEndpointSlice, ID: s.ID})
	}
	for b.Loop() {
		before := heap.InUse()
		guard := NewGuard(Limits{})
		for list := range 3 {
			for i := range w.Kinds {
				w.Kinds[i].Lists = uint64(list + 1)
			}
			if v := guard.Judge(time.Duration(list)*time.Minute, w, &known); !v.Act || list == 2 && len(v.Waiting) > 0 {
				b.Fatal(v.Why, len(v.Waiting))
			}
		}
		b.ReportMetric(float64(heap.InUse()-before)/services, "B/Service")
		runtime.KeepAlive(guard)
		runtime.KeepAlive(w)
	}
}

// A node that dies takes its next hop out of many routes at once: the other nodes that serve them have their rules.
func BenchmarkPlanNodeDown(b *testing.B) {
	g, w := newGroup(b), bigWorld(benchServices)
	g.propose(all(Plan(benchInput(g, w))), 500)
	for _, n := range w.Nodes {
		id := fsm.NodeID(n.ID.Name)
		g.must(&fsm.RegisterBoot{Node: id, Boot: "boot"},
			&fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: id, Boot: "boot", Upto: g.state.Read().Revision()}}})
	}
	g.must(&fsm.SetLiveness{Node: "node-00", Boot: "boot", Liveness: fsm.NodeDown})
	in := benchInput(g, w)
	defer cpuTime(b)()
	for b.Loop() {
		if out := Plan(in); len(out.Urgent) != 2*benchServices/50 {
			b.Fatalf("%d urgent proposals", len(out.Urgent))
		}
	}
}
