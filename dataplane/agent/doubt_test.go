// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// pair is two members that say the same, and a node that follows one of them.
type pair struct {
	node            *node
	followed, other *odd
	address         string // of other
}

func newPair(t *testing.T, acknowledge func(context.Context) error) pair {
	t.Helper()
	w := grouptest.NewWorld(t)
	one := []string{"192.0.2.1"}
	members := map[string]*odd{}
	var seeds []string
	for range 2 {
		o := &odd{sync: func(*fairleadv1.SyncRequest) []*fairleadv1.SyncResponse {
			return []*fairleadv1.SyncResponse{step(t, "g1", fsm.Revision{Epoch: 1, Index: 10}, true, one, one)}
		}}
		o.acknowledge = acknowledge
		address := o.serve(t, w)
		members[address], seeds = o, append(seeds, address)
	}
	n := startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: seeds})
	testkit.Until(t, "a member is followed", func() bool { return n.Status().Member != "" })
	p := pair{node: n, followed: members[n.Status().Member]}
	for address, o := range members {
		if o != p.followed {
			p.other, p.address = o, address
		}
	}
	return p
}

func (p pair) moves(t *testing.T) {
	t.Helper()
	testkit.Until(t, "the other member is followed", func() bool { return p.node.Status().Member == p.address })
}

// What a member without a quorum is told reaches nobody, and what it tells may be old.
func TestAgentLeavesAMemberWithoutAQuorumForOneThatHasIt(t *testing.T) {
	t.Parallel()
	p := newPair(t, nil)
	p.followed.alone.Store(true)
	p.moves(t)
}

// Where no member has a quorum, as in an election, moving would be in vain.
func TestAgentStaysWhereNoMemberHasAQuorum(t *testing.T) {
	t.Parallel()
	p := newPair(t, nil)
	p.other.alone.Store(true)
	before := p.node.Status().Member
	testkit.Until(t, "the agent knows it of the other member", func() bool { return p.node.KnowsWithoutQuorum(p.address) })
	p.followed.alone.Store(true)
	testkit.Until(t, "and of the one that it follows", func() bool { return p.node.KnowsWithoutQuorum(before) })
	beaten := p.followed.beaten.Load()
	testkit.Until(t, "many more heartbeats are answered so", func() bool { return p.followed.beaten.Load() > beaten+5 })
	if now := p.node.Status().Member; now != before {
		t.Errorf("moved from %s to %s", before, now)
	}
	if n := p.other.asked() + p.followed.asked(); n != 1 {
		t.Errorf("%d streams were begun", n)
	}
}

// An acknowledgement that hangs at a member goes to the next one as soon as that is followed.
func TestAcknowledgementDoesNotHangAtAMemberThatWasLeft(t *testing.T) {
	t.Parallel()
	var hung atomic.Bool
	p := newPair(t, func(ctx context.Context) error {
		if !hung.CompareAndSwap(false, true) {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	})
	testkit.Until(t, "the acknowledgement hangs", hung.Load)
	p.followed.alone.Store(true)
	p.moves(t)
	testkit.Until(t, "the state is acknowledged", func() bool { return p.node.Status().Acknowledged.Index == 10 })
}

// Which member is asked first when an agent starts is chance: nothing is known of any. It may be the one out of reach.
func TestAgentThatStartsDoesNotWaitForAMemberOutOfReach(t *testing.T) {
	t.Parallel()
	w := grouptest.NewWorld(t)
	one := []string{"192.0.2.1"}
	says := func(*fairleadv1.SyncRequest) []*fairleadv1.SyncResponse {
		return []*fairleadv1.SyncResponse{step(t, "g1", fsm.Revision{Epoch: 1, Index: 10}, true, one, one)}
	}
	mute, other := &odd{sync: says, mute: true}, &odd{sync: says}
	seeds := []string{mute.serve(t, w), other.serve(t, w)}
	for round := 0; mute.asked() == 0; round++ {
		if round == 100 {
			t.Fatal("the mute member was never asked")
		}
		n := startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: seeds, tuning: func(t *agent.Tuning) { t.Silence = time.Second }})
		testkit.Until(t, "the other member is followed", func() bool { return n.Status().Member == seeds[1] })
	}
}

// Pauses grow long while nobody serves. Waiting the last one out would keep a node behind although the group is well.
func TestAgentAsksAgainAtOnceWhenAMemberIsBackInTouch(t *testing.T) {
	t.Parallel()
	w := grouptest.NewWorld(t)
	one := []string{"192.0.2.1"}
	o := &odd{sync: func(*fairleadv1.SyncRequest) []*fairleadv1.SyncResponse {
		return []*fairleadv1.SyncResponse{step(t, "g1", fsm.Revision{Epoch: 1, Index: 10}, true, one, one)}
	}}
	o.alone.Store(true)
	n := startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{o.serve(t, w)}, tuning: once})
	testkit.Until(t, "the member does not serve the agent, and says why", func() bool { return n.Left() == 1 && o.beaten.Load() > 0 })
	o.alone.Store(false)
	testkit.Until(t, "the member is followed", func() bool { return n.Status().Member != "" })
}

// That a member is in touch says nothing about why it does not serve: it is asked once more, and then with pauses.
func TestAgentPausesWhereAMemberInTouchDoesNotServe(t *testing.T) {
	t.Parallel()
	w := grouptest.NewWorld(t)
	o := &odd{sync: func(*fairleadv1.SyncRequest) []*fairleadv1.SyncResponse { return nil }}
	startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{o.serve(t, w)}, tuning: func(t *agent.Tuning) {
		once(t)
		t.FirstStep = time.Millisecond
	}})
	testkit.Until(t, "many heartbeats are answered", func() bool { return o.beaten.Load() > 10 })
	if n := o.asked(); n > 2 {
		t.Errorf("asked %d times", n)
	}
}
