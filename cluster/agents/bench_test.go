// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"sync"
	"testing"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/heap"
)

func benchGroup(b *testing.B, addresses int) *grouptest.Group {
	g := grouptest.NewGroup(b)
	g.Apply(b, &fsm.PutService{Service: fsm.Service{ID: "ns/web"}})
	var batch []fsm.Proposal
	for i := range addresses {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		id := fsm.ServiceID(fmt.Sprintf("ns/web%d", i))
		batch = append(batch, fsm.Proposal{Command: &fsm.PutService{Service: fsm.Service{ID: id}}},
			fsm.Proposal{Command: &fsm.Allocate{Address: a, Service: id, Ports: []fsm.Port{{Protocol: fsm.TCP, Number: 443}}}})
		if len(batch) == fsm.MaxItems || i == addresses-1 {
			if _, err := g.Commit(batch...); err != nil {
				b.Fatal(err)
			}
			batch = nil
		}
	}
	return g
}

// BenchmarkRefresh is what one change costs a member, by the number of addresses.
func BenchmarkRefresh(b *testing.B) {
	for _, n := range []int{5_000, 50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := benchGroup(b, n)
			board := newBoard(g)
			if _, err := board.refresh(); err != nil {
				b.Fatal(err)
			}
			extra := netip.MustParseAddr("192.0.2.1")
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				g.Apply(b, &fsm.Allocate{Address: extra, Service: "ns/web", Ports: []fsm.Port{{Protocol: fsm.TCP, Number: uint16(i)}}})
				b.StartTimer()
				if _, err := board.refresh(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// clusterOf is a group with Services as clusters have them: with a ClusterIP and four endpoints each, and every tenth with an address.
func clusterOf(b *testing.B, services int) *grouptest.Group {
	g := grouptest.NewGroup(b)
	var batch []fsm.Proposal
	for i := range services {
		batch = append(batch, fsm.Proposal{Command: &fsm.PutService{Service: usualService(i)}})
		if i%10 == 0 {
			a := netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)})
			batch = append(batch, fsm.Proposal{Command: &fsm.Allocate{Address: a, Service: usualService(i).ID, Ports: []fsm.Port{{Protocol: fsm.TCP, Number: 443}}}})
		}
		if len(batch) >= fsm.MaxItems-1 || i == services-1 {
			if _, err := g.Commit(batch...); err != nil {
				b.Fatal(err)
			}
			batch = nil
		}
	}
	return g
}

func usualService(i int) fsm.Service {
	s := fsm.Service{
		ID: fsm.ServiceID(fmt.Sprintf("team-%d/web-%d", i%100, i)), UID: fmt.Sprintf("6b1f0d0e-0000-4000-8000-%012d", i),
		ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{172, 16 + byte(i>>16), byte(i >> 8), byte(i)})},
		Frontends:  []fsm.Frontend{{Name: "https", Port: fsm.Port{Protocol: fsm.TCP, Number: 443}}},
	}
	for j := range 4 {
		s.Endpoints = append(s.Endpoints, fsm.Endpoint{
			Address: netip.AddrFrom4([4]byte{10, byte(i >> 14), byte(i >> 6), byte(i<<2 + j)}), Node: fsm.NodeID(fmt.Sprintf("node-%d", (i+j)%100)),
			Ready: true, Serving: true, Offer: &fsm.Offer{Ports: []fsm.EndpointPort{{Name: "https", Port: fsm.Port{Protocol: fsm.TCP, Number: 8443}}}},
		})
	}
	return s
}

// changeOf makes another endpoint of a Service ready, or not.
func changeOf(i int, ready bool) *fsm.PutService {
	s := usualService(i)
	s.Endpoints[0].Ready = ready
	return &fsm.PutService{Service: s}
}

func mustRefresh(b *testing.B, board *board) {
	if _, err := board.refresh(); err != nil {
		b.Fatal(err)
	}
}

func mustTellAll(b *testing.B, board *board) {
	if _, err := board.since(place{full: true, wants: tellsAll}, "n1"); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkHeld is what a member keeps for each Service to tell agents of it: once it has started, when each Service changed once, and when an
// agent came besides that needs everything.
func BenchmarkHeld(b *testing.B) {
	const services = 10_000
	change := func(b *testing.B, g *grouptest.Group, board *board) {
		for i := range services {
			g.Apply(b, changeOf(i, false))
			mustRefresh(b, board)
		}
	}
	for _, c := range []struct {
		name string
		then func(*testing.B, *grouptest.Group, *board)
	}{
		{"started", func(*testing.B, *grouptest.Group, *board) {}},
		{"changed", change},
		{"asked", func(b *testing.B, g *grouptest.Group, board *board) {
			change(b, g, board)
			mustTellAll(b, board)
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				g := clusterOf(b, services)
				board := newBoard(g)
				mustRefresh(b, board)
				c.then(b, g, board)
				with := heap.InUse()
				board.inside = newShelf(tellsAddresses, tellsAddressed, tellsAll) // the board itself is held by what lets go of wholes later
				b.ReportMetric(float64(with-heap.InUse())/services, "B/Service")
				runtime.KeepAlive(g)
			}
		})
	}
}

// BenchmarkServiceChange is what a change of one Service of many costs a member.
func BenchmarkServiceChange(b *testing.B) {
	g := clusterOf(b, 10_000)
	board := newBoard(g)
	mustRefresh(b, board)
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		g.Apply(b, changeOf(i%1000*10, i/1000%2 != 0))
		b.StartTimer()
		mustRefresh(b, board)
	}
}

// BenchmarkNodeFlips is what a step costs that a node which goes down, or comes back, makes of 2,000 of 50,000 Services.
func BenchmarkNodeFlips(b *testing.B) {
	g := clusterOf(b, 50_000)
	g.Apply(b, &fsm.PutNode{ID: "node-7"}, &fsm.RegisterBoot{Node: "node-7", Boot: "b"})
	board, to := newBoard(g), fsm.NodeDown
	mustRefresh(b, board)
	for b.Loop() {
		b.StopTimer()
		g.Apply(b, &fsm.SetLiveness{Node: "node-7", Boot: "b", Liveness: to})
		if to = fsm.NodeUp + fsm.NodeDown - to; board.limit.bytes == 0 {
			b.Fatal("no room for steps")
		}
		b.StartTimer()
		mustRefresh(b, board)
	}
}

// BenchmarkWhole is what it costs a member to encode everything, for those who need that.
func BenchmarkWhole(b *testing.B) {
	board := newBoard(clusterOf(b, 50_000))
	mustRefresh(b, board)
	for b.Loop() {
		board.inside.trays[tellsAll].whole = whole{}
		mustTellAll(b, board)
	}
}

// BenchmarkThousandAgents is the time from a commit until a thousand agents acknowledged it, without network,
// disk and Raft: what derivation, fan-out and coalescing cost.
func BenchmarkThousandAgents(b *testing.B) {
	const agents = 1000
	g := benchGroup(b, 5_000)
	for i := range agents {
		name := fsm.NodeID(fmt.Sprintf("n%d", i))
		g.Apply(b, &fsm.PutNode{ID: name}, &fsm.RegisterBoot{Node: name, Boot: "b"})
	}
	s, err := New(Options{Member: "m1", Record: g, Proposer: g, Contact: g.Contact, Barrier: g.Barrier, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) }) // ends with ctx
	acknowledged := make(chan fsm.Revision, agents)
	for i := range agents {
		st := &stream{s: s, node: fsm.NodeID(fmt.Sprintf("n%d", i)), boot: "b"}
		newest := newMailbox()
		st.send = func(m *fairleadv1.SyncResponse) error {
			if !m.GetMore() {
				newest.put(m.GetRevision())
			}
			return nil
		}
		running.Go(func() { _ = st.run(ctx, nil) })
		running.Go(func() {
			for r := range newest.all(ctx) {
				_, err := s.Acknowledge(ctx, &fairleadv1.AcknowledgeRequest{Node: string(st.node), Boot: "b", Revision: r})
				if err == nil {
					acknowledged <- desired.RevisionOf(r)
				}
			}
		})
	}
	await := func(want fsm.Revision) {
		for n := 0; n < agents; {
			if r := <-acknowledged; !r.Before(want) {
				n++
			}
		}
	}
	await(fsm.Revision{})
	b.ResetTimer()
	for i := range b.N {
		g.Apply(b, &fsm.Allocate{Address: netip.MustParseAddr("192.0.2.1"), Service: "ns/web", Ports: []fsm.Port{{Protocol: fsm.TCP, Number: uint16(i)}}})
		await(g.Read().Revision())
	}
	b.StopTimer()
	end()
	running.Wait()
}

// mailbox holds the newest revision that an agent was told.
type mailbox struct{ c chan *fairleadv1.Revision }

func newMailbox() mailbox { return mailbox{make(chan *fairleadv1.Revision, 1)} }

func (m mailbox) put(r *fairleadv1.Revision) {
	select {
	case <-m.c:
	default:
	}
	m.c <- r
}

func (m mailbox) all(ctx context.Context) func(func(*fairleadv1.Revision) bool) {
	return func(yield func(*fairleadv1.Revision) bool) {
		for {
			select {
			case r := <-m.c:
				if !yield(r) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}
