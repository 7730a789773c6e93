// SPDX-License-Identifier: Apache-2.0

package records_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	apirecords "fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/records"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
)

// left tells how far a drain has come, in few words.
func left(t *testing.T, s *records.Service, name string) string {
	t.Helper()
	var d apirecords.Drain
	if err := json.Unmarshal([]byte(get(t, s, &fairleadv1.GetRequest{Kind: "drains", Name: name}).GetDocuments()[0]), &d); err != nil {
		t.Fatal(err)
	}
	words := []string{fmt.Sprintf("done=%t", d.Done)}
	for _, l := range d.Left {
		words = append(words, fmt.Sprintf("%s via %s %s %v", l.Prefix, l.Node, l.State, l.WaitsFor))
	}
	return strings.Join(words, ", ")
}

// A drain is over once no switch leads there, which every member has to say: what is kept for want of another one, and what is being
// withdrawn, is left.
func TestDrainIsOverOnceNoSwitchLeadsThere(t *testing.T) {
	t.Parallel()
	g, s := furnished(t)
	expect := func(name, want string) {
		t.Helper()
		if got := left(t, s, name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	prefix := netip.MustParsePrefix("192.0.2.10/32")
	g.Apply(t, &fsm.BeginDrain{Of: fsm.DrainNode, Name: "n1"}, &fsm.BeginDrain{Of: fsm.DrainNode, Name: "n2"})
	expect("node/n1", "done=false, 192.0.2.10/32 via n1 announced []")
	expect("node/n2", "done=false, 192.0.2.10/32 via n2 wanted []")
	g.Apply(t, &fsm.SetRoute{Prefix: prefix, Hops: []fsm.HopSpec{{Node: "n2", Address: addr("198.51.100.2")}}})
	since := g.Read().Revision()
	expect("node/n1", "done=false, 192.0.2.10/32 via n1 withdrawing [m1]")
	g.Apply(t, &fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{{Server: "m1-a1b2", Run: "r1", Upto: since, Withdrawn: since}}})
	expect("node/n1", "done=false, 192.0.2.10/32 via n1 withdrawing []")
	lease, _ := fsm.Get[*fsm.Lease](g.Read(), fsm.TableLeases, "192.0.2.10")
	g.Apply(t, &fsm.EndLease{VIP: lease.VIP, Fence: lease.Fence}) // its node answers for the address no more
	g.Apply(t, &fsm.FinishWithdrawal{Prefix: prefix, Node: "n1", Address: addr("198.51.100.1"), Since: since})
	expect("node/n1", "done=true")
}

// What a node counted of its flows is told of its drain, and of no other one.
func TestDrainTellsOfFlows(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t)
	s := records.New(records.Options{Record: g, Leader: g, Flows: func(n fsm.NodeID) (records.Flows, bool) {
		return records.Flows{Open: 7, Busy: 2, Age: time.Second, Why: "x"}, n == "n1"
	}})
	g.Apply(t, &fsm.BeginDrain{Of: fsm.DrainNode, Name: "n1"}, &fsm.BeginDrain{Of: fsm.DrainNode, Name: "n2"}, &fsm.BeginDrain{Of: fsm.DrainService, Name: "shop/web"})
	for name, want := range map[string]string{
		"node/n1": `"flows":[{"node":"n1","open":7,"busy":2,"ageMs":1000,"why":"x"}]`, "node/n2": `"flows":[]`, "service/shop/web": `"flows":[]`,
	} {
		if got := get(t, s, &fairleadv1.GetRequest{Kind: "drains", Name: name}).GetDocuments()[0]; !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// The drain of a Service takes its next hops away whatever else there is: none of them waits for another one.
func TestDrainOfAServiceWaitsForTheLeaderAlone(t *testing.T) {
	t.Parallel()
	g, s := furnished(t)
	g.Apply(t, &fsm.BeginDrain{Of: fsm.DrainService, Name: "shop/web"}, &fsm.BeginDrain{Of: fsm.DrainNode, Name: "n1"})
	for name, want := range map[string]string{
		"service/shop/web": `"why":"the leader has yet to withdraw it"`,
		"node/n1":          "`fairlead why 192.0.2.10` tells why",
	} {
		if got := get(t, s, &fairleadv1.GetRequest{Kind: "drains", Name: name}).GetDocuments()[0]; !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// Of an address that is shared, a drain waits for nothing while others that are not drained own it.
func TestDrainOfAServiceWaitsForItsOwnAddresses(t *testing.T) {
	t.Parallel()
	g, s := furnished(t)
	g.Apply(t, &fsm.BeginDrain{Of: fsm.DrainService, Name: "shop/web"})
	if got, want := left(t, s, "service/shop/web"), "done=false, 192.0.2.10/32 via n1 announced [], 192.0.2.10/32 via n2 wanted []"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	g.Apply(t, &fsm.Allocate{Address: addr("192.0.2.10"), Service: "shop/late", Pool: "edge", Ports: []fsm.Port{{Protocol: fsm.TCP, Number: 8443}}, SharingKey: "edge"})
	if got, want := left(t, s, "service/shop/web"), "done=true"; got != want {
		t.Errorf("shared: %s, want %s", got, want)
	}
}

// A member that is drained is through once another one leads and it has ended its sessions.
func TestDrainOfAMemberIsOverOnceItNeitherLeadsNorAnnounces(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t)
	leader := "m1"
	s := records.New(records.Options{Record: g, Leader: g, ToLeader: func() (string, fairleadv1connect.RecordServiceClient) { return leader, nil }})
	states := func() (out []string) {
		var d apirecords.Drain
		if err := json.Unmarshal([]byte(get(t, s, &fairleadv1.GetRequest{Kind: "drains", Name: "member/m1"}).GetDocuments()[0]), &d); err != nil {
			t.Fatal(err)
		}
		for _, l := range d.Left {
			out = append(out, fmt.Sprint(l.State, l.WaitsFor))
		}
		if d.Done != (len(out) == 0) {
			t.Errorf("done %t with %v", d.Done, out)
		}
		return out
	}
	expect := func(want ...string) {
		t.Helper()
		if got := states(); !slices.Equal(got, want) {
			t.Errorf("left %q, want %q", got, want)
		}
	}
	announced := func(server fsm.ServerID, upto fsm.Revision) {
		t.Helper()
		m, _ := fsm.Get[*fsm.Member](g.Read(), fsm.TableMembers, string(server))
		g.Apply(t, &fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{{Server: server, Run: m.Run, Upto: upto}}})
	}
	g.Apply(t, &fsm.ReportMember{Server: "m2-x", Name: "m2", Run: "r", Format: fsm.NewestFormat}, &fsm.BeginDrain{Of: fsm.DrainMember, Name: "m1"})
	since := g.Read().Revision()
	expect("leading[]", "announcing[m2]")
	leader = "m2"
	announced("m2-x", since)
	expect("announcing[]")
	g.Apply(t, &fsm.StepAside{Name: "m1", Since: since})
	expect("ending[m1]")
	announced("m1-a1b2", g.Read().Revision())
	expect()
}

// A group of an older format is never proposed what its members cannot read: they would end there.
func TestDrainIsRefusedBeforeItsFormat(t *testing.T) {
	t.Parallel()
	state := fsmtest.NewOf(t, "g1", fsm.FormatDrains-1)
	s := records.New(records.Options{Record: state}) // without a proposer
	for _, undo := range []bool{false, true} {
		_, err := s.Drain(t.Context(), &fairleadv1.DrainRequest{Of: "node", Name: "n1", Undo: undo})
		if err == nil || !strings.Contains(err.Error(), "fairlead raft finalize") {
			t.Errorf("undo %t: %v", undo, err)
		}
	}
}

// A drain that is refused tells what helps, of the kind that it is of.
func TestRefusedDrainTellsWhatHelps(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t)
	s := records.New(records.Options{Member: "m1", Record: g, Leader: g, Proposer: g})
	refused := func(of, name string, undo bool) string {
		t.Helper()
		_, err := s.Drain(t.Context(), &fairleadv1.DrainRequest{Of: of, Name: name, Undo: undo})
		var refusal *admin.Refusal
		if !errors.As(err, &refusal) || !strings.Contains(refusal.Why, name) {
			t.Fatalf("%s %s: %v", of, name, err)
		}
		return refusal.Remedy
	}
	for of, want := range map[string]string{"node": "`fairlead get nodes`", "service": "`fairlead get services`", "member": "`fairlead get members`"} {
		for _, undo := range []bool{false, true} {
			remedy := refused(of, "shop/x", undo)
			if !strings.Contains(remedy, want) || of != "member" && strings.Contains(remedy, "member") || strings.Contains(remedy, "majority") {
				t.Errorf("%s, undo %t: %q", of, undo, remedy)
			}
		}
	}
	if remedy := refused("member", "m1", false); !strings.Contains(remedy, "majority") || !strings.Contains(remedy, "`fairlead get drains`") {
		t.Errorf("the only member: %q", remedy)
	}
}
