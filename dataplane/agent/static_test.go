// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// Fail static, K49: when no member answers any more, nothing is carried out, taken back or forgotten, and the agent goes on
// from there once one is back.
func TestNodeKeepsItsStateWhileNobodyAnswers(t *testing.T) {
	t.Parallel()
	w, g := grouptest.NewWorld(t), grouptest.NewGroup(t)
	g.Apply(t, &fsm.PutNode{ID: "n1"})
	routed(t, g, "192.0.2.1")
	m := newMember(t, w, "m1", g)
	n := startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{m.api.Address}})
	testkit.Until(t, "the address is acknowledged", acknowledged(g, "192.0.2.1/32"))
	m.api.Stop()
	testkit.Until(t, "nobody is followed", func() bool { return n.Status().Member == "" })
	count := func() int {
		n.kernel.mu.Lock()
		defer n.kernel.mu.Unlock()
		return n.kernel.applied
	}
	before, until := count(), time.Now().Add(2*time.Second)
	for time.Now().Before(until) {
		if count() != before || !n.has("192.0.2.1/32")() {
			t.Fatal("something was carried out")
		}
		time.Sleep(10 * time.Millisecond)
	}
	routed(t, g, "192.0.2.2")
	w.ServeAt(t, m.api.Address, "m1", m.mount)
	testkit.Until(t, "the next address is acknowledged", acknowledged(g, "192.0.2.2/32"))
}

// While acknowledgements are not taken, later ones take the place of earlier ones: the group is asked once, not once
// for each state.
func TestAcknowledgementsOfOneNodeAreCoalesced(t *testing.T) {
	t.Parallel()
	w, g := grouptest.NewWorld(t), grouptest.NewGroup(t)
	g.Apply(t, &fsm.PutNode{ID: "n1"})
	m := newMember(t, w, "m1", g)
	routed(t, g, "192.0.2.1")
	n := startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{m.api.Address}})
	testkit.Until(t, "the first address is acknowledged", acknowledged(g, "192.0.2.1/32"))
	g.Change(func(k *grouptest.Knobs) { k.Refuse = cluster.ErrBusy })
	const states = 30
	for i := range states {
		routed(t, g, fmt.Sprintf("192.0.2.%d", i+2))
		index := g.Read().Revision().Index
		testkit.Until(t, "the state is carried out", func() bool { return n.Status().Applied.Index >= index })
	}
	before, _ := g.Proposed()
	g.Change(func(k *grouptest.Knobs) { k.Refuse = nil })
	for i := range states {
		testkit.Until(t, "all are acknowledged", acknowledged(g, fmt.Sprintf("192.0.2.%d/32", i+2)))
	}
	after, _ := g.Proposed()
	marks := slices.DeleteFunc(after[len(before):], func(p fsm.Proposal) bool { _, is := p.Command.(*fsm.Acknowledge); return !is })
	if len(marks) == 0 || len(marks) > 3 {
		t.Errorf("%d acknowledgements for %d states", len(marks), states)
	}
}
