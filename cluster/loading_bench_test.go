// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/store/disk"
	"fairlead.io/fairlead/fsm"
)

// BenchmarkVotesDuringASnapshot is for how long a member gives nobody an answer that is sent a record of 1,000,000 bindings, and after how long it
// has that. It gives the medians of -benchtime 3x.
func BenchmarkVotesDuringASnapshot(b *testing.B) {
	state, index := bindings(b, 1_000_000)
	var silent, restored []time.Duration
	for b.Loop() {
		s, r := installed(b, state, index)
		silent, restored = append(silent, s), append(restored, r)
		b.Logf("no answer for %s; restored after %s", s, r)
	}
	slices.Sort(silent)
	slices.Sort(restored)
	b.ReportMetric(silent[len(silent)/2].Seconds(), "s-silent")
	b.ReportMetric(restored[len(restored)/2].Seconds(), "s-restored")
}

// bindings gives a snapshot of a record with so many bindings, and its index.
func bindings(b *testing.B, n int) ([]byte, uint64) {
	b.Helper()
	s := fsm.New()
	encode := encodeFor(s)
	index := Index(0)
	apply := func(ps []Proposal) {
		data, err := encode(ps)
		if err != nil {
			b.Fatal(err)
		}
		index++
		if err := refusedAny(s.ApplyEntries([]LogEntry{{Index: index, Term: 1, Data: data}})[0]); err != nil {
			b.Fatal(err)
		}
	}
	apply(openingFor(s)())
	const balancers, batch = 1000, 500
	name := func(i int) fsm.BalancerID {
		return fsm.BalancerID(fmt.Sprintf("LoadBalancer/default/lb-%04d", i%balancers))
	}
	var ps []Proposal
	for i := range balancers + n {
		var c fsm.Command = &fsm.PutLoadBalancer{ID: name(i), Driver: "drv", Info: []fsm.KV{{Key: "id", Value: string(name(i))}}, Synced: true}
		if i >= balancers {
			c = &fsm.PutBinding{
				ID: fsm.BindingID(fmt.Sprintf("binding-%07d", i)), Balancer: name(i), Owner: fmt.Sprintf("pod/default/web-%07d/6b1f0d0e-0000-4000-8000-%012d", i, i),
				Address: fmt.Sprintf("10.%d.%d.%d:8080", i>>16, i>>8&255, i&255), Parameters: []fsm.KV{{Key: "weight", Value: "10"}},
			}
		}
		if ps = append(ps, Proposal{Actor: "bench", Reason: "benchmark", Command: c}); len(ps) == batch || i == balancers+n-1 {
			apply(ps)
			ps = nil
		}
	}
	var out bytes.Buffer
	if err := s.Freeze().Write(&out); err != nil {
		b.Fatal(err)
	}
	return out.Bytes(), uint64(index)
}

// installed sends a snapshot to a member that is asked for its vote all the time, and gives the longest that it took to answer, and when it had
// restored the snapshot.
func installed(b *testing.B, state []byte, index uint64) (silent, restored time.Duration) {
	b.Helper()
	g := newGroup(b, "a")
	g.change = func(m *member, o *Options) {
		folder, err := disk.Open(filepath.Join(b.TempDir(), m.name), m.name)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = folder.Close(); _ = os.RemoveAll(folder.Path()) })
		o.Stores, o.Path, o.Instance, o.Bootstrap = folder.Stores(), folder.Path(), folder.Identity().Instance, nil
	}
	m := g.start("a")
	defer g.stopAll()
	header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("l-1"), Addr: []byte("l")}
	servers := raft.Configuration{Servers: []raft.Server{{ID: "l-1", Address: "l"}, {ID: m.node.id, Address: "a"}, {ID: "c-1", Address: "c"}}}
	_, leader := raft.NewInmemTransportWithTimeout("l", 10*time.Minute)
	leader.Connect("a", m.wire)
	began := time.Now()
	sent := make(chan error, 1)
	go func() {
		sent <- leader.InstallSnapshot(m.node.id, "a", addressed(&raft.InstallSnapshotRequest{
			RPCHeader: header, Term: 2, SnapshotVersion: 1, LastLogIndex: index, LastLogTerm: 1, Configuration: raft.EncodeConfiguration(servers), ConfigurationIndex: 1, Size: int64(len(state)),
		}, m.node.id), new(raft.InstallSnapshotResponse), bytes.NewReader(state))
	}()
	have := make(chan error, 1)
	go func() { have <- m.node.AwaitApplied(context.Background(), Index(index)) }()
	for {
		asked := time.Now()
		if err := leader.RequestPreVote(m.node.id, "a", addressed(&raft.RequestPreVoteRequest{RPCHeader: header, Term: 2}, m.node.id), new(raft.RequestPreVoteResponse)); err != nil {
			b.Fatal(err)
		}
		silent = max(silent, time.Since(asked))
		select {
		case err := <-have:
			if err == nil {
				err = <-sent
			}
			if err != nil {
				b.Fatal(err)
			}
			return silent, time.Since(began)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
