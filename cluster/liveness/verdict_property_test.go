// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// The account of what may be committed keeps to what is true on the stage, not to what the judge was told. What a
// member got after its last answer nobody can know yet, hence the margin.
const (
	silence  = 650 * ms
	margin   = 350 * ms // how old the answer of a member that counts may be
	together = 10 * time.Second
)

// account checks verdicts against the truth.
type account struct {
	t *rapid.T
	*stage
	away map[string]time.Duration // when a member answered the leader last, as far as it could
	// adopted are nodes that were down when the present leader began: a flap is counted for that.
	adopted map[fsm.NodeID]bool
	// forgotten are heartbeats that members had before they were restarted: the leader may have been told of them.
	forgotten map[beatsOf][]beatAt
}

// beatsOf names the heartbeats that a member has of a node.
type beatsOf struct {
	member string
	node   fsm.NodeID
}

// reachable are the members that answer the leader, or did so a moment ago.
func (a *account) reachable(within time.Duration) (out []*folk) {
	for _, f := range a.folk {
		if f.answers || a.now-a.away[f.name] <= within {
			out = append(out, f)
		}
	}
	return out
}

func (a *account) fail(format string, args ...any) {
	a.t.Helper()
	a.t.Fatalf("at %s: %s; verdicts:\n%s", a.now-time.Hour, fmt.Sprintf(format, args...), strings.Join(a.log, "\n"))
}

func (a *account) check(m *machine, v Verdict) {
	a.t.Helper()
	if len(a.reachable(margin+2*tick)) < len(a.folk)/2+1 {
		a.fail("%s is judged without a quorum", v.Node)
	}
	switch v.Liveness {
	case fsm.NodeUp:
		a.checkUp(m, v)
	case fsm.AgentDown:
		a.checkSilent(m, v)
	case fsm.NodeDown:
		a.checkSilent(m, v)
		a.checkNoSign(m, v)
		a.checkMass(m, v)
	}
}

// checkSilent: a majority of those that the leader can reach had no heartbeat, and the leader has led long enough.
func (a *account) checkSilent(m *machine, v Verdict) {
	if a.now-a.began < silence {
		a.fail("%s is %s %s after the leader began", v.Node, v.Liveness, a.now-a.began)
	}
	silent := 0
	for _, f := range a.folk {
		if a.now-f.lastBeat(v.Node, a.now-margin).at >= silence {
			silent++
		}
	}
	if need := len(a.reachable(0))/2 + 1; silent < need {
		a.fail("%s is %s, and only %d had no heartbeat", v.Node, v.Liveness, silent)
	}
}

// checkNoSign: nobody that the leader reached had a heartbeat, no probe was answered, and a majority tried.
func (a *account) checkNoSign(m *machine, v Verdict) {
	for _, f := range a.reachable(0) {
		if got := f.lastBeat(v.Node, a.now-margin).at; a.now-got < silence && a.now-f.listening > silence {
			a.fail("%s is down, and %s had a heartbeat %s ago", v.Node, f.name, a.now-got)
		}
	}
	if m.answered >= 0 && a.now-m.answered < silence {
		a.fail("%s is down, and answered a probe %s ago", v.Node, a.now-m.answered)
	}
	vain := 0
	for _, at := range m.vain {
		if at > m.answered && a.now-at <= time.Second {
			vain++
		}
	}
	if quorum := len(a.folk)/2 + 1; vain < quorum/2+1 {
		a.fail("%s is down after %d probes in vain", v.Node, vain)
	}
}

// checkMass: not more than two, or half of those that were up, go together. A node counts once nobody at all had a
// sign of it for so long that everybody must have noticed.
func (a *account) checkMass(m *machine, v Verdict) {
	released := func(id fsm.NodeID) bool {
		return slices.ContainsFunc(a.holds, func(h *fsm.Hold) bool { return h.Released && slices.Contains(h.Subjects, string(id)) })
	}
	silent, all := 0, 0
	for _, o := range a.nodes {
		switch {
		case released(v.Node):
			return
		case released(o.record.ID):
		case o.record.Liveness == fsm.NodeDown && len(o.downs) > 0 && a.now-o.downs[len(o.downs)-1] <= together:
			silent++
			all++
		case o.record.Liveness == fsm.NodeDown:
		default:
			all++
			if a.now-max(a.sign(o), a.began) >= silence+margin {
				silent++
			}
		}
	}
	if silent > 2 && 2*silent > all {
		a.fail("%s is down, the %dth of %d together", v.Node, silent, all)
	}
}

// sign is when anybody last had a sign of a node.
func (a *account) sign(m *machine) time.Duration {
	return max(m.answered, m.heard)
}

// checkUp: a majority hears the boot that the record knows, and a node that was down waited for as long as it must.
func (a *account) checkUp(m *machine, v Verdict) {
	hear := 0
	for _, f := range a.folk {
		if a.heard(f, v.Node, m.record.Boot) {
			hear++
		}
	}
	if hear < (len(a.folk)/2+1)/2+1 {
		a.fail("%s is up, and %d hear it", v.Node, hear)
	}
	if m.record.Liveness != fsm.NodeDown {
		return
	}
	since, hold := a.began, time.Second
	if n := len(m.downs); n > 0 {
		since, hold = m.downs[n-1], min(time.Second<<(n-1), time.Minute)
		if a.adopted[v.Node] {
			hold = min(time.Second<<n, time.Minute)
		}
	}
	if a.now-since < hold {
		a.fail("%s is up %s after it went down; %s must pass", v.Node, a.now-since, hold)
	}
	steady := 0
	for _, f := range a.folk {
		if a.longestGap(f, v.Node, a.now-hold) < 400*ms+margin {
			steady++
		}
	}
	if steady < (len(a.folk)/2+1)/2+1 {
		a.fail("%s is up, and %d heard it without a break for %s", v.Node, steady, hold)
	}
}

// heard tells whether a member heard a boot of a node, as far as its answers may show that still: the node may have booted since.
func (a *account) heard(f *folk, id fsm.NodeID, boot fsm.BootID) bool {
	for at := a.now; at >= a.now-margin; at -= tick {
		if b := f.lastBeat(id, at); at-b.at < 400*ms && b.boot == boot {
			return true
		}
	}
	return false
}

// longestGap is the longest time that a member did not hear of a node since a moment.
func (a *account) longestGap(f *folk, id fsm.NodeID, since time.Duration) (longest time.Duration) {
	last := since
	for _, b := range slices.Concat(a.forgotten[beatsOf{f.name, id}], f.beats[id]) {
		if b.at > last {
			longest, last = max(longest, b.at-last), b.at
		}
	}
	return max(longest, a.now-last)
}

// Whatever happens to nodes, agents, lines, members and leaders: no verdict is against the truth.
func TestPropertyVerdictsAreTrue(t *testing.T) {
	downs, ups, agents, holds := 0, 0, 0, 0
	missing := func() string {
		if !testing.Short() && (downs == 0 || ups == 0 || agents == 0 || holds == 0) {
			return "the stage shows too little"
		}
		return ""
	}
	testkit.CheckUntil(t, missing, func(t *rapid.T) {
		s := newStage(
			rapid.SampledFrom([]int{1, 3, 3, 5}).Draw(t, "members"), rapid.SampledFrom([]int{1, 2, 3, 4, 7, 7}).Draw(t, "nodes"),
			func(int) time.Duration { return time.Duration(rapid.IntRange(0, 39).Draw(t, "phase")) * tick },
		)
		s.rtt = rapid.SampledFrom([]time.Duration{0, 10 * ms, 40 * ms}).Draw(t, "rtt")
		a := &account{t: t, stage: s, away: map[string]time.Duration{}, forgotten: map[beatsOf][]beatAt{}}
		s.onAny = func(m *machine, v Verdict) {
			a.check(m, v)
			switch v.Liveness {
			case fsm.NodeDown:
				downs++
			case fsm.AgentDown:
				agents++
			default:
				ups++
			}
		}
		held := false
		s.run(time.Second)
		if rapid.Bool().Draw(t, "together") { // or too few draws hold anything
			a.happen("all-die")
		}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			a.happen(rapid.SampledFrom(happenings).Draw(t, "what"))
			s.run(time.Duration(rapid.SampledFrom([]int{0, 50, 200, 500, 800, 2000, 12_000}).Draw(t, "wait")) * ms)
			held = held || len(s.holds) > 0
		}
		if held {
			holds++
		}
		// Once all is well, all are up again.
		for _, f := range s.folk {
			f.answers, f.deafTo = true, map[fsm.NodeID]bool{}
		}
		for _, m := range s.nodes {
			m.alive, m.agent, m.record.Boot = true, true, m.boot
		}
		s.run(65 * time.Second)
		for _, m := range s.nodes {
			if m.record.Liveness != fsm.NodeUp {
				a.fail("%s is %s, a minute after all is well", m.record.ID, m.record.Liveness)
			}
		}
		if len(s.holds) > 0 || s.last.Hurry {
			a.fail("held for ever: %v, hurry %v", s.holds, s.last.Hurry)
		}
	})
	t.Logf("%d nodes and %d agents found down, %d up again, holds in %d draws", downs, agents, ups, holds)
}

var happenings = []string{
	"die", "die", "revive", "boot", "agent", "agent", "line", "deaf", "away", "restart", "lead", "all-die", "all-die", "register", "release",
}

// happen is one thing that happens.
func (a *account) happen(what string) {
	t := a.t
	m := rapid.SampledFrom(a.nodes).Draw(t, "node")
	f := rapid.SampledFrom(a.folk).Draw(t, "member")
	switch what {
	case "die":
		m.alive = false
	case "revive":
		m.alive, m.agent = true, true
	case "boot":
		m.alive, m.agent, m.boot = true, true, m.boot+"'"
	case "agent":
		m.agent = !m.agent
	case "line":
		f.deafTo[m.record.ID] = !f.deafTo[m.record.ID]
	case "deaf":
		deaf := rapid.Bool().Draw(t, "deaf")
		for _, n := range a.nodes {
			f.deafTo[n.record.ID] = deaf
		}
	case "away":
		if f.answers {
			a.away[f.name] = a.now
		}
		f.answers = !f.answers
	case "restart":
		for id, beats := range f.beats {
			a.forgotten[beatsOf{f.name, id}] = append(a.forgotten[beatsOf{f.name, id}], beats...)
		}
		f.beats, f.listening = map[fsm.NodeID][]beatAt{}, a.now
	case "lead":
		a.lead()
		a.adopted = map[fsm.NodeID]bool{}
		for _, n := range a.nodes {
			a.adopted[n.record.ID] = n.record.Liveness == fsm.NodeDown
		}
	case "all-die":
		for _, n := range a.nodes[:rapid.OneOf(rapid.Just(len(a.nodes)), rapid.IntRange(1, len(a.nodes))).Draw(t, "how-many")] {
			n.alive = false
		}
		a.run(time.Duration(rapid.SampledFrom([]int{0, 800, 800}).Draw(t, "stay-dead")) * ms) // or what follows may wake them before anybody sees it
	case "register":
		m.record.Boot = m.boot
	case "release":
		for i := range a.holds {
			a.holds[i].Released = true
		}
	}
}

// Subjects of a hold are in order, and the same set has the same name.
func TestPropertyHoldNamesItsSet(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfDistinct(rapid.SampledFrom([]fsm.NodeID{"n1", "n2", "n3", "n10"}), func(id fsm.NodeID) fsm.NodeID { return id })
		one, other := sorted(ids.Draw(t, "one")), sorted(ids.Draw(t, "other"))
		if (holdID(one) == holdID(other)) != slices.Equal(one, other) {
			t.Fatalf("%v and %v are called %s and %s", one, other, holdID(one), holdID(other))
		}
	})
}
