// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// take commits what the record lacks.
func (g *group) take(e *excuses) {
	g.t.Helper()
	for _, p := range e.due(time.Unix(0, 0)) {
		g.must(p.Command)
	}
}

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
		if have := e.update(at, g.state.Read(), servers); !slices.Equal(have.members, want) || have.next != next {
			t.Errorf("at %s: excused %v and again in %s, want %v and %s", at, have.members, have.next, want, next)
		}
		g.take(e)
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

// In a record of before format 2 each leader counts by itself.
func TestExcusesOfOldRecordsAreOfOneTerm(t *testing.T) {
	g := newGroupOf(t, fsm.FormatAbsences-1)
	g.must(&fsm.ReportMember{Server: "m1", Name: "m1", Format: fsm.NewestFormat, Run: "r"})
	e := newExcuses(0)
	for at := time.Duration(0); at <= 631*time.Second; at += time.Second {
		if over := len(e.update(at, g.state.Read(), nil).members) > 0; over != (at == 631*time.Second) {
			t.Fatalf("after %s: excused %t", at, over)
		}
		g.take(e)
	}
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
		if have := e.update(at, g.state.Read(), nil); !slices.Equal(have.nodes, want) || have.next != next {
			t.Errorf("at %s: excused %v and again in %s, want %v and %s", at, have.nodes, have.next, want, next)
		}
		g.take(e)
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

// Whoever leads meanwhile, a speaker is excused no sooner than it was away for as long as the most patient of the switches it spoke with
// keeps its paths, in one run or boot and heard of nowhere between, and no later than that and what each change of the leader may lose.
func TestPropertyAbsencesAreCountedOverTerms(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		g := newGroup(t)
		const patient = 20 * time.Minute
		g.must(&fsm.ReportMember{Server: "m", Name: "m", Format: fsm.NewestFormat, Run: "r0"}, &fsm.PutNode{ID: "n", UID: "u", Eligible: true}, &fsm.RegisterBoot{Node: "n", Boot: "b0"})
		g.must(&fsm.ReportSpeakers{Marks: []fsm.SpeakerMark{{Node: "n", Boot: "b0", Speaks: true}}}, &fsm.SetLiveness{Node: "n", Boot: "b0", Liveness: fsm.NodeDown})
		e := newExcuses(0)
		var clock, away, lost time.Duration              // of the leader's clock; how long both are away, and what of it no leader may know
		var next time.Duration                           // when somebody is said to be excused next
		holds, known := 631*time.Second, 631*time.Second // how long their switches keep paths, and the longest that this leader has seen
		runs, here := 0, false
		back := func() { away, lost, holds = 0, 0, known }
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 14).Draw(t, "what") {
			case 0: // another leader, some time later, with a clock of its own
				gap := time.Duration(rapid.IntRange(0, 30).Draw(t, "seconds without a leader")) * time.Second
				clock = time.Duration(rapid.IntRange(0, 3600).Draw(t, "clock")) * time.Second
				if !here {
					away, lost = away+gap, lost+gap+tellEvery+20*time.Second
				}
				e, known = newExcuses(0), 631*time.Second
				if len(fsm.List[*fsm.Peer](g.state.Read(), fsm.TablePeers)) > 0 {
					known = patient
				}
			case 1: // they start anew, and are away again before a leader hears them
				runs++
				run := fmt.Sprint(runs)
				g.must(&fsm.ReportMember{Server: "m", Name: "m", Format: fsm.NewestFormat, Run: "r" + run}, &fsm.RegisterBoot{Node: "n", Boot: fsm.BootID("b" + run)})
				back()
			case 2: // they come, or go
				here = !here
				liveness := map[bool]fsm.Liveness{true: fsm.NodeUp, false: fsm.NodeDown}[here]
				n, _ := fsm.Get[*fsm.Node](g.state.Read(), fsm.TableNodes, "n")
				g.must(&fsm.SetLiveness{Node: "n", Boot: n.Boot, Liveness: liveness})
				back()
			case 5: // they say something, and are away again before a leader hears them
				m, _ := fsm.Get[*fsm.Member](g.state.Read(), fsm.TableMembers, "m")
				n, _ := fsm.Get[*fsm.Node](g.state.Read(), fsm.TableNodes, "n")
				at := g.state.Read().Revision()
				g.must(&fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{{Server: "m", Run: m.Run, Upto: at}}}, &fsm.ReportSpeakers{Marks: []fsm.SpeakerMark{{Node: "n", Boot: n.Boot, Speaks: true, Announced: at}}})
				back()
			case 12: // the same, but it is nothing new: that ends what was counted, if the record has any of it
				m, _ := fsm.Get[*fsm.Member](g.state.Read(), fsm.TableMembers, "m")
				n, _ := fsm.Get[*fsm.Node](g.state.Read(), fsm.TableNodes, "n")
				if m.Absence.For == 0 || n.Speaking.Absence.For == 0 {
					break
				}
				g.must(&fsm.ReportSessions{Members: []fsm.MemberSessions{{Server: "m", Run: m.Run}}})
				g.must(&fsm.ReportSpeakers{Marks: []fsm.SpeakerMark{{Node: "n", Boot: n.Boot, Speaks: true}}})
				back()
			case 3:
				g.must(&fsm.PutPeer{Peer: fsm.Peer{Name: "patient", Address: netip.MustParseAddr("192.0.2.254"), ASN: 65001, HoldTime: patient, NoRestart: true}})
				known = patient
			case 4:
				if len(fsm.List[*fsm.Peer](g.state.Read(), fsm.TablePeers)) > 0 {
					g.must(&fsm.DeletePeer{Name: "patient"})
				}
			default:
				d := time.Duration(rapid.IntRange(1, 20).Draw(t, "seconds")) * time.Second
				switch rapid.IntRange(0, 2).Draw(t, "longer") {
				case 0:
					d *= 10
				case 1:
					d = max(d, next)
				}
				clock += d
				if !here {
					away += d
				}
			}
			holds = max(holds, known)
			out := e.update(clock, g.state.Read(), []Server{{ID: "m", Answers: here}})
			next = out.next
			if away < holds && len(out.members)+len(out.nodes) > 0 {
				t.Fatalf("after %s away of %s are excused: %v %v", away, holds, out.members, out.nodes)
			}
			if away >= holds+lost && (len(out.members) == 0 || len(out.nodes) == 0) {
				t.Fatalf("after %s away of %s, of which %s may be unknown, are excused: %v %v only", away, holds, lost, out.members, out.nodes)
			}
			g.take(e)
		}
	})
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
		if have := newExcuses(0).update(0, g.state.Read(), c.servers); !slices.Equal(have.members, c.want) {
			t.Errorf("%s: excused %v, want %v", c.why, have.members, c.want)
		}
	}
	g.must(report("m1-new", "m1", "c:1")) // it moved: at the old address nobody says what counts
	if have := newExcuses(0).update(0, g.state.Read(), []Server{{ID: "m1-new", Answers: true}}); len(have.members) > 0 {
		t.Errorf("moved: excused %v", have.members)
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
