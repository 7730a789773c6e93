// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
)

// Judge decides on the nodes for one term. It reads no clock: times are readings of the leader's monotonic clock,
// handed in, which never run back. One goroutine owns it.
type Judge struct {
	t         Timing
	began     time.Duration
	witnesses map[string]*witness // members, by name
	subjects  map[fsm.NodeID]*subject
	mass      mass
}

// witness is a member that answered, and its newest report.
type witness struct {
	name string
	at   time.Duration // when the report came
	Report
}

// Scene is what is to be judged.
type Scene struct {
	Now    time.Duration
	Voters []string // names of the members that vote
	Nodes  []*fsm.Node
	Holds  []*fsm.Hold
}

// Verdict is what shall be committed of a node.
type Verdict struct {
	Node     fsm.NodeID
	Boot     fsm.BootID
	Liveness fsm.Liveness
	// Sign is when the last sign of life came: for a node that fell silent, since when it is so.
	Sign time.Duration
	Why  string
}

// Decision is what came out, in order of node and member. It is complete: what an earlier one asked for and this
// one does not is not asked for any more.
type Decision struct {
	// About are the nodes that members shall say explicitly how they stand.
	About []fsm.NodeID
	// Hurry says that a verdict hangs on the next reports.
	Hurry bool
	// Probes are to be made now. Each ends with one call of Probed.
	Probes   []Probe
	Verdicts []Verdict
	// Held are nodes that would be down if not so many were silent at once, and Why says so.
	Held []fsm.NodeID
	Why  string
	// Holds puts the nodes held before an operator, and takes holds back that are over.
	Holds []fsm.Command
	// Problem says why nobody can be judged at present, empty if not so.
	Problem string
}

// NewJudge returns the judge of a term that began now: no silence before counts.
func NewJudge(t Timing, began time.Duration) *Judge {
	return &Judge{t: t.withDefaults(), began: began, witnesses: map[string]*witness{}, subjects: map[fsm.NodeID]*subject{}}
}

// Heard takes in the answer of a member. It counts as of now, since when the member gave it is not known: that
// makes silences shorter, never longer.
func (j *Judge) Heard(now time.Duration, member string, r Report) {
	j.witnesses[member] = &witness{name: member, at: now, Report: r}
}

// Decide judges all nodes.
func (j *Judge) Decide(s Scene) Decision {
	j.observe(s)
	var d Decision
	present := j.present(s)
	if quorum := len(s.Voters)/2 + 1; len(present) < quorum && slices.ContainsFunc(s.Nodes, judged) {
		d.Problem = fmt.Sprintf("%d of %d voting members answered within %s, %d must", len(present), len(s.Voters), j.t.Contact, quorum)
		for _, x := range j.subjects {
			x.heardSince = -1
		}
		return d
	}
	c := &court{j: j, now: s.Now, present: present, need: len(present)/2 + 1, d: &d}
	var dying []Verdict
	for _, n := range s.Nodes {
		if !judged(n) {
			continue
		}
		if v, down := c.hear(n); down {
			dying = append(dying, v)
		}
	}
	c.probe()
	released := j.mass.passed(s.Holds)
	held := j.mass.held(c, s.Nodes, released, dying)
	for _, v := range dying {
		if held == "" || released[v.Node] {
			d.Verdicts = append(d.Verdicts, v)
		} else {
			d.Held = append(d.Held, v.Node)
		}
	}
	d.Held, d.Why, d.About = sorted(d.Held), held, sorted(d.About)
	d.Holds = j.mass.settle(c, s.Holds)
	slices.SortStableFunc(d.Verdicts, func(a, b Verdict) int { return cmp.Compare(a.Node, b.Node) })
	return d
}

// observe takes note of what the record says by now: verdicts count once they are committed, whoever made them.
func (j *Judge) observe(s Scene) {
	seen := make(map[fsm.NodeID]bool, len(s.Nodes))
	for _, n := range s.Nodes {
		seen[n.ID] = judged(n)
		if x := j.subjects[n.ID]; x != nil {
			x.observe(s.Now, n, j.t)
		} else if judged(n) && n.Liveness != fsm.NodeUp {
			j.subject(n)
		}
	}
	maps.DeleteFunc(j.subjects, func(id fsm.NodeID, _ *subject) bool { return !seen[id] })
	maps.DeleteFunc(j.witnesses, func(name string, _ *witness) bool { return !slices.Contains(s.Voters, name) })
}

// present are the voters that answered a moment ago.
func (j *Judge) present(s Scene) []*witness {
	var out []*witness
	for _, name := range s.Voters {
		if w := j.witnesses[name]; w != nil && s.Now-w.at <= j.t.Contact {
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(a, b *witness) int { return cmp.Compare(a.name, b.name) })
	return out
}

// court is one sitting: the members present, and how many of them make a majority.
type court struct {
	j       *Judge
	now     time.Duration
	present []*witness
	need    int
	d       *Decision

	suspects []*suspicion
}

// suspicion is a node that a majority of those present has not heard of for a while.
type suspicion struct {
	node *fsm.Node
	*subject
	evidence
}

// hear judges one node. A verdict that it is down is given back, since how many there are matters.
func (c *court) hear(n *fsm.Node) (v Verdict, down bool) {
	if n.Liveness == fsm.NodeUp && !slices.ContainsFunc(c.present, func(w *witness) bool { return w.mentions(n.ID) }) {
		return v, false
	}
	x := c.j.subject(n)
	e := c.weigh(n, x)
	v = Verdict{Node: n.ID, Boot: n.Boot, Sign: e.sign}
	if n.Liveness != fsm.NodeUp {
		c.d.About = append(c.d.About, n.ID)
		if c.returned(n, x, e) {
			v.Liveness, v.Why = fsm.NodeUp, fmt.Sprintf("heard of by %d of %d members", e.hear, len(c.present))
			c.d.Verdicts = append(c.d.Verdicts, v)
			return v, false
		}
	}
	if n.Liveness == fsm.NodeDown || e.suspect < c.need {
		return v, false
	}
	c.suspects = append(c.suspects, &suspicion{n, x, e})
	c.d.About = append(c.d.About, n.ID)
	switch {
	case e.miss < c.need || e.unasked > 0:
		c.hurry(n, e)
	case c.now-e.sign < c.j.t.Silence: // somebody has had a sign of life
		if n.Liveness == fsm.NodeUp {
			v.Liveness, v.Why = fsm.AgentDown, fmt.Sprintf("not heard of by %d of %d members, but it answers", e.miss, len(c.present))
			c.d.Verdicts = append(c.d.Verdicts, v)
		}
	case e.vain < c.need:
		c.hurry(n, e)
	default:
		v.Liveness, v.Why = fsm.NodeDown, fmt.Sprintf("not heard of by %d of %d members, and probed in vain by %d", e.miss, len(c.present), e.vain)
		return v, true
	}
	return v, false
}

// hurry asks for reports in quick succession while they may bring a verdict, not for as long as a silence lasts.
func (c *court) hurry(n *fsm.Node, e evidence) {
	if n.Liveness == fsm.NodeUp && c.now-e.sign < 3*c.j.t.Silence {
		c.d.Hurry = true
	}
}

// evidence is how many of those present say what of a node.
type evidence struct {
	suspect, miss int // heard nothing for so long
	hear          int // heard of the boot that the record knows
	unasked       int // did not say, which means that they heard of it, or do not know it
	vain          int // probed it since the last sign, and got no answer
	// sign is when anybody last had a heartbeat or an answer of it, and when this leader began if that is later.
	sign time.Duration
}

func (w *witness) mentions(id fsm.NodeID) bool { _, ok := w.Silences[id]; return ok }

func (c *court) weigh(n *fsm.Node, x *subject) evidence {
	t := &c.j.t
	e := evidence{sign: max(c.j.began, x.answered)}
	for _, w := range c.present {
		said, listed := w.Silences[n.ID]
		if !listed {
			e.unasked++
			e.sign = max(e.sign, w.at)
			continue
		}
		if said.Boot != "" {
			e.sign = max(e.sign, w.at-said.For)
			if said.Boot == n.Boot && said.For < t.Suspect {
				e.hear++
			}
		}
		if w.blind() {
			continue
		}
		quiet := min(said.For, w.at-c.j.began)
		if quiet >= t.Suspect {
			e.suspect++
		}
		if quiet >= t.Silence {
			e.miss++
		}
	}
	for _, w := range c.present {
		if p := x.probes[w.name]; p != nil && !w.blind() && p.vain(c.now, e.sign, t) {
			e.vain++
		}
	}
	return e
}
