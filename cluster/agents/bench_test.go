// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"testing"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/fsm"
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

// BenchmarkThousandAgents is the time from a commit until a thousand agents acknowledged it, without network,
// disk and Raft: what derivation, fan-out and coalescing cost.
func BenchmarkThousandAgents(b *testing.B) {
	const agents = 1000
	g := benchGroup(b, 5_000)
	for i := range agents {
		name := fsm.NodeID(fmt.Sprintf("n%d", i))
		g.Apply(b, &fsm.PutNode{ID: name}, &fsm.RegisterBoot{Node: name, Boot: "b"})
	}
	s, err := New(Options{Member: "m1", Record: g, Proposer: g, Contact: g.Contact, Log: slog.New(slog.DiscardHandler)})
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
