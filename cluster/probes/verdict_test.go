// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"fmt"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
)

var (
	vip   = netip.MustParseAddr("169.254.77.1")
	first = netip.MustParseAddr("198.51.100.11")
	other = netip.MustParseAddr("198.51.100.12")
	port  = fsm.Port{Protocol: fsm.TCP, Number: 6432}
)

// group is a record that is told commands.
type group struct {
	*fsm.State
	index fsm.Index
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newGroup(t failer) *group {
	g := &group{State: fsm.New()}
	g.tell(t, &fsm.InitGroup{Group: "g1", Format: fsm.NewestFormat})
	return g
}

func (g *group) tell(t failer, commands ...fsm.Command) {
	t.Helper()
	for _, c := range commands {
		_, epoch, _ := g.Identity()
		data, err := fsm.EncodeEntry(epoch, []fsm.Proposal{{Actor: "test", Command: c}})
		if err != nil {
			t.Fatalf("%v", err)
		}
		g.index++
		if o := g.ApplyEntries([]fsm.LogEntry{{Index: g.index, Term: 1, Data: data}})[0][0]; o.Err() != nil {
			t.Fatalf("%T: %v", c, o.Err())
		}
	}
}

// node is one that an agent runs on, or ran.
func (g *group) node(t failer, id fsm.NodeID, agent bool) {
	t.Helper()
	g.tell(t, &fsm.PutNode{ID: id, UID: string(id)})
	if agent {
		g.tell(t, &fsm.RegisterBoot{Node: id, Boot: "b"}, &fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: id, Boot: "b", Upto: g.Read().Revision()}}})
	}
}

func policy(number uint32) fsm.Redirect {
	return fsm.Redirect{
		ID: "BalancingPolicy/db", UID: "u", Number: number, EveryNode: true, Mode: "address", Probe: fsm.Probe{Type: "TCP"},
		Captures: []fsm.Capture{{Address: vip, Port: fsm.Port{Protocol: fsm.TCP, Number: 5432}, Target: port.Number}},
		Backends: []fsm.RedirectBackend{{Address: first, Ready: true}, {Address: other, Ready: true}},
	}
}

// settle has verdicts committed until there is nothing to say.
func (g *group) settle(t failer, heard Heard) {
	t.Helper()
	for _, c := range Judge(g.Read(), heard) {
		g.tell(t, c)
	}
	if again := Judge(g.Read(), heard); len(again) > 0 {
		t.Fatalf("there is something to say still: %+v", again[0])
	}
}

// verdict is what the record says of an address.
func (g *group) verdict(at netip.Addr) string {
	r, _ := fsm.Get[*fsm.Redirect](g.Read(), fsm.TableRedirects, "BalancingPolicy/db")
	for _, v := range r.Verdicts {
		if v.Address == at {
			return fmt.Sprintf("%t %d/%d", v.Healthy, v.Say, v.Of)
		}
	}
	return "none"
}

// Balancing §14: a verdict is what more than half of the nodes that probe say, those among them that are silent, or do not know yet,
// counted in; else it is what it was. Who is not concerned has no say. The account here is by a table of voters for each round.
func TestPropertyBalancing14VerdictsAreOfMostThatProbe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGroup(t)
		const number = 7
		var ids []fsm.NodeID
		agents := map[fsm.NodeID]bool{}
		for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
			id := fsm.NodeID(fmt.Sprintf("n%d", i))
			agents[id] = rapid.IntRange(0, 4).Draw(t, "has an agent") > 0
			g.node(t, id, agents[id])
			ids = append(ids, id)
		}
		r := policy(number)
		r.EveryNode = rapid.Bool().Draw(t, "every node")
		r.Outside = rapid.Bool().Draw(t, "outside")
		effective := map[fsm.NodeID]bool{"outside": r.Outside}
		for _, id := range ids {
			effective[id] = r.EveryNode
			if !r.EveryNode && rapid.IntRange(0, 3).Draw(t, "effective") > 0 {
				r.Nodes, effective[id] = append(r.Nodes, id), true
			}
		}
		g.tell(t, &fsm.PutRedirect{Redirect: r})
		down := map[fsm.NodeID]bool{}
		want := "none"
		for range rapid.IntRange(1, 8).Draw(t, "rounds") {
			if rapid.IntRange(0, 3).Draw(t, "flips") == 0 {
				id := rapid.SampledFrom(ids).Draw(t, "node")
				down[id] = !down[id]
				now := fsm.NodeUp
				if down[id] {
					now = fsm.NodeDown
				}
				boot := fsm.BootID("")
				if agents[id] {
					boot = "b"
				}
				g.tell(t, &fsm.SetLiveness{Node: id, Boot: boot, Liveness: now})
			}
			heard := Heard{}
			good, bad, of := uint32(0), uint32(0), uint32(0)
			for _, id := range append([]fsm.NodeID{"outside"}, ids...) {
				says := rapid.SampledFrom([]string{"silent", "silent", "nothing", "another's", "unknown", "good", "bad", "bad", "bad"}).Draw(t, "says")
				probes := says == "unknown" || says == "good" || says == "bad"
				switch {
				case says == "silent":
				case says == "nothing":
					heard[id] = nil
				case says == "another's":
					heard[id] = Report{number + 1: {{Address: first, Port: port}: Bad}}
				default:
					o := map[string]Opinion{"unknown": Unknown, "good": Good, "bad": Bad}[says]
					heard[id] = Report{number: {{Address: first, Port: port}: o}}
				}
				silent := says == "silent" && id != "outside" && agents[id] && !down[id]
				if effective[id] && (probes || silent) {
					of++
				}
				if effective[id] && says == "good" {
					good++
				}
				if effective[id] && says == "bad" {
					bad++
				}
			}
			was := want
			switch {
			case of == 0:
				want = "none"
			case good > of-good && (was == "none" || was[0] == 'f'):
				want = fmt.Sprintf("true %d/%d", good, of)
			case bad > of-bad && (was == "none" || was[0] == 't'):
				want = fmt.Sprintf("false %d/%d", bad, of)
			}
			g.settle(t, heard)
			if got := g.verdict(first); got != want {
				t.Fatalf("of %d, %d say good, %d bad; it was %s: it is %s, want %s", of, good, bad, was, got, want)
			}
			// The other address' hosts say nothing of it.
			if got := g.verdict(other); got != "none" && of > 0 {
				t.Fatalf("of an address that nobody probed it is said to be %s", got)
			}
		}
	})
}

// Balancing §14: a leader that has just begun, and has heard of nobody or of less than most, changes nothing; nor do nodes that fall silent.
func TestBalancing14SilenceChangesNoVerdict(t *testing.T) {
	g := newGroup(t)
	says := func(o Opinion) Report { return Report{7: {{Address: first, Port: port}: o}} }
	for _, id := range []fsm.NodeID{"n1", "n2", "n3", "n4", "n5"} {
		g.node(t, id, true)
	}
	g.tell(t, &fsm.PutRedirect{Redirect: policy(7)})
	for _, step := range []struct {
		heard Heard
		want  string
	}{
		{Heard{}, "none"},
		{Heard{"n1": says(Bad), "n2": says(Bad)}, "none"},
		{Heard{"n1": says(Bad), "n2": says(Bad), "n3": says(Bad)}, "false 3/5"},
		{Heard{}, "false 3/5"}, // a new leader
		{Heard{"n4": says(Good), "n5": says(Good)}, "false 3/5"},
		{Heard{"n1": says(Bad), "n2": says(Bad), "n3": says(Unknown), "n4": says(Good), "n5": says(Good)}, "false 3/5"},
		{Heard{"n1": says(Bad), "n2": says(Bad), "n3": says(Good), "n4": says(Good), "n5": says(Good)}, "true 3/5"},
		{Heard{"n1": says(Bad), "n2": says(Bad)}, "true 3/5"},
	} {
		g.settle(t, step.heard)
		if got := g.verdict(first); got != step.want {
			t.Errorf("after %v it is %s, want %s", step.heard, got, step.want)
		}
	}
}
