// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// A record is never said to be complete as of a moment at which more was committed than it has; and once it has all that is known, it is
// complete as of the last message, as exactly as moments are kept.
func TestPropertyARecordIsAsFreshAsWhatItHas(t *testing.T) {
	began := time.Now()
	testkit.Check(t, func(t *rapid.T) {
		var f freshness
		// committed is the model: what was committed at each millisecond.
		committed := []uint64{0}
		at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
		applied, newest := uint64(0), 0
		for range rapid.IntRange(1, 600).Draw(t, "steps") {
			for range rapid.SampledFrom([]int{1, 5, 30, 400}).Draw(t, "ms") {
				committed = append(committed, committed[len(committed)-1])
			}
			now := len(committed) - 1
			committed[now] += uint64(rapid.SampledFrom([]int{0, 0, 1, 50}).Draw(t, "commits"))
			if rapid.Bool().Draw(t, "heard") { // of what was sent a while ago, at the earliest
				sent := max(0, now-rapid.IntRange(0, 500).Draw(t, "ago"))
				written := rapid.IntRange(sent, now).Draw(t, "written")
				f.learn(at(sent), committed[written])
				if committed[written] > 0 {
					newest = max(newest, sent)
				}
			}
			applied = rapid.Uint64Range(applied, committed[now]).Draw(t, "applied")
			if got := f.asOf(applied); !got.IsZero() {
				if ms := int(got.Sub(began).Milliseconds()); committed[ms] > applied {
					t.Fatalf("complete as of %d ms, when %d was committed; it has %d", ms, committed[ms], applied)
				}
			}
			if len(f.pending) > mostMoments {
				t.Fatalf("%d moments are kept", len(f.pending))
			}
		}
		if got := f.asOf(committed[len(committed)-1]); newest > 0 && got.Before(at(newest).Add(-grain)) {
			t.Fatalf("it has everything, and is complete as of %v, where %d ms is known of", got.Sub(began), newest)
		}
	})
}

// What says what is committed comes back as it went, whether or not there is an echo before it, and takes nothing from an echo without it.
func TestCommitIndexGoesBehindTheEcho(t *testing.T) {
	stamp := &raft.AppendEntriesResponse{RPCHeader: raft.RPCHeader{Addr: []byte("f")}}
	newEcho().stamp(stamp)
	e := newEcho()
	for _, known := range []bool{false, true} {
		if known {
			e.keep("f", stamp)
		}
		for _, commit := range []uint64{0, 1, 1 << 40} {
			back := e.back("f")
			if echo, got, says := cutCommit(withCommit(e.back("f"), commit)); string(echo) != string(back) || got != commit || !says {
				t.Errorf("%q and %d came back as %q and %d, said: %v", back, commit, echo, got, says)
			}
		}
	}
	for _, foreign := range []string{"", "10.0.0.1:7444", "\x00", "\x00too short", "\x00what is longer than either of the two may be"} {
		if echo, _, says := cutCommit([]byte(foreign)); string(echo) != foreign || says {
			t.Errorf("%q was read as %q", foreign, echo)
		}
	}
}

// Of a leader of a build before, which says nothing of what is committed, what is known counts.
func TestWhatALeaderBeforeCommittedIsWhatItsEntriesSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost()
		for range 3 {
			p.send()
			p.inbox[0].m.Leader, _, _ = cutCommit(p.inbox[0].m.Leader) //nolint:staticcheck // see echo
			p.inbox[0].m.LeaderCommitIndex = 7
			p.deliver(0)
			p.bring(0)
			time.Sleep(100 * time.Millisecond)
		}
		if at, commit := p.follower.last(); !p.follower.fresh.asOf(6).IsZero() || !p.follower.fresh.asOf(7).Equal(at) || commit != 7 {
			t.Errorf("in touch at %v, commit %d, complete as of %v", at, commit, p.follower.fresh.asOf(7))
		}
	})
}

// Who gets heartbeats and no entries is in touch, and knows that its record is no more of today: from the first entry on that it lacks, and
// not while there is nothing to lack. Once the entries arrive it is as fresh as the others.
func TestWhoGetsHeartbeatsAloneIsNotFresh(t *testing.T) {
	inBubble(t, testWhoGetsHeartbeatsAloneIsNotFresh)
}

func testWhoGetsHeartbeatsAloneIsNotFresh(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	wires := g.hang()
	g.begin(0)
	leader, deaf, good := g.leader(), g.followers()[0], g.followers()[1]
	fresh := func(m *member) bool { return time.Since(m.node.Contact().AsOf) < 2*g.tuning.Heartbeat }
	all := func() bool { return fresh(leader) && fresh(deaf) && fresh(good) }
	testkit.Until(t, "everybody is fresh", all)
	wires[leader.name].deafen(deaf.name, true)
	time.Sleep(5 * time.Second)
	if !all() {
		t.Errorf("nothing was committed meanwhile: leader %+v, deaf %+v, good %+v", leader.node.Contact(), deaf.node.Contact(), good.node.Contact())
	}
	mustPropose(t, leader, put(1))
	committed := time.Now()
	for time.Since(committed) < 5*time.Second {
		time.Sleep(20 * time.Millisecond)
		c := deaf.node.Contact()
		if c.AsOf.After(committed) {
			t.Fatalf("%s after it a record without what was committed is complete", c.AsOf.Sub(committed))
		}
		if !fresh(leader) || !fresh(good) {
			t.Fatalf("leader %+v, good %+v", leader.node.Contact(), good.node.Contact())
		}
	}
	c := deaf.node.Contact()
	if time.Since(c.At) > 2*g.tuning.Heartbeat || c.CaughtUp() {
		t.Errorf("it gets heartbeats, in each of which is what it lacks: %+v", c)
	}
	wires[leader.name].deafen(deaf.name, false)
	testkit.Until(t, "it is fresh again", func() bool { return fresh(deaf) && has(deaf.state, 1) })
}

// While a new leader has committed nothing of its own term it may not know of all that was: it says nothing of it.
func TestLeaderSpeaksOfNoCommitBeforeOneOfItsTerm(t *testing.T) {
	inBubble(t, testLeaderSpeaksOfNoCommitBeforeOneOfItsTerm)
}

func testLeaderSpeaksOfNoCommitBeforeOneOfItsTerm(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.begin(0)
	defer g.stopAll()
	m := g.leader()
	mustPropose(t, m, put(1))
	c := m.node.Contact()
	if got := m.node.seen.committedIn(c.Term); got < uint64(c.Commit) {
		t.Errorf("%d is committed, and it speaks of %d", c.Commit, got)
	}
	if got := m.node.seen.committedIn(c.Term + 1); got != 0 {
		t.Errorf("of a term that has not begun it speaks of %d", got)
	}
}
