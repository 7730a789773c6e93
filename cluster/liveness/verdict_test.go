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

const (
	ms = time.Millisecond
	// promised is within what time of its last heartbeat a dead node is found to be (design §6, §10).
	promised = 750 * ms
)

// steady is a group that has been watching for a while, whose nodes beat at different times.
func steady(members, nodes int) *stage {
	s := newStage(members, nodes, func(i int) time.Duration { return time.Duration(i) * 35 * ms })
	s.run(2 * time.Second)
	return s
}

// until runs until a condition holds and gives how long that took.
func (s *stage) until(t interface {
	Helper()
	Fatalf(string, ...any)
}, what string, within time.Duration, holds func() bool) time.Duration {
	t.Helper()
	begin := s.now
	for !holds() {
		if s.now-begin > within {
			t.Fatalf("no %s within %s; verdicts:\n%s", what, within, strings.Join(s.log, "\n"))
		}
		s.run(tick)
	}
	return s.now - begin
}

func (m *machine) is(l fsm.Liveness) func() bool {
	return func() bool { return m.record.Liveness == l }
}

func TestSteadyNodesAreNeitherJudgedNorProbed(t *testing.T) {
	s := steady(3, 5)
	for range 2000 {
		s.run(tick)
		if len(s.log) > 0 || len(s.last.Probes) > 0 || len(s.last.About) > 0 || s.last.Hurry {
			t.Fatalf("of nodes that beat: %+v %v", s.last, s.log)
		}
	}
}

// design §6 and the target of this part: a node that dies is found down within 750 ms of its last heartbeat, whatever
// the phase of its heartbeats to the questions of the leader.
func TestPropertyDeadNodeIsDownInTime(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		members := rapid.SampledFrom([]int{1, 3, 5}).Draw(t, "members")
		nodes := rapid.IntRange(2, 6).Draw(t, "nodes")
		s := newStage(members, nodes, func(i int) time.Duration { return time.Duration(rapid.IntRange(0, 39).Draw(t, "phase")) * tick })
		s.rtt = rapid.SampledFrom([]time.Duration{0, 10 * ms, 30 * ms}).Draw(t, "rtt")
		s.run(time.Second + time.Duration(rapid.IntRange(0, 60).Draw(t, "when"))*tick)
		s.nodes[0].alive = false
		last := s.folk[0].lastBeat("n1", s.now).at
		s.until(t, "verdict", 2*time.Second, s.nodes[0].is(fsm.NodeDown))
		if took := s.now - last; took > promised+s.rtt || took < 600*ms {
			t.Fatalf("found down %s after its last heartbeat", took)
		}
		if len(s.log) != 1 {
			t.Fatalf("verdicts: %v", s.log)
		}
	})
}

func TestMemberThatDiesWithTheNodeDelaysNothing(t *testing.T) {
	s := steady(3, 3)
	s.folk[2].answers = false
	s.nodes[2].alive = false
	if took := s.until(t, "verdict", 2*time.Second, s.nodes[2].is(fsm.NodeDown)); took > promised {
		t.Errorf("found down after %s", took)
	}
}

func TestAgentThatStopsOnANodeThatAnswersIsAgentDown(t *testing.T) {
	s := steady(3, 3)
	n := s.nodes[0]
	n.agent = false
	if took := s.until(t, "verdict", 2*time.Second, n.is(fsm.AgentDown)); took > promised {
		t.Errorf("found after %s", took)
	}
	s.run(time.Minute)
	if len(s.log) != 1 {
		t.Errorf("verdicts of an agent that stays away: %v", s.log)
	}
	n.agent = true
	if took := s.until(t, "return", time.Second, n.is(fsm.NodeUp)); took > 800*ms {
		t.Errorf("up again after %s", took)
	}
}

func TestNodeThatDiesAfterItsAgentIsDown(t *testing.T) {
	s := steady(3, 3)
	n := s.nodes[0]
	n.agent = false
	s.until(t, "verdict", 2*time.Second, n.is(fsm.AgentDown))
	s.run(10 * time.Second)
	n.alive = false
	if took := s.until(t, "verdict", 3*time.Second, n.is(fsm.NodeDown)); took > 1500*ms {
		t.Errorf("found down after %s", took)
	}
}

// An update of the agents takes each away for a second or two: no node may be taken for dead, and none stay marked.
func TestRollingRestartOfAgentsIsNeverNodeDown(t *testing.T) {
	s := steady(3, 5)
	for i, n := range s.nodes {
		n.agent = false
		s.run(time.Duration(1000+i*250) * ms)
		n.agent = true
		s.run(800 * ms)
		if n.record.Liveness != fsm.NodeUp {
			t.Errorf("%s is %s after its agent is back", n.record.ID, n.record.Liveness)
		}
	}
	for _, line := range s.log {
		if strings.Contains(line, "is down") {
			t.Error(line)
		}
	}
}

func TestNodeThatOneMemberHearsIsNotDown(t *testing.T) {
	s := steady(3, 3)
	s.folk[0].deafTo["n1"], s.folk[1].deafTo["n1"] = true, true
	s.run(10 * time.Second)
	if got := s.nodes[0].record.Liveness; got != fsm.AgentDown {
		t.Errorf("a node that a minority hears is %s", got)
	}
}

func TestMemberThatHearsNobodyIsNoWitness(t *testing.T) {
	s := steady(3, 3)
	for _, n := range s.nodes {
		s.folk[0].deafTo[n.record.ID] = true
	}
	s.folk[1].deafTo["n1"] = true // a fault of one line, beside the member that lost its network
	s.run(10 * time.Second)
	if len(s.log) > 0 {
		t.Errorf("judged on the word of a member that hears nobody: %v", s.log)
	}
	s.folk[1].deafTo["n1"] = false
	s.nodes[1].alive = false
	s.until(t, "verdict by the two others", time.Second, s.nodes[1].is(fsm.NodeDown))
}

func TestNobodyIsJudgedWithoutAQuorum(t *testing.T) {
	s := steady(3, 3)
	s.folk[1].answers, s.folk[2].answers = false, false
	s.run(400 * ms)
	s.nodes[0].alive = false
	s.run(10 * time.Second)
	if len(s.log) > 0 || s.last.Problem == "" {
		t.Errorf("judged by one of three members: %v, %+v", s.log, s.last)
	}
	s.folk[1].answers = true
	s.until(t, "verdict with a quorum", 2*time.Second, s.nodes[0].is(fsm.NodeDown))
}

func TestNewLeaderCountsFromItsTakeOver(t *testing.T) {
	s := steady(3, 3)
	s.nodes[0].alive = false
	s.run(600 * ms)
	s.lead()
	if took := s.until(t, "verdict", 2*time.Second, s.nodes[0].is(fsm.NodeDown)); took < 650*ms || took > promised {
		t.Errorf("found down %s after the take-over", took)
	}
}

func TestNodeThatNeverRegisteredIsNotJudged(t *testing.T) {
	s := newStage(3, 3, func(int) time.Duration { return 0 })
	s.nodes[0].alive, s.nodes[0].record.Boot = false, ""
	s.run(10 * time.Second)
	if len(s.log) > 0 {
		t.Error(s.log)
	}
}

func TestReturnIsHeldDownTwiceAsLongWithEachFlap(t *testing.T) {
	s := steady(3, 3)
	n := s.nodes[0]
	want := time.Second
	for flap := 1; flap <= 9; flap++ {
		n.alive = false
		s.until(t, "verdict", 2*time.Second, n.is(fsm.NodeDown))
		n.alive = true
		took := s.until(t, "return", 2*time.Minute, n.is(fsm.NodeUp))
		if took < want || took > want+400*ms {
			t.Errorf("flap %d: up again %s after it came back, want %s", flap, took, want)
		}
		want = min(2*want, time.Minute)
		s.run(time.Second)
	}
	s.run(26 * time.Minute) // five of nine are forgotten
	n.alive = false
	s.until(t, "verdict", 2*time.Second, n.is(fsm.NodeDown))
	n.alive = true
	if took := s.until(t, "return", 2*time.Minute, n.is(fsm.NodeUp)); took < 16*time.Second || took > 16*time.Second+400*ms {
		t.Errorf("up again after %s, want 16 s", took)
	}
}

func TestSilenceDuringTheHoldDownBeginsItAnew(t *testing.T) {
	s := steady(3, 3)
	n := s.nodes[0]
	n.alive = false
	s.until(t, "verdict", 2*time.Second, n.is(fsm.NodeDown))
	for range 5 { // it never stays for a second
		n.alive = true
		s.run(700 * ms)
		n.alive = false
		s.run(700 * ms)
	}
	if len(s.log) != 1 {
		t.Errorf("a node that comes and goes: %v", s.log)
	}
}

// S9: an agent of another boot may be there before the record knows; the acknowledgements in it are the old boot's.
func TestNodeIsUpOnlyUnderTheBootThatTheRecordKnows(t *testing.T) {
	s := steady(3, 3)
	n := s.nodes[0]
	n.alive = false
	s.until(t, "verdict", 2*time.Second, n.is(fsm.NodeDown))
	n.alive, n.boot = true, "b2"
	s.run(10 * time.Second)
	if n.record.Liveness != fsm.NodeDown {
		t.Fatalf("%s before its boot registered", n.record.Liveness)
	}
	n.record.Boot = "b2"
	s.until(t, "return", 2*time.Second, n.is(fsm.NodeUp))
}

func TestMachineThatAnswersWithoutItsAgentStaysDown(t *testing.T) {
	s := steady(3, 3)
	n := s.nodes[0]
	n.alive = false
	s.until(t, "verdict", 2*time.Second, n.is(fsm.NodeDown))
	n.alive, n.agent = true, false
	s.run(10 * time.Second)
	if n.record.Liveness != fsm.NodeDown {
		t.Errorf("%s, and nobody knows whether its rules are there", n.record.Liveness)
	}
}

func TestManyNodesSilentTogetherAreHeldUntilReleased(t *testing.T) {
	for _, c := range []struct {
		nodes, die int
		held       bool
	}{{2, 1, false}, {3, 1, false}, {3, 2, false}, {4, 2, false}, {4, 3, true}, {5, 2, false}, {5, 3, true}, {10, 5, false}, {10, 6, true}} {
		t.Run(fmt.Sprintf("%d-of-%d", c.die, c.nodes), func(t *testing.T) {
			s := steady(3, c.nodes)
			for i := range c.die {
				s.nodes[i].alive = false
			}
			s.run(12 * time.Second)
			down := len(s.down())
			if !c.held {
				if down != c.die || len(s.holds) > 0 {
					t.Fatalf("%d down, holds %v", down, s.holds)
				}
				return
			}
			if down != 0 || len(s.last.Held) != c.die || len(s.holds) != 1 || len(s.holds[0].Subjects) != c.die {
				t.Fatalf("%d down, held %v, holds %v", down, s.last.Held, s.holds)
			}
			if s.last.Hurry {
				t.Error("asks in a hurry for as long as they are held")
			}
			s.holds[0].Released = true
			s.run(3 * time.Second)
			if down := len(s.down()); down != c.die || len(s.holds) != 0 {
				t.Fatalf("after the release: %d down, holds %v", down, s.holds)
			}
		})
	}
}

func (s *stage) down() (out []fsm.NodeID) {
	for _, m := range s.nodes {
		if m.record.Liveness == fsm.NodeDown {
			out = append(out, m.record.ID)
		}
	}
	return out
}

func TestHoldEndsWhenTheNodesAreBack(t *testing.T) {
	s := steady(3, 5)
	for _, n := range s.nodes[:4] {
		n.alive = false
	}
	s.run(5 * time.Second)
	if len(s.holds) != 1 {
		t.Fatalf("holds %v", s.holds)
	}
	for _, n := range s.nodes[:4] {
		n.alive = true
	}
	s.run(2 * time.Second)
	if len(s.holds) != 0 || len(s.last.Held) != 0 || len(s.log) != 0 {
		t.Errorf("holds %v, verdicts %v", s.holds, s.log)
	}
}

// One by one is together, too, when it is within seconds of each other: the guard counts those that went a moment ago.
func TestNodesThatFallOneByOneAreHeldFromTheMiddleOn(t *testing.T) {
	s := steady(3, 10)
	for _, n := range s.nodes[:8] {
		n.alive = false
		s.run(time.Second)
	}
	if down := s.down(); len(down) != 5 {
		t.Errorf("down: %v", down)
	}
	s.run(20 * time.Second) // those that are down are no longer a part of what falls silent together
	if down := s.down(); len(down) != 5 || !slices.Equal(s.last.Held, []fsm.NodeID{"n6", "n7", "n8"}) {
		t.Errorf("down: %v, held %v", down, s.last.Held)
	}
}

// The agents of all nodes are updated at once, and one node dies meanwhile.
func TestNodesWithoutAgentsDoNotCountAsSilent(t *testing.T) {
	s := steady(3, 6)
	for _, n := range s.nodes[1:5] {
		n.agent = false
	}
	s.run(3 * time.Second)
	s.nodes[0].alive = false
	s.run(2 * time.Second)
	if down := s.down(); !slices.Equal(down, []fsm.NodeID{"n1"}) || len(s.holds) > 0 {
		t.Errorf("down: %v, holds %v", down, s.holds)
	}
}
