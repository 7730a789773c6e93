// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	autopilot "github.com/hashicorp/raft-autopilot"

	"fairlead.io/fairlead/internal/testkit"
)

// A server that was away while another one got its vote knows nothing of that one, and what the others hold decides who may lead: it has to
// vote for the one that it does not know where that one holds the most.
func TestWhoWasAwayVotesForANewcomer(t *testing.T) { inBubble(t, testWhoWasAwayVotesForANewcomer) }

func testWhoWasAwayVotesForANewcomer(t *testing.T) {
	g := newGroup(t, "a", "b", "c", "d")
	g.change = only("a", "b", "c")
	for _, name := range []string{"a", "b", "c"} {
		g.start(name)
	}
	defer g.stopAll()
	mustPropose(t, g.leader(), put(1))
	g.settle()
	away := g.followers()[0]
	away.stop()
	g.start("d")
	testkit.Until(t, "d votes", func() bool { return slices.Contains(g.voters(), "d-1") })
	g.settle()
	newcomer := g.members["d"]
	if g.leader() == newcomer {
		if err := newcomer.node.Transfer(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		testkit.Until(t, "another one leads", func() bool { return g.leader() != newcomer })
	}
	leader, rest := g.leader(), g.followers()
	other := rest[slices.IndexFunc(rest, func(m *member) bool { return m != newcomer })]
	g.part(leader, other)
	testkit.Until(t, "the newcomer holds more than the other", func() bool {
		_, _ = leader.node.queue.put(Bulk, []Proposal{put(2)}, 0)
		return newcomer.node.raft.LastIndex() > other.node.raft.LastIndex()
	})
	g.setCut(leader.name, true)
	g.start(away.name)
	testkit.Until(t, "three of four elect one", func() bool {
		for _, m := range []*member{newcomer, other, away} {
			if m.node.LeadingTerm() > 0 {
				return true
			}
		}
		return false
	})
}

// Between a promotion's beginning and its end the server may have been removed; the library would make it a voter, which nobody is any more.
func TestWhoWasRemovedMeanwhileGetsNoVote(t *testing.T) {
	inBubble(t, testWhoWasRemovedMeanwhileGetsNoVote)
}

func testWhoWasRemovedMeanwhileGetsNoVote(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.tuning.Heartbeat = 2 * time.Second // a leader goes on for so long without a majority
	g.tuning.Stabilization = time.Hour   // who has no vote gets none by itself
	g.startAll()
	defer g.stopAll()
	leader, others := g.leader(), g.followers()
	mustPropose(t, leader, put(1))
	away, going := others[0], string(others[1].node.id)
	if err := leader.node.Demote(t.Context(), going, false); err != nil {
		t.Fatal(err)
	}
	g.part(leader, away)
	last := leader.node.raft.LastIndex()
	promoted, removed := make(chan error, 1), make(chan error, 1)
	go func() { promoted <- leader.node.Promote(t.Context(), going) }()
	testkit.Until(t, "the promotion asks the majority", func() bool { return leader.node.raft.LastIndex() > last })
	go func() { removed <- leader.node.Remove(t.Context(), going, true) }()
	testkit.Until(t, "the server goes", func() bool {
		return !inConfiguration(leader.node.raft.GetConfiguration().Configuration(), raft.ServerID(going))
	})
	g.mu.Lock()
	g.connect()
	g.mu.Unlock()
	if err := <-removed; err != nil {
		t.Fatal(err)
	}
	if err := <-promoted; !errors.Is(err, ErrUnknownServer) {
		t.Errorf("promote: want ErrUnknownServer, got %v", err)
	}
	if slices.Contains(g.voters(), going) {
		t.Errorf("%s is a voter again", going)
	}
}

// What autopilot knows of the configuration is some time old.
func TestWhoWasRemovedIsNotPromoted(t *testing.T) { inBubble(t, testWhoWasRemovedIsNotPromoted) }

func testWhoWasRemovedIsNotPromoted(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.tuning.Stabilization = time.Hour // autopilot promotes nobody by itself
	g.startAll()
	defer g.stopAll()
	leader, going := g.leader(), g.followers()[0].node.id
	mustPropose(t, leader, put(1))
	if err := leader.node.Demote(t.Context(), string(going), false); err != nil {
		t.Fatal(err)
	}
	known := &autopilot.State{Servers: map[raft.ServerID]*autopilot.ServerState{going: {
		Server: autopilot.Server{ID: going}, State: autopilot.RaftNonVoter,
		Health: autopilot.ServerHealth{Healthy: true, StableSince: time.Now().Add(-2 * time.Hour)},
	}}}
	p := leader.node.promoter(t.Context())
	promotions := func() []raft.ServerID {
		return p.CalculatePromotionsAndDemotions((*pilotView)(leader.node).AutopilotConfig(), known).Promotions
	}
	if got := promotions(); !slices.Equal(got, []raft.ServerID{going}) {
		t.Fatalf("promoted: %v, want %s", got, going)
	}
	if err := leader.node.Remove(t.Context(), string(going), false); err != nil {
		t.Fatal(err)
	}
	if got := promotions(); len(got) != 0 {
		t.Errorf("promoted: %v, and it was removed", got)
	}
}

// A change of a server that waits behind its removal does not make it a member again.
func TestWhoIsRemovedFirstStaysRemoved(t *testing.T) {
	for what, change := range map[string]func(n *Node, id raft.ServerID) error{
		"new address": func(n *Node, id raft.ServerID) error {
			return n.Admit(context.Background(), JoinRequest{ServerID: string(id), Address: "elsewhere", Last: 1})
		},
		"vote": func(n *Node, id raft.ServerID) error {
			return (&pilotRaft{n.raft, n, context.Background()}).AddVoter(id, "elsewhere", 0, 0).Error()
		},
	} {
		runInBubble(t, what, func(t *testing.T) {
			g := newGroup(t, "a", "b", "c")
			g.tuning.Heartbeat = 2 * time.Second // a leader goes on for so long without a majority
			g.tuning.Stabilization = time.Hour   // who has no vote gets none by itself
			g.startAll()
			defer g.stopAll()
			leader, others := g.leader(), g.followers()
			mustPropose(t, leader, put(1))
			away, going := others[0], others[1].node.id
			if err := leader.node.Demote(t.Context(), string(going), false); err != nil {
				t.Fatal(err)
			}
			g.part(leader, away)
			ended := make(chan error, 3)
			run := func(f func() error) { go func() { ended <- f() }() }
			run(leader.node.raft.AddNonvoter("x-1", "x", 0, 0).Error)
			testkit.Until(t, "a change is under way", func() bool {
				return inConfiguration(leader.node.raft.GetConfiguration().Configuration(), "x-1")
			})
			run(func() error { return leader.node.Remove(context.Background(), string(going), true) })
			// Nothing shows that it waits for the first, in the library. If it did not yet, the test would not fail, and show nothing.
			time.Sleep(50 * time.Millisecond)
			run(func() error { return change(leader.node, going) })
			time.Sleep(50 * time.Millisecond)
			g.mu.Lock()
			g.connect()
			g.mu.Unlock()
			for range 3 {
				<-ended
			}
			if inConfiguration(leader.node.raft.GetConfiguration().Configuration(), going) {
				t.Errorf("%s is a member again", going)
			}
		})
	}
}

// Who ends does not wait for a promotion that nothing comes of.
func TestAPromotionEndsWithTheTerm(t *testing.T) { inBubble(t, testAPromotionEndsWithTheTerm) }

func testAPromotionEndsWithTheTerm(t *testing.T) {
	g := newGroup(t, "a", "b")
	g.tuning.Heartbeat = 2 * time.Second // a leader goes on for so long without a majority
	g.startAll()
	defer g.stopAll()
	leader := g.leader()
	mustPropose(t, leader, put(1))
	if err := leader.node.Add(t.Context(), "c-1", "c"); err != nil {
		t.Fatal(err)
	}
	g.part(leader, g.followers()[0])
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	pilot := &pilotRaft{leader.node.raft, leader.node, ctx}
	go func() { done <- pilot.AddVoter("c-1", "c", 0, 0).Error() }()
	testkit.Until(t, "the promotion is under way", func() bool { return slices.Contains(g.voters(), "c-1") })
	cancel()
	select {
	case <-done:
	case <-time.After(20 * time.Second): // a busy machine is slow, and one that waits does so for ever
		t.Fatal("it is waited for still")
	}
}
