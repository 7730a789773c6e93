// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"cmp"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
)

// MaxProbes bounds the nodes that one request has a member probe.
const MaxProbes = 256

// Probe asks a member to probe nodes.
type Probe struct {
	Member string
	Nodes  []fsm.NodeID
	Asked  time.Duration
}

// probe is what came of one member's newest probe of a node, and whether another one is under way.
type probe struct {
	asked time.Duration // when the newest began
	open  bool          // it has not ended yet

	// Of the newest that ended, and of which the member said how.
	began, ended time.Duration
	answered     bool
}

// vain tells whether a probe counts as evidence against a node: it began after the last sign of life, and ended not
// long ago.
func (p *probe) vain(now, sign time.Duration, t *Timing) bool {
	return p.ended > 0 && !p.answered && p.began >= sign && now-p.ended <= 2*t.Reprobe
}

// Probed takes in how a probe ended. Nodes that answers does not name were not probed; nil says that none was.
func (j *Judge) Probed(now time.Duration, of Probe, answers map[fsm.NodeID]bool) {
	for _, id := range of.Nodes {
		x := j.subjects[id]
		if x == nil || x.probes[of.Member] == nil {
			continue // the node is gone meanwhile
		}
		p := x.probes[of.Member]
		p.open = false
		answered, probed := answers[id]
		if probed {
			p.began, p.ended, p.answered = of.Asked, now, answered
		}
		if answered {
			x.answered = now
		}
	}
}

// probe has all those present probe the suspects. A member that hears nobody is asked, too: an answer that it gets
// is one.
func (c *court) probe() {
	slices.SortStableFunc(c.suspects, func(a, b *suspicion) int { return cmp.Compare(a.node.ID, b.node.ID) })
	for _, w := range c.present {
		var due []*suspicion
		for _, s := range c.suspects {
			if p := s.probes[w.name]; p == nil || !p.open && c.now-p.asked >= c.pace(s) {
				due = append(due, s)
			}
		}
		// Whoever was not probed for longest comes first.
		slices.SortStableFunc(due, func(a, b *suspicion) int { return cmp.Compare(a.lastAsked(w.name), b.lastAsked(w.name)) })
		due = due[:min(len(due), MaxProbes)]
		if len(due) == 0 {
			continue
		}
		order := Probe{Member: w.name, Asked: c.now}
		for _, s := range due {
			order.Nodes = append(order.Nodes, s.node.ID)
			if s.probes[w.name] == nil {
				s.probes[w.name] = &probe{}
			}
			s.probes[w.name].asked, s.probes[w.name].open = c.now, true
		}
		order.Nodes = sorted(order.Nodes)
		c.d.Probes = append(c.d.Probes, order)
	}
}

func (x *subject) lastAsked(member string) time.Duration {
	if p := x.probes[member]; p != nil {
		return p.asked
	}
	return -1
}

// pace is how often a suspect is probed: often while that decides, seldom while it answers without its agent, or
// waits for an operator.
func (c *court) pace(s *suspicion) time.Duration {
	t := &c.j.t
	if c.settled(s) || c.now-s.sign > 3*t.Silence {
		return t.Reprobe
	}
	return t.Probe
}

// settled tells whether a suspect is known to answer without its agent: it is not asked often whether it still does.
func (c *court) settled(s *suspicion) bool {
	return s.node.Liveness == fsm.AgentDown && c.now-s.answered < c.j.t.Reprobe+c.j.t.Within
}
