// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"fairlead.io/fairlead/cluster/agents"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/dataplane/flows"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// counter counts what it is told to find.
type counter struct {
	mu    sync.Mutex
	times int
	to    []netip.Addr
	found flows.Count
	fails error
}

func (c *counter) Count(_ context.Context, to []netip.Addr) (flows.Count, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.times, c.to = c.times+1, to
	return c.found, c.fails
}

func (c *counter) set(f func(*counter)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c)
}

// Flows are counted while the node is being drained and at no other time, and every member hears of it.
func TestFlowsAreCountedWhileTheNodeIsDrained(t *testing.T) {
	w, g := grouptest.NewWorld(t), grouptest.NewGroup(t)
	m1, m2 := newMember(t, w, "m1", g), newMember(t, w, "m2", g)
	g.Apply(t, &fsm.PutNode{ID: "n1"}, &fsm.PutNode{ID: "n2"})
	routed(t, g, "203.0.113.1")
	c := &counter{found: flows.Count{Open: 7, Busy: 2}}
	seeds := []string{m1.api.Address, m2.api.Address}
	n := startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: seeds, flows: c})
	startNode(t, w, nodeOptions{name: "n2", boot: "b2", seeds: seeds})
	testkit.Until(t, "the node has its state", n.has("203.0.113.1/32"))
	heard := func(node fsm.NodeID, is func(*agents.Flows) bool) func() bool {
		return func() bool { return is(m1.service.Flows(node, time.Minute)) && is(m2.service.Flows(node, time.Minute)) }
	}
	g.Apply(t, &fsm.BeginDrain{Of: fsm.DrainNode, Name: "n2"})
	testkit.Until(t, "a node says that it counts none", heard("n2", func(f *agents.Flows) bool {
		return f != nil && f.Why == "this agent counts none"
	}))
	c.set(func(c *counter) {
		if c.times != 0 {
			t.Errorf("counted %d times while nobody drains the node", c.times)
		}
	})
	g.Apply(t, &fsm.BeginDrain{Of: fsm.DrainNode, Name: "n1"})
	testkit.Until(t, "members hear of the flows", heard("n1", func(f *agents.Flows) bool {
		return f != nil && f.Why == "" && f.Open == 7 && f.Busy == 2 && time.Since(f.At) < time.Minute
	}))
	c.set(func(c *counter) {
		if want := []netip.Addr{netip.MustParseAddr("203.0.113.1")}; !slices.Equal(c.to, want) {
			t.Errorf("counted to %v, want %v", c.to, want)
		}
		c.fails = errors.New(strings.Repeat("ü", 200))
	})
	testkit.Until(t, "members hear why they cannot be counted", heard("n1", func(f *agents.Flows) bool {
		return f != nil && strings.HasPrefix(f.Why, "ü") && utf8.ValidString(f.Why)
	}))
	if f := m1.service.Flows("n1", -1); f != nil {
		t.Errorf("of a node that is silent: %+v", f)
	}
	g.Apply(t, &fsm.EndDrain{Of: fsm.DrainNode, Name: "n1"})
	testkit.Until(t, "nothing is told any more", heard("n1", func(f *agents.Flows) bool { return f == nil }))
}
