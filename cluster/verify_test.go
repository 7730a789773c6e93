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

// part takes the wire between two members away.
func (g *group) part(a, b *member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a.wire.Disconnect(raft.ServerAddress(b.name))
	b.wire.Disconnect(raft.ServerAddress(a.name))
}

// wantNoMajority asks a leader for as long as it takes itself for one.
func wantNoMajority(t *testing.T, leader *member) {
	t.Helper()
	time.Sleep(time.Millisecond) // in a bubble, answers of before are of this very moment
	asked := 0
	testkit.Until(t, "the leader notices", func() bool {
		if leader.node.LeadingTerm() == 0 {
			return true
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if asked++; leader.node.VerifyLeader(ctx) == nil {
			t.Fatalf("a majority followed it when it was asked the %d. time, and none could hear it", asked)
		}
		return false
	})
}

// Who has no vote is no part of a majority. The library counts it (v1.7.3, verifyLeader).
func TestNonVotersDoNotVerifyALeader(t *testing.T) { inBubble(t, testNonVotersDoNotVerifyALeader) }

func testNonVotersDoNotVerifyALeader(t *testing.T) {
	g := newGroup(t, "a", "b", "c", "d")
	g.tuning.Stabilization = time.Hour // it stays one
	g.startAll()
	defer g.stopAll()
	leader, others := g.leader(), g.followers()
	mustPropose(t, leader, put(1))
	if err := leader.node.Demote(t.Context(), string(others[0].node.id), false); err != nil {
		t.Fatal(err)
	}
	if err := leader.node.VerifyLeader(t.Context()); err != nil {
		t.Fatalf("all are there: %v", err)
	}
	for _, voter := range others[1:] {
		g.part(leader, voter)
	}
	wantNoMajority(t, leader)
}

// heldAnswers is a transport whose answers can be kept back.
type heldAnswers struct {
	Transport

	mu   sync.Mutex
	hold chan struct{} // until it is closed
	held map[raft.ServerID]bool
}

func (h *heldAnswers) AppendEntries(id raft.ServerID, to raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	err := h.Transport.AppendEntries(id, to, args, resp)
	h.mu.Lock()
	hold := h.hold
	if hold != nil && err == nil && heartbeat(args) {
		h.held[id] = true
	}
	h.mu.Unlock()
	if hold != nil {
		<-hold
	}
	return err
}

// What followers were sent before they followed somebody else, and is answered late, tells nothing of now: so it goes for a leader that was
// frozen. The library counts what is answered after the call, whenever it was sent.
func TestLateAnswersDoNotVerifyALeader(t *testing.T) { inBubble(t, testLateAnswersDoNotVerifyALeader) }

func testLateAnswersDoNotVerifyALeader(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	wires := map[*member]*heldAnswers{}
	g.change = func(m *member, o *Options) {
		wires[m] = &heldAnswers{Transport: o.Transport, held: map[raft.ServerID]bool{}}
		o.Transport = wires[m]
	}
	g.startAll()
	defer g.stopAll()
	leader, others := g.leader(), g.followers()
	mustPropose(t, leader, put(1))
	wire, hold := wires[leader], make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	defer release()
	wire.mu.Lock()
	wire.hold = hold
	wire.mu.Unlock()
	testkit.Until(t, "both answered", func() bool {
		wire.mu.Lock()
		defer wire.mu.Unlock()
		return len(wire.held) == 2
	})
	for _, voter := range others {
		g.part(leader, voter)
	}
	time.AfterFunc(20*time.Millisecond, release) // the library waits for answers by then
	wantNoMajority(t, leader)
}

// Who died a moment ago answered lately. The majority that a server leaves behind has to be there when it goes.
func TestNobodyIsExpelledForTheDead(t *testing.T) { inBubble(t, testNobodyIsExpelledForTheDead) }

func testNobodyIsExpelledForTheDead(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.tuning.Heartbeat = 500 * time.Millisecond // answers count for long
	g.begin(1)
	leader, others := g.leader(), g.followers()
	dead, forgetful := others[0], others[1].node.id
	deadID := dead.node.id
	testkit.Until(t, "all answer", func() bool { return leader.node.answers(deadID) && leader.node.answers(forgetful) })
	if err := leader.node.VerifyWithout(t.Context(), string(forgetful)); err != nil {
		t.Fatalf("all are there: %v", err)
	}
	dead.stop()
	time.Sleep(time.Millisecond) // in a bubble, its last answer is of this very moment
	if err := leader.node.removeOlder(forgetful); !errors.Is(err, ErrNotReady) {
		t.Errorf("want ErrNotReady, got %v", err)
	}
	if !inConfiguration(leader.node.raft.GetConfiguration().Configuration(), forgetful) {
		t.Errorf("%s was removed, and without it there is no majority", forgetful)
	}
	if err := leader.node.VerifyWithout(t.Context(), string(forgetful)); !errors.Is(err, ErrNotReady) {
		t.Errorf("want ErrNotReady, got %v", err)
	}
}

// The same goes for a vote that an operator takes, unless he knows better.
func TestNoVoteIsTakenForTheDead(t *testing.T) { inBubble(t, testNoVoteIsTakenForTheDead) }

func testNoVoteIsTakenForTheDead(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.tuning.Heartbeat = 500 * time.Millisecond // answers count for long
	g.begin(1)
	leader, others := g.leader().node, g.followers()
	id := others[1].node.id
	others[0].stop()
	time.Sleep(time.Millisecond) // in a bubble, its last answer is of this very moment
	for what, take := range map[string]func(context.Context, string, bool) error{"remove": leader.Remove, "demote": leader.Demote} {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		if err := take(ctx, string(id), false); !errors.Is(err, ErrNotReady) {
			t.Errorf("%s: want ErrNotReady, got %v", what, err)
		}
		cancel()
	}
	if s, err := leader.server(string(id)); err != nil || s.Suffrage != raft.Voter {
		t.Fatalf("%s votes no more, and without it there is no majority: %v", id, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // it is never committed
	defer cancel()
	if err := leader.Remove(ctx, string(id), true); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("forced: %v", err)
	}
	if inConfiguration(leader.raft.GetConfiguration().Configuration(), id) {
		t.Error("it was forced, and nothing was done")
	}
}

// standing is a log whose writer stands while it is told to.
type standing struct {
	*raft.InmemStore
	until *atomic.Pointer[chan struct{}]
}

func (s *standing) StoreLogs(logs []*raft.Log) error {
	if until := s.until.Load(); until != nil {
		<-*until
	}
	return s.InmemStore.StoreLogs(logs)
}

// stand gives every member such a log. It stands until the channel is closed that it is given, if any.
func (g *group) stand() map[string]*atomic.Pointer[chan struct{}] {
	until := map[string]*atomic.Pointer[chan struct{}]{}
	g.change = func(m *member, o *Options) {
		until[m.name] = new(atomic.Pointer[chan struct{}])
		o.Stores.Log = &standing{m.disk.entries, until[m.name]}
	}
	return until
}

// While the library's main goroutine stands, as when it writes to a slow disk, heartbeats go on, and so do questions whether this member
// leads: they end in time, and do not stop the heartbeats.
func TestALeaderIsVerifiedWhileItsLibraryStands(t *testing.T) {
	inBubble(t, testALeaderIsVerifiedWhileItsLibraryStands)
}

func testALeaderIsVerifiedWhileItsLibraryStands(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	until := g.stand()
	g.startAll()
	defer g.stopAll()
	leader := g.leader()
	mustPropose(t, leader, put(0))
	g.settle()
	term, well := leader.node.LeadingTerm(), make(chan struct{})
	until[leader.name].Store(&well)
	time.AfterFunc(4*time.Second, func() { // whatever becomes of the test
		until[leader.name].Store(nil)
		close(well)
	})
	proposed := make(chan error, 1)
	go func() { proposed <- commits(t, leader, 1, patience) }()
	for range 300 { // the library has room for 64 questions
		time.Sleep(10 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		began := time.Now()
		if err := leader.node.VerifyLeader(ctx); err != nil || time.Since(began) > time.Second {
			t.Fatalf("after %s: %v", time.Since(began), err)
		}
		cancel()
	}
	if err := <-proposed; err != nil || leader.node.LeadingTerm() != term {
		t.Errorf("it led term %d, now %d; what was proposed meanwhile: %v", term, leader.node.LeadingTerm(), err)
	}
}
