// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"fmt"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
	"fairlead.io/fairlead/internal/testkit"
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
	judged judged
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
	fsmtest.Tell(t, g.State, commands...)
}

// node is one that an agent runs on, or ran.
func (g *group) node(t failer, id fsm.NodeID, agent bool) {
	t.Helper()
	g.tell(t, &fsm.PutNode{ID: id, UID: string(id)})
	if agent {
		g.tell(t, &fsm.RegisterBoot{Node: id, Boot: "b"})
		g.carriesOut(t, id)
	}
}

// carriesOut has a node acknowledge all that is in the record.
func (g *group) carriesOut(t failer, id fsm.NodeID) {
	t.Helper()
	g.tell(t, &fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: id, Boot: "b", Upto: g.Read().Revision()}}})
}

func policy(number uint32) fsm.Policy {
	return fsm.Policy{
		ID: "BalancingPolicy/db", UID: "u", Number: number, EveryNode: true, Mode: "address", Probe: fsm.Probe{Type: "TCP"},
		Captures: []fsm.Capture{{Address: vip, Port: fsm.Port{Protocol: fsm.TCP, Number: 5432}, Target: port.Number}},
		Backends: []fsm.PolicyBackend{{Address: first, Ready: true}, {Address: other, Ready: true}},
	}
}

// service is one whose endpoints are probed.
func service() fsm.Service {
	return fsm.Service{
		ID: "shop/web", UID: "u", Rare: &fsm.Rare{Probe: fsm.Probe{Type: "TCP"}},
		Endpoints: []fsm.Endpoint{{Address: first, Ready: true}, {Address: other, Serving: true, Failing: true}, {Address: vip}},
	}
}

// settle has verdicts committed until there is nothing to say.
func (g *group) settle(t failer, heard Heard) {
	t.Helper()
	for _, c := range Judge(g.Read(), g.judged.in(g.Read()), heard) {
		g.tell(t, c)
	}
	if again := Judge(g.Read(), g.judged.in(g.Read()), heard); len(again) > 0 {
		t.Fatalf("there is something to say still: %+v", again[0])
	}
}

// verdict is what the record says of an address.
func (g *group) verdict(at netip.Addr) string {
	var verdicts []fsm.ProbeVerdict
	if r, ok := fsm.Get[*fsm.Policy](g.Read(), fsm.TablePolicies, "BalancingPolicy/db"); ok {
		verdicts = r.Verdicts
	}
	if s, ok := fsm.Get[*fsm.Service](g.Read(), fsm.TableServices, "shop/web"); ok {
		verdicts = append(verdicts, s.Verdicts()...)
	}
	for _, v := range verdicts {
		if v.Address == at {
			return fmt.Sprintf("%t %d/%d", v.Healthy, v.Say, v.Of)
		}
	}
	return "none"
}

// Balancing §14, K50: a verdict is what more than half of the nodes that probe say, those among them that are silent, or do not know yet,
// counted in; else it is what it was. Who is not concerned has no say. The account here is by a table of voters for each round.
// Rule: balancing §14.
func TestPropertyVerdictsAreOfMostThatProbe(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
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
		carried := map[fsm.NodeID]bool{"outside": true} // as far as it is a policy
		subject, place := Subject{Redirect: number}, fsm.Probed{Address: first, Port: port}
		another := Subject{Redirect: number + 1}
		if rapid.Bool().Draw(t, "of a Service") { // which is served by every node, and by no other host
			subject, place = Subject{Service: "shop/web"}, fsm.Probed{Address: first}
			another = rapid.SampledFrom([]Subject{{Service: "shop/other"}, {Redirect: number}}).Draw(t, "another")
			for id := range effective {
				effective[id] = id != "outside"
			}
			g.tell(t, &fsm.PutService{Service: service()})
		} else {
			g.tell(t, &fsm.PutPolicy{Policy: r})
		}
		since := g.Read().Revision() // what is probed is as it is
		for _, id := range ids {
			if carried[id] = agents[id] && rapid.IntRange(0, 4).Draw(t, "carried it out") > 0; carried[id] {
				g.carriesOut(t, id)
			}
		}
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
				ofNow := carried[id]
				probes := says == "unknown" || says == "good" || says == "bad"
				switch {
				case says == "silent":
				case says == "nothing":
					heard[id] = Said{}
				case says == "another's":
					heard[id] = Said{Report: Report{another: {place: Bad}}}
				default:
					o := map[string]Opinion{"unknown": Unknown, "good": Good, "bad": Bad}[says]
					said := Said{Report: Report{subject: {place: o}}}
					switch rapid.SampledFrom([]string{"does not tell", "before", "since"}).Draw(t, "as of") {
					case "before":
						said.Of, ofNow = fsm.Revision{Epoch: since.Epoch, Index: since.Index - 1}, false
					case "since":
						said.Of, ofNow = since, true
					}
					heard[id] = said
				}
				silent := says == "silent" && id != "outside" && agents[id] && !down[id]
				if effective[id] && (probes || silent) {
					of++
				}
				if effective[id] && ofNow && says == "good" {
					good++
				}
				if effective[id] && ofNow && says == "bad" {
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
// Rule: balancing §14.
func TestSilenceChangesNoVerdict(t *testing.T) {
	g := newGroup(t)
	says := func(o Opinion) Said { return Said{Report: Report{{Redirect: 7}: {{Address: first, Port: port}: o}}} }
	g.tell(t, &fsm.PutPolicy{Policy: policy(7)})
	for _, id := range []fsm.NodeID{"n1", "n2", "n3", "n4", "n5"} {
		g.node(t, id, true)
	}
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

// K50: what nodes found out by the probe that a Service had before counts no more, and what they thought by then stays no verdict; that of one that
// has carried out the new one does.
// Rule: K50.
func TestFormerProbesDoNotCount(t *testing.T) {
	g := newGroup(t)
	g.tell(t, &fsm.PutService{Service: service()})
	for _, id := range []fsm.NodeID{"n1", "n2", "n3"} {
		g.node(t, id, true)
	}
	heard := Heard{}
	for _, id := range []fsm.NodeID{"n1", "n2", "n3"} {
		heard[id] = Said{Report: Report{{Service: "shop/web"}: {{Address: first}: Bad}}}
	}
	g.settle(t, heard)
	said := []string{g.verdict(first)}
	s := service()
	s.Rare.Probe.Port, s.Version = 8080, 1
	g.tell(t, &fsm.PutService{Service: s})
	for _, id := range []fsm.NodeID{"", "n3", "n1"} {
		if id != "" {
			g.carriesOut(t, id)
		}
		g.settle(t, heard)
		said = append(said, g.verdict(first))
	}
	if got, want := fmt.Sprint(said), "[false 3/3 none none false 2/3]"; got != want {
		t.Errorf("it is thought %s, want %s", got, want)
	}
}

// K50: an acknowledgement gets to the group before what the node thinks since. A report that tells of which revision it is counts by that, not by what
// the node has acknowledged.
// Rule: K50.
func TestReportsOfBeforeDoNotCountOnceTheNodeAcknowledged(t *testing.T) {
	g := newGroup(t)
	g.tell(t, &fsm.PutService{Service: service()})
	g.node(t, "n1", true)
	before := g.Read().Revision()
	s := service()
	s.Rare.Probe.Port, s.Version = 8080, 1
	g.tell(t, &fsm.PutService{Service: s})
	g.carriesOut(t, "n1")
	bad := Report{{Service: "shop/web"}: {{Address: first}: Bad}}
	g.settle(t, Heard{"n1": {Report: bad, Of: before}})
	if got := g.verdict(first); got != "none" {
		t.Errorf("by a report of before it is said to be %s", got)
	}
	g.settle(t, Heard{"n1": {Report: bad, Of: g.Read().Revision()}})
	if got := g.verdict(first); got != "false 1/1" {
		t.Errorf("by a report of now it is said to be %s", got)
	}
}

// K50: a Service that asks for probes no more has no verdicts, whatever nodes say still; an endpoint that is not ready for another reason has none.
// Rule: K50.
func TestVerdictsAreOfEndpointsThatAreProbed(t *testing.T) {
	g := newGroup(t)
	g.tell(t, &fsm.PutService{Service: service()})
	g.node(t, "n1", true)
	heard := Heard{"n1": {Report: Report{{Service: "shop/web"}: {{Address: first}: Bad, {Address: other}: Bad, {Address: vip}: Bad}}}}
	g.settle(t, heard)
	if a, b, c := g.verdict(first), g.verdict(other), g.verdict(vip); a != "false 1/1" || b != "false 1/1" || c != "none" {
		t.Errorf("a ready endpoint is %s, a failing one %s, one that is not ready %s", a, b, c)
	}
	s := service()
	s.Rare, s.Version = nil, 1
	g.tell(t, &fsm.PutService{Service: s})
	g.settle(t, heard)
	if a := g.verdict(first); a != "none" {
		t.Errorf("of a Service that is not probed an endpoint is %s", a)
	}
}
