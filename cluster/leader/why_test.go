// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// why says what Explain makes of Services.
func (s *scene) why(d *datadriven.TestData) string {
	in := s.input()
	if d.HasArg("record") {
		in.Views = nil
	}
	in.Options.IgnoreUnclassed = d.HasArg("unclassed")
	in.Record = s.group.state.Read()
	x := Explain(in)
	var b strings.Builder
	for _, a := range d.CmdArgs {
		name := a.Key
		switch name {
		case "record", "unclassed":
			continue
		case "why":
			name = a.Vals[0]
		}
		id := fsm.ServiceID("default/" + name)
		r, known := x.Service(id)
		if !known {
			fmt.Fprintf(&b, "%s: nobody knows it; near: %v\n", name, x.Near(id))
			continue
		}
		fmt.Fprintf(&b, "%s:%s%s\n", name, reasonText(r.Ours), reasonText(Reason{Code(r.Pending.Code), r.Pending.Text}))
		if r.Moved.Code != "" {
			fmt.Fprintf(&b, " %s\n", reasonText(r.Moved))
		}
		for _, a := range r.Addresses {
			fmt.Fprintf(&b, "  %s pool=%s%s", a.Address, a.Pool, reasonText(a.From))
			if len(a.Shared) > 0 {
				fmt.Fprintf(&b, " shared by %s with %v", a.Key, a.Shared)
			}
			b.WriteString("\n")
			for _, n := range a.Nodes {
				fmt.Fprintf(&b, "    %s wanted=%v%s\n", n.Node, n.Wanted, reasonText(n.Reason))
			}
		}
		for _, e := range r.Waiting {
			fmt.Fprintf(&b, "  waits: %s %s: %s: %s\n", e.Kind, e.Name, e.Code, e.Text)
		}
	}
	return b.String()
}

func reasonText(r Reason) string {
	if r.Code == "" {
		return ""
	}
	return " " + string(r.Code) + ": " + r.Text
}

// Reasons agree with what is done: each node is told of once, those that are said to be wanted are those that the plan
// brought into the record, and the code says the same. What makes a node none is found anew, in a simpler way.
func TestPropertyReasonsAgreeWithThePlan(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		s := newScene(t)
		for _, line := range begin(s) {
			s.line(line)
		}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			drawStep(t, s)
			s.group.settle(s.input())
		}
		in := s.input()
		in.Record = s.group.state.Read()
		x := Explain(in)
		for _, id := range x.Services() {
			r, known := x.Service(id)
			if !known {
				t.Fatalf("%s is listed and not known", id)
			}
			checkAddresses(t, s, in.Record, &r)
		}
		if plan := Plan(in); len(all(plan)) > 0 {
			t.Fatalf("not settled: %v", commands(plan))
		}
	})
}

func checkAddresses(t *rapid.T, s *scene, v *fsm.View, r *ServiceReasons) {
	var has []netip.Addr
	for _, a := range r.Addresses {
		has = append(has, a.Address)
		var nodes []fsm.NodeID
		for _, n := range a.Nodes {
			nodes = append(nodes, n.Node)
			if good := slices.Contains([]Code{Serves, ServesAll, PassesOn, Bridges, LastHop, LastAside, MovedHere, Replaced}, n.Code); good != n.Wanted {
				t.Fatalf("%s: node %s is wanted=%v for %q", a.Address, n.Node, n.Wanted, n.Code)
			}
			if wanted := inRecord(v, a.Address, n.Node); wanted != n.Wanted {
				t.Fatalf("%s: node %s is wanted=%v, by the record %v", a.Address, n.Node, n.Wanted, wanted)
			}
			checkNode(t, s, v, &a, &n)
		}
		if !slices.IsSorted(nodes) || len(slices.Compact(slices.Clone(nodes))) != len(nodes) {
			t.Fatalf("%s: nodes %v are not told of once each, in order", a.Address, nodes)
		}
		for _, n := range fsm.List[*fsm.Node](v, fsm.TableNodes) {
			if !slices.Contains(nodes, n.ID) {
				t.Fatalf("%s: nothing is said of node %s", a.Address, n.ID)
			}
		}
	}
	var owns []netip.Addr
	for _, h := range v.Addresses(r.ID) {
		owns = append(owns, h.Address)
	}
	slices.SortFunc(owns, netip.Addr.Compare)
	if !slices.Equal(has, owns) {
		t.Fatalf("%s: told of %v, it has %v", r.ID, has, owns)
	}
}

func inRecord(v *fsm.View, a netip.Addr, node fsm.NodeID) bool {
	route, ok := fsm.Get[*fsm.Route](v, fsm.TableRoutes, fsm.HostPrefix(a).String())
	return ok && slices.ContainsFunc(route.NextHops, func(h fsm.NextHop) bool { return h.Node() == node && !h.Withdrawing })
}

// checkNode holds a reason to the record alone.
func checkNode(t *rapid.T, s *scene, v *fsm.View, a *AddressReasons, n *NodeReason) {
	endpoints, owners, led := 0, 0, 0
	for _, h := range v.Owners(a.Address.String()) {
		if h.Releasing {
			continue
		}
		owners++
		if v.Drained(fsm.DrainService, string(h.Service)) {
			continue
		}
		led++
		o, _ := fsm.Get[*fsm.Service](v, fsm.TableServices, string(h.Service))
		for _, e := range o.Endpoints {
			if e.Node == n.Node {
				endpoints++
			}
		}
	}
	node, known := fsm.Get[*fsm.Node](v, fsm.TableNodes, string(n.Node))
	bad := ""
	switch n.Code {
	case NoEndpoint:
		// Endpoints of the other family do not count where there are some of the address's.
	case Serves, EndpointNotReady:
		bad = when(endpoints == 0, "no endpoint is there")
	case NodeUnknown:
		bad = when(known, "the record knows it")
	case NodeNotReady, NodeCutOff, NodeExcluded, NodeDeleting, NodeGone, NodeNoAddress:
		bad = when(!known || node.Eligible, "the record has it eligible")
	case NodeIneligible:
		bad = "what is in its way has a word"
	case NodeDown:
		bad = when(!known || node.Liveness != fsm.NodeDown, "it is not down")
	case NodeAgentDown:
		bad = when(!known || node.Liveness != fsm.AgentDown, "its agent is not down")
	case LastHop:
		bad = when(!known || node.Liveness == fsm.NodeUp, "it is up")
	case LastAside, NodeDrained:
		bad = when(!known || !v.Drained(fsm.DrainNode, string(n.Node)), "nobody drains it")
	case NodeCordoned, NodeTainted:
		bad = "nobody heeds that"
	case ServiceDrained:
		bad = when(owners == 0 || led > 0, "not all Services that own it are drained")
	case MovedHere:
		bad = when(v.MovedTo(a.Address.String()) != n.Node, "nobody moved it there")
	case MovedAway:
		to := v.MovedTo(a.Address.String())
		bad = when(to == "" || to == n.Node || !inRecord(v, a.Address, to), "it was moved nowhere else")
	case GivenUp, Replaced:
		bad = when(owners > 0, "somebody owns the address")
	}
	if bad != "" {
		t.Fatalf("%s: node %s: %s: %s; but %s", a.Address, n.Node, n.Code, n.Text, bad)
	}
}

func when(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

// Every reason is told in some script, so that each was seen and read.
func TestEveryReasonIsToldByAScript(t *testing.T) {
	told := map[string]bool{}
	paths, err := filepath.Glob("testdata/plan/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for word := range strings.FieldsSeq(string(text)) {
			told[strings.TrimPrefix(strings.TrimSuffix(word, ":"), "pending=")] = true
		}
	}
	elsewhere := []Code{
		NodeIneligible,   // for the words of other releases
		WaitsForHolder,   // of leases on a segment, which no script grants
		WaitsForHandover, // of no plan: nothing is planned meanwhile
	}
	for _, c := range Codes() {
		if !told[string(c)] && !slices.Contains(elsewhere, c) {
			t.Errorf("no script tells %q", c)
		}
	}
}

func TestCodesAreEachTheirOwn(t *testing.T) {
	codes := Codes()
	slices.Sort(codes)
	if len(slices.Compact(slices.Clone(codes))) != len(codes) || codes[0] == "" {
		t.Errorf("codes %v", codes)
	}
}
