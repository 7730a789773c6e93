// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"bytes"
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"fairlead.io/fairlead/internal/heap"
)

// filled gives a State with n bound bindings on 1,000 balancers.
func filled(tb testing.TB, n int) *State {
	tb.Helper()
	s := New()
	index := Index(0)
	apply := func(cs ...Command) {
		index++
		for _, o := range s.ApplyEntries([]LogEntry{entry(tb, s, index, cs...)})[0] {
			if o.Reject != Accepted {
				tb.Fatalf("fill: %v", o.Err())
			}
		}
	}
	apply(&InitGroup{Group: "g", Format: NewestFormat})
	var batch []Command
	flush := func(all bool) {
		if len(batch) >= 512 || all {
			apply(batch...)
			batch = nil
		}
	}
	for i := range 1000 {
		batch = append(batch, &PutLoadBalancer{ID: benchBalancer(i), Driver: "drv", Info: benchInfo(i), Synced: true})
		flush(false)
	}
	flush(true)
	for i := range n {
		batch = append(batch, benchBinding(i))
		flush(false)
	}
	flush(true)
	return s
}

func benchBalancer(i int) BalancerID {
	return BalancerID(fmt.Sprintf("LoadBalancer/default/lb-%04d", i%1000))
}

func benchInfo(i int) []KV { return []KV{{"id", fmt.Sprintf("lb-%04d", i%1000)}} }

func benchBinding(i int) *PutBinding {
	return &PutBinding{
		ID: BindingID(fmt.Sprintf("binding-%07d", i)), Balancer: benchBalancer(i),
		Owner: fmt.Sprintf("pod/default/web-%07d/6b1f0d0e-0000-4000-8000-%012d", i, i), Address: fmt.Sprintf("10.%d.%d.%d:8080", i>>16, i>>8&255, i&255),
		Parameters: []KV{{"weight", "10"}, {"protocol", "TCP"}},
	}
}

func entry(tb testing.TB, s *State, index Index, cs ...Command) LogEntry {
	tb.Helper()
	_, epoch, _ := s.Identity()
	var ps []Proposal
	for _, c := range cs {
		ps = append(ps, Proposal{Actor: "bench", Reason: "benchmark", AtUnixMilli: 1_790_000_000_000, Command: c})
	}
	if _, isInit := cs[0].(*InitGroup); isInit {
		epoch = 0
	}
	data, err := EncodeEntry(epoch, ps)
	if err != nil {
		tb.Fatal(err)
	}
	return LogEntry{Index: index, Term: 1, Data: data}
}

const benchSize = 100_000

// Each command is half of what a leader commits for one backend: begin an operation, finish it. A hundred
// entries come in one batch, as they do from Raft under load.
func BenchmarkApply(b *testing.B) {
	s := filled(b, benchSize)
	const perEntry, perBatch = 64, 64
	b.ResetTimer()
	var applying time.Duration
	done := 0
	for n := 0; done < b.N; {
		entries := make([]LogEntry, 0, perBatch)
		for index := s.Applied(); len(entries) < perBatch; index += 2 {
			var begin, finish []Command
			for range perEntry {
				n++
				i := n * 7919 % benchSize
				p := benchBinding(i)
				begin = append(begin, &BeginOperation{Action: ActionEnsure, Binding: p.ID, Deadline: 10 * time.Second})
				finish = append(finish, &FinishOperation{
					Subject: SubjectOf(IdentityOf("drv", benchInfo(i)), p.Address, p.ID), Attempt: Revision{1, index + 1}, Result: ResultSucceeded,
				})
			}
			entries = append(entries, entry(b, s, index+1, begin...), entry(b, s, index+2, finish...))
		}
		start := time.Now()
		outcomes := s.ApplyEntries(entries)
		applying += time.Since(start)
		for _, os := range outcomes {
			for _, o := range os {
				if o.Reject != Accepted {
					b.Fatal(o.Err())
				}
			}
		}
		done += perEntry * perBatch
	}
	b.ReportMetric(float64(done)/applying.Seconds(), "commands/s")
}

func BenchmarkSnapshot(b *testing.B) {
	s := filled(b, 100_000)
	var buf bytes.Buffer
	for b.Loop() {
		buf.Reset()
		if err := s.Freeze().Write(&buf); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(buf.Len()), "bytes")
}

// BenchmarkRestored is how long a snapshot takes to be read, and what the record keeps for each binding then.
func BenchmarkRestored(b *testing.B) {
	const bindings = 50_000
	var buf bytes.Buffer
	if err := filled(b, bindings).Freeze().Write(&buf); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		before := heap.InUse()
		s := New()
		if err := s.Restore(bytes.NewReader(buf.Bytes())); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(heap.InUse()-before)/bindings, "B/binding")
		runtime.KeepAlive(s)
	}
}

// BenchmarkServicesHeld is what the record keeps for each Service with four endpoints.
func BenchmarkServicesHeld(b *testing.B) {
	const services = 10_000
	for b.Loop() {
		before := heap.InUse()
		s := New()
		s.ApplyEntries([]LogEntry{entry(b, s, 1, &InitGroup{Group: "g", Format: NewestFormat})})
		for i := range services {
			if o := s.ApplyEntries([]LogEntry{entry(b, s, Index(i+2), benchService(i))})[0][0]; o.Reject != Accepted {
				b.Fatal(o.Err())
			}
		}
		b.ReportMetric(float64(heap.InUse()-before)/services, "B/Service")
		runtime.KeepAlive(s)
	}
}

func benchService(i int) *PutService {
	s := Service{
		ID: ServiceID(fmt.Sprintf("team-%d/web-%d", i%100, i)), UID: fmt.Sprintf("6b1f0d0e-0000-4000-8000-%012d", i),
		ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{172, 16, byte(i >> 8), byte(i)})},
		Frontends:  []Frontend{{Name: "https", Port: Port{Protocol: TCP, Number: 443}}},
	}
	for j := range 4 {
		s.Endpoints = append(s.Endpoints, Endpoint{
			Address: netip.AddrFrom4([4]byte{10, byte(i >> 14), byte(i >> 6), byte(i<<2 + j)}), Node: NodeID(fmt.Sprintf("node-%d", (i+j)%100)),
			Ready: true, Serving: true, Offer: &Offer{Ports: []EndpointPort{{Name: "https", Port: Port{Protocol: TCP, Number: 8443}}}},
		})
	}
	return &PutService{Service: s}
}

// BenchmarkAddressesHeld is what the record keeps for each address that a Service has and four nodes lead to.
func BenchmarkAddressesHeld(b *testing.B) {
	const addresses = 10_000
	for b.Loop() {
		s, index := New(), Index(0)
		apply := func(cs ...Command) {
			index++
			for _, o := range s.ApplyEntries([]LogEntry{entry(b, s, index, cs...)})[0] {
				if o.Reject != Accepted {
					b.Fatal(o.Err())
				}
			}
		}
		apply(&InitGroup{Group: "g", Format: NewestFormat})
		id := func(i int) ServiceID { return ServiceID(fmt.Sprintf("team-%d/web-%d", i%100, i)) }
		for i := range addresses {
			apply(&PutService{Service: Service{ID: id(i), UID: fmt.Sprintf("6b1f0d0e-0000-4000-8000-%012d", i)}})
		}
		before := heap.InUse()
		for i := range addresses {
			address, route := netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)}), &SetRoute{}
			for j := range 4 {
				node := (i + j) % 100
				route.Hops = append(route.Hops, HopSpec{Node: NodeID(fmt.Sprintf("node-%d", node)), Address: netip.AddrFrom4([4]byte{198, 51, 100, byte(node)})})
			}
			route.Prefix = HostPrefix(address)
			apply(&Allocate{Address: address, Service: id(i), Pool: "public", Ports: []Port{{TCP, 80}, {TCP, 443}}}, route)
		}
		b.ReportMetric(float64(heap.InUse()-before)/addresses, "B/address")
		runtime.KeepAlive(s)
	}
}
