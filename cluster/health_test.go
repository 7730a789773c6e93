// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

func (m *member) peer(of *member) PeerStatus {
	for _, p := range m.node.Peers() {
		if p.ID == string(of.node.id) {
			return p
		}
	}
	return PeerStatus{}
}

// Who answers heartbeats and takes no entry is behind, whether the group has much to do or next to nothing; and who is a good voter beside it
// is not let go, whereas it is.
func TestWhoAnswersAndTakesNothingIsBehind(t *testing.T) {
	for name, every := range map[string]time.Duration{"a busy group": 20 * time.Millisecond, "an idle one": time.Hour} {
		runInBubble(t, name, func(t *testing.T) {
			g := newGroup(t, "a", "b", "c")
			wires := g.hang()
			g.begin(0)
			leader, deaf, good := g.leader(), g.followers()[0], g.followers()[1]
			wires[leader.name].deafen(deaf.name, true)
			defer wires[leader.name].deafen(deaf.name, false)
			began, asked := time.Now(), time.Time{}
			for time.Since(began) < 8*time.Second {
				if time.Since(asked) >= every {
					mustPropose(t, leader, put(1))
					asked = time.Now()
				}
				time.Sleep(20 * time.Millisecond)
				if p := leader.peer(good); p.Behind != "" || !p.Answer {
					t.Fatalf("the good one: %+v", p)
				}
			}
			if p := leader.peer(deaf); !p.Answer || !strings.HasPrefix(p.Behind, "is behind: it holds entry") {
				t.Errorf("who takes nothing: %+v", p)
			}
			if n := leader.node.behind(); n != 1 {
				t.Errorf("%d are said to be behind", n)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			if err := leader.node.Remove(ctx, string(good.node.id), false); !errors.Is(err, ErrNotReady) {
				t.Fatalf("the good one goes: want ErrNotReady, got %v", err)
			}
			mustPropose(t, leader, put(2))
			if err := leader.node.Remove(t.Context(), string(deaf.node.id), false); err != nil {
				t.Errorf("who takes nothing goes: %v", err)
			}
			mustPropose(t, leader, put(3))
		})
	}
}

// Who never took an entry of the term is behind as well, once the term is older than that takes; and who takes them again is not.
func TestWhoNeverAcknowledgedIsBehind(t *testing.T) {
	inBubble(t, testWhoNeverAcknowledgedIsBehind)
}

func testWhoNeverAcknowledgedIsBehind(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	wires := g.hang()
	g.begin(0)
	former, deaf := g.leader(), g.followers()[0]
	next := g.followers()[1]
	wires[next.name].deafen(deaf.name, true)
	if err := former.node.Transfer(t.Context(), string(next.node.id)); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "another one leads", func() bool { return g.leader() == next })
	if p := next.peer(deaf); p.Behind != "" {
		t.Errorf("at once: %+v", p)
	}
	testkit.Until(t, "it is behind", func() bool { return strings.Contains(next.peer(deaf).Behind, "no entry of term") })
	if _, err := next.node.successor(""); err != nil {
		t.Errorf("there is %s: %v", former.name, err)
	}
	wires[next.name].deafen(deaf.name, false)
	testkit.Until(t, "it has caught up", func() bool { return next.peer(deaf).Behind == "" })
	g.settle()
}

// What is due is what was committed just so long ago, as far as somebody looked, and nothing that was committed since.
func TestPropertyWhatIsDueWasCommittedSoLongAgo(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		type look struct {
			at    time.Time
			index uint64
		}
		var c commitMarks
		var looks []look
		now, index := time.Now(), uint64(1)
		for range rapid.IntRange(0, 60).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			index += uint64(rapid.IntRange(0, 5).Draw(t, "entries"))
			c.note(7, index, now)
			looks = append(looks, look{now, index})
		}
		now = now.Add(time.Duration(rapid.IntRange(0, 9000).Draw(t, "ms")) * time.Millisecond)
		want := uint64(0)
		for _, l := range looks {
			if !l.at.After(now.Add(-behindAfter)) {
				want = l.index
			}
		}
		if got := c.due(7, now); got != want {
			t.Fatalf("due is %d, want %d of %v at %v", got, want, looks, now)
		}
		if got := c.due(8, now); got != 0 {
			t.Fatalf("in another term %d is due", got)
		}
		if n := len(c.marks); n > 1 && c.marks[n-1].at.Sub(c.marks[1].at) >= behindAfter {
			t.Fatalf("%d marks are kept, the second of %s ago", n, now.Sub(c.marks[1].at))
		}
	})
}

// Whose answers do not show that it holds what has to be held counts for no majority.
func TestOnlyWhoHoldsItCounts(t *testing.T) {
	now := time.Now()
	o := newObserver(nil, "a", func() {})
	o.peers["b"] = &peerSeen{at: now, term: 3, matched: true, lastLog: 5}
	c := raft.Configuration{Servers: []raft.Server{{ID: "a", Suffrage: raft.Voter}, {ID: "b", Suffrage: raft.Voter}}}
	for holding, counts := range map[uint64]bool{0: true, 5: true, 6: false} {
		if at := o.quorumAt(c, "a", 3, holding, now); at.Equal(now) != counts {
			t.Errorf("of who holds 5, if %d has to be held: %v", holding, at)
		}
	}
}
