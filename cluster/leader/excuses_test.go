// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
)

// A member is excused once it was lost for as long as the most patient switch keeps its paths, counted anew whenever
// it answers.
func TestExcusesCountFromTheLastAnswer(t *testing.T) {
	g := newGroup(t)
	g.must(&fsm.ReportMember{Server: "m1", Name: "m1", Format: fsm.NewestFormat, Run: "r"}, &fsm.ReportMember{Server: "m2", Name: "m2", Format: fsm.NewestFormat, Run: "r"})
	g.must(&fsm.PutPeer{Peer: fsm.Peer{Name: "patient", Address: netip.MustParseAddr("192.0.2.254"), ASN: 65001, StaleTime: time.Hour}})
	e := newExcuses(0)
	const wait = 30*time.Second + time.Second + time.Hour
	check := func(at time.Duration, answers []fsm.ServerID, want []fsm.ServerID, next time.Duration) {
		t.Helper()
		servers := []Server{{ID: "m1"}, {ID: "m2"}}
		for i := range servers {
			servers[i].Answers = slices.Contains(answers, servers[i].ID)
		}
		have, again := e.update(at, g.state.Read(), servers)
		if !slices.Equal(have, want) || again != next {
			t.Errorf("at %s: excused %v and again in %s, want %v and %s", at, have, again, want, next)
		}
	}
	m1, m2 := []fsm.ServerID{"m1"}, []fsm.ServerID{"m2"}
	check(0, []fsm.ServerID{"m1", "m2"}, nil, 0)
	check(time.Minute, m1, nil, wait)
	check(wait, m1, nil, time.Minute)
	check(wait+time.Minute, m1, m2, 0)
	check(wait+2*time.Minute, m2, nil, wait) // m2 is back, m1 lost
	check(2*wait, nil, nil, 2*time.Minute)   // m2 is lost again
	check(2*wait+2*time.Minute, nil, m1, wait-2*time.Minute)

	// A peer that is taken off the record may still be a lost member's.
	g.must(&fsm.DeletePeer{Name: "patient"})
	check(2*wait+3*time.Minute, nil, m1, wait-3*time.Minute)
}

// A node that announces itself is excused the same way, from when the group does not hear its agent any more. Others are not
// waited for at all.
func TestNodesThatSpeakAreExcusedOnceTheyWereLost(t *testing.T) {
	g := newGroup(t)
	for _, id := range []fsm.NodeID{"n1", "n2"} {
		g.must(&fsm.PutNode{ID: id, UID: "u", Eligible: true}, &fsm.RegisterBoot{Node: id, Boot: "b"})
	}
	g.must(&fsm.ReportSpeakers{Marks: []fsm.SpeakerMark{{Node: "n1", Boot: "b", Speaks: true}}})
	live := func(l fsm.Liveness) {
		g.must(&fsm.SetLiveness{Node: "n1", Boot: "b", Liveness: l}, &fsm.SetLiveness{Node: "n2", Boot: "b", Liveness: l})
	}
	e := newExcuses(time.Minute)
	check := func(at time.Duration, want []fsm.NodeID, next time.Duration) {
		t.Helper()
		if have, again := e.updateNodes(at, g.state.Read()); !slices.Equal(have, want) || again != next {
			t.Errorf("at %s: excused %v and again in %s, want %v and %s", at, have, again, want, next)
		}
	}
	check(0, nil, 0)
	live(fsm.NodeDown)
	check(time.Second, nil, time.Minute)
	live(fsm.AgentDown)
	check(time.Minute, nil, time.Second)
	check(time.Minute+time.Second, []fsm.NodeID{"n1"}, 0)
	live(fsm.NodeUp)
	check(2*time.Minute, nil, 0)
	live(fsm.NodeDown)
	check(3*time.Minute, nil, time.Minute)
}

// A member that lost its disk comes back as another server at the same address. To switches that is the same speaker,
// and nobody waits for the former server, unless it still belongs to the group or its successor does not answer.
func TestWhoWasReplacedIsExcused(t *testing.T) {
	g := newGroup(t)
	report := func(server, name, raft string) fsm.Command {
		return &fsm.ReportMember{Server: fsm.ServerID(server), Name: name, Raft: raft, Format: fsm.NewestFormat, Run: "r"}
	}
	g.must(report("m1-old", "m1", "a:1"), report("m1-new", "m1", "a:1"), report("m2", "m2", "b:1"))
	for _, c := range []struct {
		why     string
		servers []Server
		want    []fsm.ServerID
	}{
		{"replaced", []Server{{ID: "m1-new", Answers: true}, {ID: "m2", Answers: true}}, []fsm.ServerID{"m1-old"}},
		{"the successor is silent", []Server{{ID: "m1-new"}, {ID: "m2", Answers: true}}, nil},
		{"both belong", []Server{{ID: "m1-old"}, {ID: "m1-new", Answers: true}, {ID: "m2", Answers: true}}, nil},
		{"no successor", []Server{{ID: "m2", Answers: true}}, nil},
	} {
		if have, _ := newExcuses(0).update(0, g.state.Read(), c.servers); !slices.Equal(have, c.want) {
			t.Errorf("%s: excused %v, want %v", c.why, have, c.want)
		}
	}
	g.must(report("m1-new", "m1", "c:1")) // it moved: at the old address nobody says what counts
	if have, _ := newExcuses(0).update(0, g.state.Read(), []Server{{ID: "m1-new", Answers: true}}); len(have) > 0 {
		t.Errorf("moved: excused %v", have)
	}
}

// A switch without graceful restart drops the paths with the session.
func TestSwitchHoldsAsThePeerAsks(t *testing.T) {
	for _, c := range []struct {
		peer fsm.Peer
		want time.Duration
	}{
		{fsm.Peer{}, 631 * time.Second},
		{fsm.Peer{HoldTime: 9 * time.Second, NoRestart: true}, 9 * time.Second},
		{fsm.Peer{HoldTime: 90 * time.Second, RestartTime: 120 * time.Second, StaleTime: time.Second}, 211 * time.Second},
	} {
		if have := switchHolds(&c.peer); have != c.want {
			t.Errorf("%+v: %s, want %s", c.peer, have, c.want)
		}
	}
}
