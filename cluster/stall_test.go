// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/store"
	"fairlead.io/fairlead/internal/testkit"
)

// hanging is a transport to members some of whom have stopped (SIGSTOP): what is sent to them arrives nowhere, and breaks off after a time.
// To others nothing arrives but heartbeats.
type hanging struct {
	Transport

	mu      sync.Mutex
	stopped map[raft.ServerAddress]bool
	deaf    map[raft.ServerAddress]bool
}

var errHanging = errors.New("i/o timeout")

func (h *hanging) stop(to string, stopped bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped[raft.ServerAddress(to)] = stopped
}

func (h *hanging) deafen(to string, deaf bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deaf[raft.ServerAddress(to)] = deaf
}

func (h *hanging) reach(to raft.ServerAddress, beat bool) error {
	h.mu.Lock()
	stopped := h.stopped[to] || h.deaf[to] && !beat
	h.mu.Unlock()
	if !stopped {
		return nil
	}
	time.Sleep(2 * time.Second) // as cluster/transport has it
	return errHanging
}

func (h *hanging) AppendEntries(id raft.ServerID, to raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	if err := h.reach(to, heartbeat(args)); err != nil {
		return err
	}
	return h.Transport.AppendEntries(id, to, args, resp)
}

func (h *hanging) TimeoutNow(id raft.ServerID, to raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	if err := h.reach(to, false); err != nil {
		return err
	}
	return h.Transport.TimeoutNow(id, to, args, resp)
}

func (h *hanging) AppendEntriesPipeline(id raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	p, err := h.Transport.AppendEntriesPipeline(id, to)
	return &hangingPipeline{p, h, to}, err
}

type hangingPipeline struct {
	raft.AppendPipeline
	of *hanging
	to raft.ServerAddress
}

func (p *hangingPipeline) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	if err := p.of.reach(p.to, false); err != nil {
		return nil, err
	}
	return p.AppendPipeline.AppendEntries(args, resp)
}

// hang gives every member such a transport.
func (g *group) hang() map[string]*hanging {
	wires := map[string]*hanging{}
	g.change = func(m *member, o *Options) {
		wires[m.name] = &hanging{Transport: o.Transport, stopped: map[raft.ServerAddress]bool{}, deaf: map[raft.ServerAddress]bool{}}
		o.Transport = wires[m.name]
	}
	return wires
}

// commits tells whether a member commits what it is asked to within a time.
func commits(t *testing.T, m *member, i int, within time.Duration) error {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	_, err := m.node.ProposeLocal(ctx, Bulk, put(i))
	return err
}

// twice hands the leadership to a member that hangs, two times. It gives what became of the second attempt.
func (g *group) twice(wire *hanging, leader, to *member, transfer func(leader, to *member) error) (second error) {
	wire.stop(to.name, true)
	testkit.Until(g.t, "it does not answer", func() bool { return !leader.node.answers(to.node.id) })
	mustPropose(g.t, leader, put(1)) // which it lacks
	if err := transfer(leader, to); err == nil {
		g.t.Fatal("a member that hangs took the leadership")
	}
	time.Sleep(time.Second)
	return transfer(leader, to)
}

// deposed has a leader lose its lease, and come back.
func (g *group) deposed(leader *member) {
	g.setCut(leader.name, true)
	testkit.Until(g.t, "the leader loses its lease", func() bool { return leader.node.LeadingTerm() == 0 })
	g.setCut(leader.name, false)
}

// leadsAgain has a member lead, if it can. It tells whether it does.
func (g *group) leadsAgain(m *member) bool {
	if m.node.raft.State() == raft.Leader {
		return true
	}
	if now := g.leader(); now != m {
		_ = now.node.Transfer(g.t.Context(), string(m.node.id))
	}
	return false
}

// unguarded is a transfer as it was before Transfer took care.
func unguarded(leader, to *member) error {
	return leader.node.raft.LeadershipTransferToServer(to.node.id, raft.ServerAddress(to.name)).Error()
}

// A leader asks a member that hangs to take over, and again; the second attempt must not keep it from committing for as long as its process
// lives (hashicorp/raft #696).
func TestATransferThatCameToNothingIsNotTriedAgainAtOnce(t *testing.T) {
	inBubble(t, testATransferThatCameToNothingIsNotTriedAgainAtOnce)
}

func testATransferThatCameToNothingIsNotTriedAgainAtOnce(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	wires := g.hang()
	g.begin(0)
	former := g.leader()
	second := g.twice(wires[former.name], former, g.followers()[0], func(leader, to *member) error {
		return leader.node.Transfer(t.Context(), string(to.node.id))
	})
	if !errors.Is(second, ErrNotReady) {
		t.Errorf("the second transfer: want ErrNotReady, got %v", second)
	}
	g.deposed(former)
	for name := range wires {
		wires[former.name].stop(name, false)
	}
	testkit.Until(t, "it leads again, and commits", func() bool { return g.leadsAgain(former) && commits(t, former, 2, time.Second) == nil })
	if isClosed(former.ended) {
		t.Errorf("it ended: %v", former.err)
	}
	g.settle()
}

// One transfer is under way at a time, and none goes to a server that did not take an earlier one and has taken nothing since.
func TestOneTransferIsUnderWayAtATime(t *testing.T) {
	var transfers transfers
	transfers.failed = map[raft.ServerID]time.Time{}
	end, err := transfers.begin("b", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := transfers.begin("c", time.Time{}); !errors.Is(err, ErrNotReady) {
		t.Errorf("while one is under way: want ErrNotReady, got %v", err)
	}
	end(errors.New("leadership transfer timeout"))
	for _, c := range []struct {
		took  time.Time
		ready bool
	}{{time.Time{}, false}, {time.Now().Add(-time.Hour), false}, {time.Now().Add(time.Hour), true}} {
		end, err := transfers.begin("b", c.took)
		if ready := err == nil; ready != c.ready {
			t.Errorf("after it took entries at %s: %v", c.took, err)
		}
		if end != nil {
			end(nil)
		}
	}
}

// Whatever the cause: a leader that can commit nothing gives up, and leads on no longer than others could need it.
func TestALeaderThatCommitsNothingEnds(t *testing.T) {
	runInBubble(t, "a term that does not open", func(t *testing.T) {
		g, former, over := endless(t)
		g.deposed(former)
		testkit.Until(t, "it was elected again, and ended", func() bool { return isClosed(former.ended) || g.leadsAgain(former) && false })
		over()
		wantStalled(t, g, former)
	})
	runInBubble(t, "an open term", func(t *testing.T) {
		g := newGroup(t, "a", "b", "c")
		wires := g.hang()
		g.begin(0)
		leader, others := g.leader(), g.followers()
		deafen := func(deaf bool) {
			for _, f := range others {
				wires[leader.name].deafen(f.name, deaf)
			}
		}
		deafen(true)
		asked := time.Now()
		if err := commits(t, leader, 1, time.Second); err == nil {
			t.Fatal("nobody could hear of it, and it was committed")
		}
		testkit.Until(t, "it ended", func() bool { return isClosed(leader.ended) })
		if took := time.Since(asked); took > leader.node.stallWithin()+3*time.Second { // with what it waits for to end
			t.Errorf("it led on for %s", took)
		}
		deafen(false)
		wantStalled(t, g, leader)
	})
	runInBubble(t, "a transfer that does not end", func(t *testing.T) {
		g, leader, over := endless(t)
		if err := commits(t, leader, 1, time.Second); !errors.Is(err, ErrNotLeader) {
			t.Fatalf("meanwhile: want ErrNotLeader, got %v", err)
		}
		testkit.Until(t, "it ended", func() bool { return isClosed(leader.ended) }) // though nobody asked again
		over()
		wantStalled(t, g, leader)
	})
}

// endlessTransport is one whose word that somebody is to lead is on its way until over is closed, if on.
type endlessTransport struct {
	Transport
	on   atomic.Bool
	over chan struct{}
}

func (e *endlessTransport) TimeoutNow(id raft.ServerID, to raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	if !e.on.Load() {
		return e.Transport.TimeoutNow(id, to, args, resp)
	}
	<-e.over
	return errHanging
}

// endless gives a group whose leader waits for such a word until end is called: its library refuses what is proposed, in later terms, too.
func endless(t *testing.T) (g *group, leader *member, end func()) {
	g = newGroup(t, "a", "b", "c")
	over, wires := make(chan struct{}), map[string]*endlessTransport{}
	g.change = func(m *member, o *Options) {
		wires[m.name] = &endlessTransport{Transport: o.Transport, over: over}
		o.Transport = wires[m.name]
	}
	g.startAll()
	end = sync.OnceFunc(func() { close(over) })
	t.Cleanup(func() {
		end()
		g.stopAll()
	})
	mustPropose(t, g.leader(), put(0))
	g.settle()
	leader = g.leader()
	wires[leader.name].on.Store(true)
	if err := unguarded(leader, g.followers()[0]); err == nil {
		t.Fatal("it came to something")
	}
	return g, leader, end
}

// A disk may neither write nor fail. Heartbeats do not wait for it, so that its member would lead on, or be taken for a good follower.
func TestAMemberWhoseDiskHangsEnds(t *testing.T) {
	for _, who := range []string{"leader", "follower"} {
		runInBubble(t, who, func(t *testing.T) {
			g := newGroup(t, "a", "b", "c")
			until := g.stand()
			g.begin(0)
			victim, cause := g.leader(), ErrStalled
			if who == "follower" {
				victim, cause = g.followers()[0], store.ErrHangs
			}
			well := make(chan struct{})
			defer close(well)
			until[victim.name].Store(&well)
			went := time.Now()
			_ = commits(t, g.leader(), 1, time.Second)
			testkit.Until(t, "it says that its disk hangs", func() bool { return victim.node.Contact().Writing > time.Second })
			testkit.Until(t, "it ended, though the write has not", func() bool { return isClosed(victim.ended) })
			if !errors.Is(victim.err, cause) || !strings.Contains(victim.err.Error(), "disk of "+victim.name) {
				t.Errorf("it ended with %v", victim.err)
			}
			mustPropose(t, g.leader(), put(2))
			if took := time.Since(went); took > 20*time.Second {
				t.Errorf("the others go on after %s", took)
			}
		})
	}
}

// Whoever hands the leadership over hears of it in time, also from a library that waits for a disk.
func TestATransferComesBackThoughTheDiskHangs(t *testing.T) {
	t.Parallel() // and in no bubble, which would wait for what the library leaves behind
	g := newGroup(t, "a", "b", "c")
	g.tuning.Heartbeat = 2 * time.Second // however busy the machine is
	until := g.stand()
	g.begin(0)
	leader := g.leader()
	to, well := g.followers()[0].node.id, make(chan struct{})
	defer close(well)
	until[leader.name].Store(&well)
	go func() { _ = commits(t, leader, 1, patience) }()
	testkit.Until(t, "the disk is asked", func() bool { return leader.node.guard.Waits() > 0 })
	if err := leader.node.Transfer(t.Context(), string(to)); !errors.Is(err, ErrUnknownOutcome) {
		t.Errorf("want ErrUnknownOutcome, got %v", err)
	}
}

// A leader that is asked for nothing, and one whose follower takes its time for a snapshot, leads on.
func TestALeaderThatIsAskedForNothingLeadsOn(t *testing.T) {
	inBubble(t, testALeaderThatIsAskedForNothingLeadsOn)
}

func testALeaderThatIsAskedForNothingLeadsOn(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	wires := g.hang()
	g.begin(0)
	leader := g.leader()
	for _, f := range g.followers() {
		wires[leader.name].deafen(f.name, true)
	}
	time.Sleep(3 * leader.node.stallWithin())
	_, end := leader.node.seen.sending.of(nil)
	_ = commits(t, leader, 1, 3*leader.node.stallWithin())
	if isClosed(leader.ended) || leader.node.LeadingTerm() == 0 {
		t.Errorf("it led no more: %v", leader.err)
	}
	end()
	for _, f := range g.followers() {
		wires[leader.name].deafen(f.name, false)
	}
	g.settle()
}

// wantStalled wants a member to have ended since it committed nothing, the others to go on, and the member to come back.
func wantStalled(t *testing.T, g *group, m *member) {
	t.Helper()
	if !errors.Is(m.err, ErrStalled) {
		t.Fatalf("it ended with %v", m.err)
	}
	m.stop()
	mustPropose(t, g.leader(), put(7))
	g.start(m.name)
	g.settle()
}

// quiet is a transport on whose pipelines nothing is sent but news, as on that of members.
type quiet struct{ Transport }

type quietPipeline struct {
	raft.AppendPipeline
	commit uint64 // that was told last
}

func (q *quiet) AppendEntriesPipeline(id raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	p, err := q.Transport.AppendEntriesPipeline(id, to)
	return &quietPipeline{AppendPipeline: p}, err
}

func (p *quietPipeline) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	if len(args.Entries) == 0 && args.LeaderCommitIndex == p.commit {
		return nil, nil
	}
	p.commit = args.LeaderCommitIndex
	return p.AppendPipeline.AppendEntries(args, resp)
}

// In a group that has nothing to do nobody takes entries; who is well again gets the leadership all the same.
func TestATransferIsTriedAgainInAnIdleGroup(t *testing.T) {
	inBubble(t, testATransferIsTriedAgainInAnIdleGroup)
}

func testATransferIsTriedAgainInAnIdleGroup(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.change = func(_ *member, o *Options) { o.Transport = &quiet{o.Transport} }
	g.begin(0)
	leader, to := g.leader(), g.followers()[0]
	time.Sleep(time.Second)
	end, err := leader.node.transfers.begin(to.node.id, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	end(errHanging)
	time.Sleep(time.Second)
	if err := leader.node.Transfer(t.Context(), string(to.node.id)); err != nil {
		t.Error(err)
	}
	g.settle()
}
