// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// outOfTouch waits until a member has not been in touch for several heartbeat timeouts.
func outOfTouch(t *testing.T, m *member) {
	t.Helper()
	testkit.Until(t, m.name+" is out of touch", func() bool {
		c := m.node.Contact()
		return !c.Leads && time.Since(c.At) > 5*m.group.tuning.Heartbeat
	})
}

func TestMemberThatIsCutOffIsOutOfTouchAndComesBack(t *testing.T) {
	for _, who := range []string{"leader", "follower"} {
		runInBubble(t, who, func(t *testing.T) {
			g := newGroup(t, "a", "b", "c")
			g.startAll()
			defer g.stopAll()
			mustPropose(t, g.leader(), put(1))
			m := g.leader()
			if who == "follower" {
				m = g.followers()[0]
			}
			testkit.Until(t, "in touch", func() bool { return time.Since(m.node.Contact().At) < g.tuning.Heartbeat })
			g.setCut(m.name, true)
			outOfTouch(t, m)
			mustPropose(t, g.leader(), put(2))
			g.setCut(m.name, false)
			testkit.Until(t, "in touch again and caught up", func() bool {
				c := m.node.Contact()
				return time.Since(c.At) < g.tuning.Heartbeat && c.CaughtUp() && has(m.state, 2)
			})
		})
	}
}

// A leader that steps down was in touch until then. Were it not, it would at once take its routes for outdated.
func TestLeaderThatStepsDownWasInTouch(t *testing.T) { inBubble(t, testLeaderThatStepsDownWasInTouch) }

func testLeaderThatStepsDownWasInTouch(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.startAll()
	defer g.stopAll()
	mustPropose(t, g.leader(), put(1))
	m := g.leader()
	testkit.Until(t, "in touch", func() bool { return time.Since(m.node.Contact().At) < g.tuning.Heartbeat })
	before := m.node.Contact().At
	g.setCut(m.name, true)
	testkit.Until(t, m.name+" steps down", func() bool { return !m.node.Contact().Leads })
	if at := m.node.Contact().At; at.Before(before) {
		t.Fatalf("in touch %v before it stepped down", before.Sub(at))
	}
}

// hashicorp/raft does not keep the commit index. A member that is alone after a restart must not claim to be current,
// though all entries are on its disk.
func TestMemberAloneAfterARestartKnowsNoCommitIndex(t *testing.T) {
	inBubble(t, testMemberAloneAfterARestartKnowsNoCommitIndex)
}

func testMemberAloneAfterARestartKnowsNoCommitIndex(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.startAll()
	for i := range 10 {
		mustPropose(t, g.leader(), put(i))
	}
	g.settle()
	g.stopAll()
	m := g.start("b")
	defer g.stopAll()
	for range 30 {
		if c := m.node.Contact(); c.Commit != 0 || c.CaughtUp() || !c.At.IsZero() {
			t.Fatalf("alone, it claims %+v", c)
		}
		awaitTick()
	}
	g.start("a")
	g.start("c")
	testkit.Until(t, "caught up", func() bool { return m.node.Contact().CaughtUp() && has(m.state, 9) })
}

// A member that was away learns how far the group is before it has what it missed; until then it is not caught up.
func TestCommitIndexIsTheLeadersNotTheLogs(t *testing.T) {
	inBubble(t, testCommitIndexIsTheLeadersNotTheLogs)
}

func testCommitIndexIsTheLeadersNotTheLogs(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.begin(0)
	m := g.followers()[0]
	m.stop()
	for i := range 300 {
		mustPropose(t, g.leader(), put(i))
	}
	g.start(m.name)
	deadline := time.Now().Add(patience)
	for looks := 1; !has(m.state, 299); looks++ {
		if c := m.node.Contact(); c.CaughtUp() && !has(m.state, 299) && c.Commit < 300 {
			t.Fatalf("it claims to be caught up at %+v", c)
		}
		if time.Now().After(deadline) {
			t.Fatal("it never caught up")
		}
		if looks%1000 == 0 { // what it does at one moment is looked at on the way; the next one comes only while nobody is busy
			time.Sleep(time.Millisecond)
		}
	}
}

// An idle group after an election: the newest committed entries carry no command, and still count as applied.
func TestEntriesWithoutCommandsCountAsApplied(t *testing.T) {
	inBubble(t, testEntriesWithoutCommandsCountAsApplied)
}

func testEntriesWithoutCommandsCountAsApplied(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.startAll()
	defer g.stopAll()
	mustPropose(t, g.leader(), put(1))
	g.leader().stop()
	g.leader()
	for _, m := range append(g.followers(), g.leader()) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := m.node.AwaitApplied(ctx, g.leader().node.Contact().Commit); err != nil {
			t.Fatalf("%s: %v, %+v", m.name, err, m.node.Contact())
		}
	}
}

func TestChangeIsToldToWhoeverTookTheChannelBefore(t *testing.T) {
	inBubble(t, testChangeIsToldToWhoeverTookTheChannelBefore)
}

func testChangeIsToldToWhoeverTookTheChannelBefore(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.startAll()
	defer g.stopAll()
	m := g.followers()[0]
	for i := range 20 {
		changed := m.node.Changed()
		if has(m.state, i) {
			t.Fatal("too early")
		}
		mustPropose(t, g.leader(), put(i))
		select {
		case <-changed:
		case <-time.After(patience):
			t.Fatal("nobody was told")
		}
	}
}

func TestVerifyLeaderAndBarrierAreForTheLeader(t *testing.T) {
	inBubble(t, testVerifyLeaderAndBarrierAreForTheLeader)
}

func testVerifyLeaderAndBarrierAreForTheLeader(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.startAll()
	defer g.stopAll()
	leader := g.leader()
	mustPropose(t, leader, put(1))
	if err := leader.node.VerifyLeader(context.Background()); err != nil {
		t.Fatal(err)
	}
	follower := g.followers()[0].node
	for what, err := range map[string]error{
		"verify": follower.VerifyLeader(context.Background()), "barrier": follower.Barrier(context.Background()),
	} {
		if !errors.Is(err, ErrNotLeader) {
			t.Errorf("%s: want ErrNotLeader, got %v", what, err)
		}
	}
	g.setCut(leader.name, true)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	testkit.Until(t, "a leader without a majority is told so", func() bool { return leader.node.VerifyLeader(ctx) != nil })
}

// All functions of a term have returned before those of the next begin, on the same member; and they see everything
// that was committed before.
func TestTermsOfOneMemberDoNotOverlap(t *testing.T) { inBubble(t, testTermsOfOneMemberDoNotOverlap) }

func testTermsOfOneMemberDoNotOverlap(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	var mu sync.Mutex
	running := map[string]int{}
	var terms, overlaps, blind atomic.Int64
	var newest atomic.Int64
	lead := func(m *member) LeaderFunc {
		return func(ctx context.Context, _ uint64) {
			terms.Add(1)
			mu.Lock()
			running[m.name]++
			if running[m.name] > 1 {
				overlaps.Add(1)
			}
			mu.Unlock()
			if i := newest.Load(); i > 0 && !has(m.state, int(i)) {
				blind.Add(1)
			}
			<-ctx.Done()
			time.Sleep(30 * time.Millisecond) // a function that takes its time to stop
			mu.Lock()
			running[m.name]--
			mu.Unlock()
		}
	}
	for _, name := range g.names() {
		m := g.members[name]
		if err := m.openWith(func(n *Node) { n.WhileLeader(lead(m)) }); err != nil {
			t.Fatal(err)
		}
	}
	defer g.stopAll()
	for i := 1; i <= 8; i++ {
		mustPropose(t, g.leader(), put(i))
		newest.Store(int64(i))
		before := terms.Load()
		testkit.Until(t, "the leadership moves", func() bool {
			_ = g.leader().node.Transfer(context.Background(), "") // it may have moved meanwhile
			return terms.Load() > before
		})
	}
	mustPropose(t, g.leader(), put(9))
	if terms.Load() < 4 || overlaps.Load() > 0 || blind.Load() > 0 {
		t.Fatalf("%d terms, %d overlapped, %d did not see what was committed", terms.Load(), overlaps.Load(), blind.Load())
	}
}

// The moment that a leader was last in touch with a majority, against counting: at that moment a majority had answered
// since, and at no later one.
func TestPropertyQuorumAtIsTheNewestMomentOfAMajority(t *testing.T) {
	now := time.Now()
	testkit.Check(t, func(t *rapid.T) {
		o := newObserver(nil, "self", func() {})
		var c raft.Configuration
		answers := map[raft.ServerID]time.Time{}
		for i := range rapid.IntRange(1, 7).Draw(t, "servers") {
			s := raft.Server{ID: raft.ServerID(fmt.Sprint("s", i))}
			if i == 0 {
				s.ID = "self"
			}
			if i > 0 && rapid.IntRange(0, 3).Draw(t, "suffrage") == 0 {
				s.Suffrage = raft.Nonvoter
			}
			c.Servers = append(c.Servers, s)
			at := now.Add(-time.Duration(rapid.IntRange(0, 5).Draw(t, "ago")) * time.Second)
			if i == 0 {
				at = now
			} else {
				o.peers[s.ID] = &peerSeen{term: 3, at: at}
			}
			if s.Suffrage == raft.Voter {
				answers[s.ID] = at
			}
		}
		since := func(moment time.Time) bool {
			n := 0
			for _, at := range answers {
				if !at.Before(moment) {
					n++
				}
			}
			return n > len(answers)/2
		}
		got := o.quorumAt(c, "self", 3, 0, now)
		if !since(got) || got.Before(now) && since(got.Add(time.Millisecond)) {
			t.Fatalf("%v ago, of %v", now.Sub(got), answers)
		}
	})
}
