// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/internal/testkit"
)

// known tells what a leader knows its followers to hold: nil when all hold all that it has.
func (g *group) known(leader *member) error {
	last := leader.node.raft.LastIndex()
	for _, f := range g.followers() {
		if p, ok := leader.node.seen.seen(f.node.id, leader.node.raft.CurrentTerm()); !ok || !p.matched || p.lastLog < last {
			return errors.New(f.name + " is not known to hold what it holds")
		}
	}
	return nil
}

// slowStore takes its time for what it writes, as a disk does.
type slowStore struct{ *raft.InmemStore }

func (s *slowStore) StoreLogs(logs []*raft.Log) error {
	time.Sleep(time.Millisecond)
	return s.InmemStore.StoreLogs(logs)
}

// Followers that are up to date when somebody is elected get all entries of the term on a pipeline, and nothing else tells what they hold:
// new members get no vote, and who was rolled back is not noticed, as long as nobody looks at what they answer there.
func TestWhatFollowersHoldIsKnownInEveryTerm(t *testing.T) {
	inBubble(t, testWhatFollowersHoldIsKnownInEveryTerm)
}

func testWhatFollowersHoldIsKnownInEveryTerm(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.change = func(m *member, o *Options) { o.Stores.Log = &slowStore{m.disk.entries} }
	g.startAll()
	defer g.stopAll()
	mustPropose(t, g.leader(), put(0))
	for i := range 10 {
		leader := g.leader()
		if err := leader.node.Transfer(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		testkit.Until(t, "another one leads", func() bool { return g.leader() != leader })
		mustPropose(t, g.leader(), put(i))
		testkit.Eventually(t, "the followers are known to hold all", func() error { return g.known(g.leader()) })
	}
}

// A message of a term that is over takes away nothing of what was heard in a later one.
func TestFormerTermsAreForgottenForGood(t *testing.T) {
	o := newObserver(nil, "self", func() {})
	entry := &raft.AppendEntriesRequest{Term: 8, Entries: []*raft.Log{{Index: 5, Term: 8}}}
	before := o.asking("f", 8)
	if err := o.answered("f", before.at, before, entry, &raft.AppendEntriesResponse{Term: 8, Success: true}); err != nil {
		t.Error(err)
	}
	late := o.asking("f", 7)
	if err := o.answered("f", late.at, late, &raft.AppendEntriesRequest{Term: 7}, &raft.AppendEntriesResponse{Term: 7, Success: true}); err != nil {
		t.Error(err)
	}
	if p, ok := o.seen("f", 8); !ok || !p.matched || p.lastLog != 5 {
		t.Errorf("after a message of term 7 it is %+v, %v in term 8", p, ok)
	}
}

// hasty is a transport that has many messages on the way when the first of them is refused, as a follower refuses that comes back after it
// failed to write.
type hasty struct {
	Transport
	now atomic.Bool

	mu        sync.Mutex
	pipelines []raft.AppendPipeline
}

type hastyPipeline struct {
	raft.AppendPipeline
	of *hasty
}

func (h *hasty) AppendEntriesPipeline(id raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	p, err := h.Transport.AppendEntriesPipeline(id, to)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pipelines = append(h.pipelines, p)
	return &hastyPipeline{p, h}, nil
}

// letGo ends all pipelines: who waits on one may go.
func (h *hasty) letGo() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.pipelines {
		_ = p.Close()
	}
}

func (p *hastyPipeline) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	if len(args.Entries) > 0 && p.of.now.CompareAndSwap(true, false) {
		ahead := *args
		ahead.PrevLogEntry, ahead.Entries = args.PrevLogEntry+1000, nil // the follower has no such entry
		_, _ = p.AppendPipeline.AppendEntries(&ahead, new(raft.AppendEntriesResponse))
		for range 40 { // the transport below has room for 34
			again := *args
			_, _ = p.AppendPipeline.AppendEntries(&again, new(raft.AppendEntriesResponse))
		}
	}
	return p.AppendPipeline.AppendEntries(args, resp)
}

// A follower that refuses what it gets on a pipeline, with more on the way, gets entries again: nobody waits for the library to take answers,
// which takes none after a refusal. Otherwise it gets heartbeats alone for the rest of the term, and the leader never ends.
func TestARefusalWithMoreOnTheWayStopsNoReplication(t *testing.T) {
	inBubble(t, testARefusalWithMoreOnTheWayStopsNoReplication)
}

func testARefusalWithMoreOnTheWayStopsNoReplication(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	wires := map[string]*hasty{}
	g.change = func(m *member, o *Options) {
		wires[m.name] = &hasty{Transport: o.Transport}
		o.Transport = wires[m.name]
	}
	g.begin(0)
	leader := g.leader()
	defer wires[leader.name].letGo() // a leader that waits for a pipeline does not end
	for i := range 20 {
		wires[leader.name].now.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := leader.node.Propose(ctx, Bulk, put(i))
		cancel()
		if err != nil {
			t.Fatalf("after %d refusals: %v", i, err)
		}
	}
	testkit.Eventually(t, "the followers are known to hold all", func() error { return g.known(leader) })
	g.settle()
}

// Where a follower says its log ends is no acknowledgement: the library says so of a log that a snapshot cut, too, as long as it knows no better.
func TestWhereALogEndsIsNoAcknowledgement(t *testing.T) {
	o := newObserver(nil, "l", func() {})
	o.rolledBack = func(id raft.ServerID, why string) { t.Errorf("%s %s", id, why) }
	ask := &raft.AppendEntriesRequest{Term: 7, PrevLogEntry: 21, PrevLogTerm: 7}
	for _, ends := range []uint64{109, 109, 21} {
		if err := o.answered("f", time.Now(), o.asking("f", 7), ask, &raft.AppendEntriesResponse{Term: 7, Success: true, LastLog: ends}); err != nil {
			t.Error(err)
		}
	}
	if p, _ := o.seen("f", 7); !p.matched || p.lastLog != 21 {
		t.Errorf("it is taken to hold %+v", p)
	}
}
