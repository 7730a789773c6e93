// SPDX-License-Identifier: Apache-2.0

package records_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	apirecords "fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/records"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// plans stands in for the leader: it plans from the record of a group.
type plans struct {
	*grouptest.Group
	lost bool
	busy string // why outside load balancers are not planned
	out  *world.World
	seen []leader.Admitted // that Services are planned from
	next map[fsm.Subject]leader.NextCall
}

func (p plans) Asked(context.Context) (leader.Input, bool) {
	return leader.Input{Record: p.Read(), Views: p.seen}, !p.lost
}

func (p plans) Status() leader.Status {
	return leader.Status{Sources: []leader.SourceStatus{{Name: "kubernetes", Usable: true}, {Name: "manifests:/etc/x", Why: "not listed yet"}}}
}

func why(t testing.TB, s fairleadv1connect.RecordServiceHandler, subject string) apirecords.Why {
	t.Helper()
	answer, err := s.Why(t.Context(), &fairleadv1.WhyRequest{Subject: subject})
	if err != nil {
		t.Fatal(err)
	}
	var d apirecords.Why
	if err := json.Unmarshal([]byte(answer.GetDocument()), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestWhyIsAsReleased(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t)
	g.Apply(t, &fsm.PutHold{ID: "endpointslice-1", Of: "EndpointSlice", Subjects: []string{"shop/web"}, Why: "12 of 12 are absent"})
	s := records.New(records.Options{Member: "m1", Record: g, Leader: g, Planner: plans{Group: g}, Sessions: func() map[fsm.PeerName]string {
		return map[fsm.PeerName]string{"tor": "established"}
	}})
	var got bytes.Buffer
	for _, subject := range []string{"shop/web", "late"} {
		answer, err := s.Why(t.Context(), &fairleadv1.WhyRequest{Subject: subject})
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Indent(&got, []byte(answer.GetDocument()), "", "  "); err != nil {
			t.Fatal(err)
		}
		got.WriteByte('\n')
	}
	golden := filepath.Join("testdata", "why.golden")
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("got\n%swant\n%s", got.Bytes(), want)
	}
}

func TestWhyFindsServicesByNameAndAddress(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t)
	g.Apply(t, &fsm.PutService{Service: fsm.Service{ID: "zoo/web", UID: "u"}}, &fsm.PutService{Service: fsm.Service{ID: "zoo/gone", UID: "u"}},
		&fsm.DeleteService{ID: "zoo/gone", UID: "u"})
	s := records.New(records.Options{Member: "m1", Record: g, Leader: g, Planner: plans{Group: g}})
	for subject, want := range map[string]string{"shop/web": "shop/web", "late": "shop/late", "192.0.2.10": "shop/web", "::ffff:192.0.2.10": "shop/web", "2001:db8::10": "shop/late"} {
		if d := why(t, s, subject); len(d.Services) != 1 || d.Services[0].Name != want {
			t.Errorf("%s: %+v, want %s", subject, d.Services, want)
		}
	}
	for subject, texts := range map[string][]string{
		"shop/wbe":     {"there is no such Service; did you mean shop/web or zoo/web?", "`fairlead get services`"},
		"lat":          {"did you mean shop/late"},
		"web":          {"several namespaces", "shop/web, zoo/web", "-n"},
		"zoo/gone":     {"it is gone since 1.", "`fairlead describe service zoo/gone`"},
		"":             {"there is no such Service"},
		"192.0.2.11":   {"it is free, in pool edge"},
		"198.51.100.1": {"it is the address of node n1"},
		"203.0.113.1":  {"it is in no pool"},
	} {
		_, err := s.Why(t.Context(), &fairleadv1.WhyRequest{Subject: subject})
		for _, text := range texts {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%q: %v; it lacks %q", subject, err, text)
			}
		}
	}
}

// A Service that no source can use is there, for whoever asks why it has no address.
func TestWhyTellsOfServicesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t)
	w := &world.World{Source: "manifests:/etc/x", Problems: []world.Problem{
		{Severity: world.Failed, Object: world.Ref{Kind: world.KindService, ID: world.ID{Namespace: "shop", Name: "bad"}}, Field: "spec.ports[0].port", Why: "0 is no port", Remedy: "use 1 to 65535"},
		{Severity: world.Degraded, Object: world.Ref{Kind: world.KindService, ID: world.ID{Namespace: "shop", Name: "odd"}}, Why: "half of it is used"},
	}}
	s := records.New(records.Options{Member: "m1", Record: g, Leader: g, Planner: plans{Group: g, seen: []leader.Admitted{{World: w}}}})
	for subject, want := range map[string]string{
		"shop/bad": "spec.ports[0].port: 0 is no port (use 1 to 65535)", "bad": "it cannot be used as it is written", "shop/odd": "there is no such Service",
		"zoo/bad": "there is no such Service",
	} {
		_, err := s.Why(t.Context(), &fairleadv1.WhyRequest{Subject: subject})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; it lacks %q", subject, err, want)
		}
	}
}

// A pool that cannot be used as it is written may be the one that a Service without an address lacks. Of others it says nothing.
func TestWhyTellsOfPoolsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t)
	ports := []world.ServicePort{{Protocol: world.TCP, Port: 80}}
	lacks := &world.Service{Meta: world.Meta{ID: world.ID{Namespace: "shop", Name: "lacks"}}, Type: world.LoadBalancer, Extra: &world.Extra{Pool: "spare"}, Ports: ports}
	named := &world.Service{Meta: world.Meta{ID: world.ID{Namespace: "shop", Name: "named"}}, Type: world.LoadBalancer, ExternalIPs: []netip.Addr{addr("203.0.113.77")}, Ports: ports}
	w := &world.World{Services: []*world.Service{lacks, named}, Problems: []world.Problem{
		{Severity: world.Failed, Object: world.Ref{Kind: world.KindPool, ID: world.ID{Name: "spare"}}, Field: "spec.addresses[0]", Why: "it ends before it begins"},
		{Severity: world.Degraded, Object: world.Ref{Kind: world.KindPool, ID: world.ID{Name: "odd"}}, Why: "half of it is used"},
	}}
	s := records.New(records.Options{Member: "m1", Record: g, Leader: g, Planner: plans{Group: g, seen: []leader.Admitted{{World: w}}}})
	if got := why(t, s, "shop/lacks").Services[0].Problems; len(got) != 1 || !strings.Contains(got[0], "spare: spec.addresses[0]: it ends before it begins") {
		t.Errorf("the Service that lacks an address: %q", got)
	}
	if got := why(t, s, "shop/named").Services[0].Problems; len(got) != 0 {
		t.Errorf("the Service that names its address: %q", got)
	}
}

// Why a Service stays that no source shows is told with what ends it: its manifest is mended, a hold is released, or a list is complete.
func TestWhyTellsWhatEndsAnAbsence(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t)
	broken := world.Problem{Severity: world.Failed, Object: world.Ref{Kind: world.KindService, ID: world.ID{Namespace: "shop", Name: "web"}}, Field: "spec.ports[0].port", Why: "0 is no port"}
	for name, step := range map[string]struct {
		problems           []world.Problem
		whyNot             leader.Reason
		code, text, remedy string
	}{
		"unusable": {[]world.Problem{broken}, leader.Reason{Code: leader.WaitsForEvidence, Text: "absent from a list"}, "invalid", "it cannot be used as it is written, and stays as it was: Service shop/web: spec.ports[0].port: 0 is no port", ""},
		"held":     {nil, leader.Reason{Code: leader.WaitsForOperator, Text: "it is held for an operator: 12 of 12 are absent"}, "held", "it is held for an operator", "`fairlead holds release"},
		"unsure":   {nil, leader.Reason{Code: leader.WaitsForEvidence, Text: "absent from a list"}, "evidence", "absent from a list", "a complete list settles it"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := leader.Admitted{
				World:  &world.World{Problems: step.problems, Kinds: []world.KindView{{Kind: world.KindService, Listed: true}}},
				WhyNot: func(world.Kind, world.ID) leader.Reason { return step.whyNot },
			}
			s := records.New(records.Options{Member: "m1", Record: g, Leader: g, Planner: plans{Group: g, seen: []leader.Admitted{seen}}})
			reasons := why(t, s, "shop/web").Services[0].Reasons
			if len(reasons) != 1 || reasons[0].Code != step.code || !strings.Contains(reasons[0].Text, step.text) || !strings.Contains(reasons[0].Remedy, step.remedy) {
				t.Errorf("told %+v", reasons)
			}
		})
	}
}

// A Service that goes, and that the record holds no more, gets no address any more: nothing is about to be decided on it.
func TestWhyTellsThatAServiceWithoutAddressesIsBeingDeleted(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t)
	w := &world.World{Services: []*world.Service{{Meta: world.Meta{ID: world.ID{Namespace: "shop", Name: "gone"}, Deleting: true}, Type: world.LoadBalancer}}}
	s := records.New(records.Options{Member: "m1", Record: g, Leader: g, Planner: plans{Group: g, seen: []leader.Admitted{{World: w}}}})
	d := why(t, s, "shop/gone").Services[0]
	if d.State != apirecords.ServiceDeleting || d.Summary != "it is being deleted, and has no address" || len(d.Reasons) != 1 || d.Reasons[0].Code != string(leader.Deleting) {
		t.Errorf("told as %+v", d)
	}
}

// A member that does not lead hands the question on, and answers from its own record where nobody else can.
func TestWhyIsHandedToTheLeader(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t)
	leading := serve(t, records.Options{Member: "m1", Record: g, Leader: g, Planner: plans{Group: g}})
	behind := grouptest.NewGroup(t) // its record lacks everything
	behind.Change(func(k *grouptest.Knobs) { k.Follow = true })
	to := leading(pki.Member).Record
	follower := func(name string, client fairleadv1connect.RecordServiceClient) *records.Service {
		return records.New(records.Options{
			Member: "m2", Record: behind, Leader: behind, Planner: plans{Group: behind, lost: true},
			ToLeader: func() (string, fairleadv1connect.RecordServiceClient) { return name, client },
		})
	}
	s := follower("m1", to)
	if d := why(t, s, "shop/web"); d.AnsweredBy != "m1" || d.Leader != "m1" || d.Basis != apirecords.WhySources || d.Doubt != "" || len(d.Sources) != 2 {
		t.Errorf("not by the leader: %+v", d)
	}
	_, err := s.Why(t.Context(), &fairleadv1.WhyRequest{Subject: "shop/wbe"})
	if err == nil || !strings.Contains(err.Error(), "did you mean shop/web?") {
		t.Errorf("the leader's refusal became %v", err)
	}
	behind.Apply(t, &fsm.PutService{Service: fsm.Service{ID: "shop/old", UID: "u"}})
	for text, s := range map[string]*records.Service{
		"nobody leads":                  follower("", nil),
		"the API address of the leader": follower("m1", nil),
		"the leader m1 did not answer":  follower("m1", broken{}),
		"m2 leads, and waits for":       follower("m2", nil),
	} {
		d := why(t, s, "shop/old")
		if d.AnsweredBy != "m2" || d.Basis != apirecords.WhyRecord || !strings.Contains(d.Doubt, text) || !strings.Contains(d.Doubt, "from the record of m2 alone") {
			t.Errorf("%s: %+v", text, d)
		}
	}
	here, err := s.Why(t.Context(), &fairleadv1.WhyRequest{Subject: "shop/old", Here: true})
	if err != nil || !strings.Contains(here.GetDocument(), `"answeredBy":"m2"`) {
		t.Errorf("asked to answer by itself: %v, %v", here, err)
	}
}

// broken is a leader that cannot be reached.
type broken struct {
	fairleadv1connect.RecordServiceClient
}

func (broken) Why(context.Context, *fairleadv1.WhyRequest) (*fairleadv1.WhyResponse, error) {
	return nil, errors.New("connection refused")
}

func TestWhyIsForViewersAndNotForAgents(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t)
	as := serve(t, records.Options{Member: "m1", Record: g, Leader: g, Planner: plans{Group: g}})
	if _, err := as(pki.Viewer).Record.Why(t.Context(), &fairleadv1.WhyRequest{Subject: "shop/web"}); err != nil {
		t.Error(err)
	}
	var refusal *admin.Refusal
	if _, err := as(pki.Agent).Record.Why(t.Context(), &fairleadv1.WhyRequest{Subject: "shop/web"}); !errors.As(err, &refusal) || refusal.Code != admin.Forbidden {
		t.Errorf("an agent got %v", err)
	}
	if _, err := as(pki.Viewer).Record.Why(t.Context(), &fairleadv1.WhyRequest{Subject: strings.Repeat("x", 20<<10)}); err == nil {
		t.Error("20 KiB of a name were taken")
	}
}

// Whatever happened to the hops of an address: each node is told of once, and what is said of it is what the record has.
func TestPropertyWhyAgreesWithTheRecord(t *testing.T) {
	t.Parallel()
	testkit.Check(t, func(t *rapid.T) {
		g := grouptest.NewGroup(t)
		vip, nodes, members := addr("192.0.2.10"), []fsm.NodeID{"n0", "n1", "n2", "n3"}, []string{"m0", "m1", "m2"}
		node := func(i int) netip.Addr { return addr(fmt.Sprintf("198.51.100.%d", i)) }
		web := fsm.Service{ID: "shop/web", UID: "u", Rare: &fsm.Rare{External: []netip.Addr{vip}}}
		for i, n := range nodes {
			g.Apply(t, &fsm.PutNode{ID: n, UID: string(n), Addresses: []netip.Addr{node(i)}, Eligible: true}, &fsm.RegisterBoot{Node: n, Boot: "b"})
			if rapid.Bool().Draw(t, "endpoint") {
				web.Endpoints = append(web.Endpoints, fsm.Endpoint{Address: addr(fmt.Sprintf("10.0.0.%d", i)), Node: n, Ready: true})
			}
		}
		for _, m := range members {
			g.Apply(t, &fsm.ReportMember{Server: fsm.ServerID(m), Name: m, Format: fsm.NewestFormat, Run: "r"})
		}
		g.Apply(t, &fsm.PutService{Service: web}, &fsm.Allocate{Address: vip, Service: "shop/web"})
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			now := g.Read().Revision()
			i := rapid.IntRange(0, 3).Draw(t, "which")
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0, 1:
				c := &fsm.SetRoute{Prefix: fsm.HostPrefix(vip)}
				for j, n := range nodes {
					if rapid.Bool().Draw(t, "hop") {
						c.Hops = append(c.Hops, fsm.HopSpec{Node: n, Address: node(j)})
					}
				}
				g.Apply(t, c)
			case 2:
				mark := fsm.AppliedMark{Node: nodes[i], Boot: "b", Upto: now}
				if rapid.Bool().Draw(t, "failed") {
					mark.Failed = []netip.Prefix{fsm.HostPrefix(vip)}
				}
				g.Apply(t, &fsm.Acknowledge{Marks: []fsm.AppliedMark{mark}})
			case 3:
				g.Apply(t, &fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{{Server: fsm.ServerID(members[i%3]), Run: "r", Upto: now}}})
			case 4:
				g.Apply(t, &fsm.SetLiveness{Node: nodes[i], Boot: "b", Liveness: rapid.SampledFrom([]fsm.Liveness{fsm.NodeUp, fsm.AgentDown, fsm.NodeDown}).Draw(t, "liveness")})
			}
		}
		agrees(t, g, nodes)
	})
}

func agrees(t *rapid.T, g *grouptest.Group, nodes []fsm.NodeID) {
	s := records.New(records.Options{Member: "m1", Record: g, Leader: g, Planner: plans{Group: g}})
	answer, err := s.Why(context.Background(), &fairleadv1.WhyRequest{Subject: "shop/web"})
	if err != nil {
		t.Fatal(err)
	}
	var d apirecords.Why
	if err := json.Unmarshal([]byte(answer.GetDocument()), &d); err != nil {
		t.Fatal(err)
	}
	a := d.Services[0].Addresses[0]
	var told []fsm.NodeID
	announced := 0
	for _, n := range a.Nodes {
		told = append(told, fsm.NodeID(n.Node))
		want := apirecords.NodeNone
		v := g.Read()
		if r, ok := fsm.Get[*fsm.Route](v, fsm.TableRoutes, "192.0.2.10/32"); ok {
			for _, h := range r.NextHops {
				if string(h.Node()) == n.Node {
					want = string(v.HopState(r, h))
				}
			}
		}
		if n.State != want && (n.State != apirecords.NodePlanned || want != apirecords.NodeNone) {
			t.Fatalf("%s is %s, by the record %s", n.Node, n.State, want)
		}
		if is := n.State == string(fsm.HopAnnounced); is != (len(n.Members) > 0) {
			t.Fatalf("%s is %s, and announced by %v", n.Node, n.State, n.Members)
		} else if is {
			announced++
		}
		if waits := n.Wanted && (want == string(fsm.HopWanted) || want == string(fsm.HopAcknowledged)); waits != (len(n.WaitsFor) > 0) && want != string(fsm.HopWithdrawing) {
			t.Fatalf("%s is %s, and waits for %v", n.Node, n.State, n.WaitsFor)
		}
	}
	if !slices.Equal(told, nodes) || a.Announced != announced {
		t.Fatalf("told of %v, %d announced; want each of %v once, and %d", told, a.Announced, nodes, announced)
	}
}

// What is waited for is said of whoever it hangs on, since when, and with the remedy; a script of a hop's life.
func TestWhyTellsOnWhomThingsHang(t *testing.T) {
	t.Parallel()
	g := grouptest.NewGroup(t)
	s := records.New(records.Options{Member: "m1", Record: g, Leader: g, Planner: plans{Group: g}})
	vip, up := addr("192.0.2.10"), func(n fsm.NodeID) *fsm.SetLiveness {
		return &fsm.SetLiveness{Node: n, Boot: "b", Liveness: fsm.NodeUp}
	}
	web := fsm.Service{ID: "shop/web", UID: "u", Rare: &fsm.Rare{External: []netip.Addr{vip}}, Endpoints: []fsm.Endpoint{
		{Address: addr("10.0.0.1"), Node: "n1", Ready: true}, {Address: addr("10.0.0.2"), Node: "n2", Ready: true},
	}}
	hops := func(nodes ...int) *fsm.SetRoute {
		c := &fsm.SetRoute{Prefix: fsm.HostPrefix(vip)}
		for _, n := range nodes {
			c.Hops = append(c.Hops, fsm.HopSpec{Node: fsm.NodeID(fmt.Sprintf("n%d", n)), Address: addr(fmt.Sprintf("198.51.100.%d", n))})
		}
		return c
	}
	ack := func(n fsm.NodeID, failed ...netip.Prefix) *fsm.Acknowledge {
		return &fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: n, Boot: "b", Upto: g.Read().Revision(), Failed: failed}}}
	}
	mark := func(withdrawn bool) *fsm.ReportAnnounced {
		m := fsm.AnnouncedMark{Server: "m1-a", Run: "r", Upto: g.Read().Revision()}
		if withdrawn {
			m.Withdrawn = m.Upto
		}
		return &fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{m}}
	}
	g.Apply(t,
		&fsm.PutNode{ID: "n1", UID: "1", Addresses: []netip.Addr{addr("198.51.100.1")}, Eligible: true},
		&fsm.PutNode{ID: "n2", UID: "2", Addresses: []netip.Addr{addr("198.51.100.2")}, Eligible: true},
		&fsm.PutPeer{Peer: fsm.Peer{Name: "tor", Address: addr("198.51.100.254"), ASN: 65001, LocalASN: 65000}},
		&fsm.ReportMember{Server: "m1-a", Name: "m1", Format: fsm.NewestFormat, Run: "r"}, &fsm.PutService{Service: web},
	)
	for _, step := range []struct {
		name   string
		does   func()
		states string
		waits  []string
	}{
		{"not routed yet", func() { g.Apply(t, &fsm.Allocate{Address: vip, Service: "shop/web"}) }, "planned planned", []string{"leader : has yet to commit n1", "leader : has yet to commit n2"}},
		{"no agent", func() { g.Apply(t, hops(1, 2)) }, "wanted wanted", []string{"node n1: has not acknowledged 192.0.2.10: no agent", "node n2: has not acknowledged"}},
		{"an agent", func() { g.Apply(t, &fsm.RegisterBoot{Node: "n1", Boot: "b"}) }, "wanted wanted", []string{"node n1: has not acknowledged 192.0.2.10 yet", "no agent"}},
		{"it fails", func() { g.Apply(t, &fsm.RegisterBoot{Node: "n2", Boot: "b"}, ack("n1", fsm.HostPrefix(vip))) }, "wanted wanted", []string{"node n1: could not carry out 192.0.2.10 on n1", "node n2: has not"}},
		{"acknowledged", func() { g.Apply(t, ack("n1"), ack("n2")) }, "acknowledged acknowledged", []string{"member m1: has not announced 192.0.2.10 via n1", "via n2"}},
		{"announced", func() { g.Apply(t, mark(true)) }, "announced announced", nil},
		{"down", func() { g.Apply(t, &fsm.SetLiveness{Node: "n2", Boot: "b", Liveness: fsm.NodeDown}) }, "announced announced", []string{"leader : has yet to withdraw 192.0.2.10 via n2"}},
		{"withdrawn", func() { g.Apply(t, hops(1), mark(false)) }, "announced withdrawing", []string{"member m1: has not withdrawn 192.0.2.10 via n2"}},
		{"back", func() { g.Apply(t, up("n2")) }, "announced withdrawing", []string{"leader : has yet to commit n2"}},
	} {
		t.Run(step.name, func(t *testing.T) {
			step.does()
			d := why(t, s, "shop/web").Services[0]
			var states []string
			for _, n := range d.Addresses[0].Nodes {
				states = append(states, n.State)
			}
			if got := strings.Join(states, " "); got != step.states {
				t.Errorf("states %s, want %s", got, step.states)
			}
			if len(d.Pending) != len(step.waits) {
				t.Fatalf("%d things are waited for, want %d: %+v", len(d.Pending), len(step.waits), d.Pending)
			}
			for i, want := range step.waits {
				if got := d.Pending[i].On + " " + d.Pending[i].Name + ": " + d.Pending[i].What; !strings.Contains(got, want) {
					t.Errorf("waits for %q, want %q", got, want)
				}
			}
		})
	}
	g.Apply(t, &fsm.SetLiveness{Node: "n2", Boot: "b", Liveness: fsm.NodeDown})
	down := g.Read().Revision()
	g.Apply(t, mark(true))
	if _, err := g.Commit(fsm.Proposal{Command: &fsm.FinishWithdrawal{Prefix: fsm.HostPrefix(vip), Node: "n2", Address: addr("198.51.100.2"), Since: sinceOf(g, "n2")}}); err != nil {
		t.Fatal(err)
	}
	n2 := why(t, s, "shop/web").Services[0].Addresses[0].Nodes[1]
	if n2.State != apirecords.NodeNone || n2.Code != string(leader.NodeDown) || n2.Since == nil || n2.Since.Index != uint64(down.Index) || n2.Time == "" {
		t.Errorf("a node that is down since %s is told as %+v", down, n2)
	}
}

func sinceOf(g *grouptest.Group, node fsm.NodeID) (since fsm.Revision) {
	r, _ := fsm.Get[*fsm.Route](g.Read(), fsm.TableRoutes, "192.0.2.10/32")
	for _, h := range r.NextHops {
		if h.Node() == node {
			since = h.Since
		}
	}
	return since
}

func (p plans) AskedOutside(context.Context) (leader.OutsideInput, string) {
	if p.lost {
		return leader.OutsideInput{}, "this member does not lead"
	}
	if p.busy != "" {
		return leader.OutsideInput{}, p.busy
	}
	in := leader.OutsideInput{Record: p.Read()}
	if p.out != nil {
		in.Views = []leader.Admitted{{World: p.out, Complete: true}}
	}
	return in, ""
}

func (p plans) NextCalls(context.Context, []fsm.Subject) (map[fsm.Subject]leader.NextCall, bool) {
	return p.next, !p.lost
}

// An address that all members have on their sessions, and that no peer is sent, is not announced: what is shown agrees, and the peer is named.
func TestWhySaysThatNobodyIsSentAnAddress(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t)
	g.Apply(t, &fsm.ReportSessions{Members: []fsm.MemberSessions{{Server: "m1-a1b2", Run: "r1"}}})
	s := records.New(records.Options{Member: "m1", Record: g, Leader: g, Planner: plans{Group: g}})
	want := "no session that takes IPv4 is open with whom it is to be sent to: BGPPeer tor (198.51.100.254); "
	d := why(t, s, "shop/web").Services[0]
	if a := d.Addresses[0]; !strings.Contains(d.Summary, "192.0.2.10 is announced to no BGP peer: "+want) || a.Announced > 0 || len(a.Nodes[0].Members) > 0 ||
		!strings.HasPrefix(a.Nodes[0].Unreached, want) {
		t.Errorf("told %q, of the address %+v", d.Summary, a)
	}
	if !slices.ContainsFunc(d.Pending, func(p apirecords.WhyPending) bool { return p.On == "operator" && strings.Contains(p.What, want) }) {
		t.Errorf("nobody is waited for: %+v", d.Pending)
	}
	g.Apply(t, &fsm.ReportSessions{Members: []fsm.MemberSessions{{Server: "m1-a1b2", Run: "r1", Open: []fsm.Reach{{Peer: "tor", IPv4: true}}}}})
	if d := why(t, s, "shop/web").Services[0]; !strings.Contains(d.Summary, "192.0.2.10 is announced via 1 of 2 nodes") {
		t.Errorf("told %q with a session", d.Summary)
	}
}

// An address that nodes answer for on their segment is told with who does, and waits for no peer.
func TestWhySaysWhoAnswersOnTheSegment(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t)
	g.Apply(t, &fsm.ReportSessions{Members: []fsm.MemberSessions{{Server: "m1-a1b2", Run: "r1"}}})
	s := records.New(records.Options{Member: "m1", Record: g, Leader: g, Planner: plans{Group: g}})
	pool := why(t, s, "shop/web").Services[0].Addresses[0].Pool
	g.Apply(t, &fsm.PutL2Advertisement{Advertisement: fsm.L2Advertisement{Name: "lan", Pools: []fsm.PoolName{fsm.PoolName(pool)}, EveryNode: true}})
	d := why(t, s, "shop/web").Services[0]
	if !strings.Contains(d.Summary, "192.0.2.10 is set up, and n1 answers for it on its segment") || d.Addresses[0].Holder != "n1" {
		t.Errorf("told %q with a lease", d.Summary)
	}
	for _, p := range d.Pending {
		if strings.Contains(p.What, "192.0.2.10") && p.On == "operator" {
			t.Errorf("waits for %+v", p)
		}
	}
	g.Apply(t, &fsm.ReportSessions{Members: []fsm.MemberSessions{{Server: "m1-a1b2", Run: "r1", Open: []fsm.Reach{{Peer: "tor", IPv4: true}}}}})
	if d = why(t, s, "shop/web").Services[0]; !strings.Contains(d.Summary, "192.0.2.10 is announced via 1 of 2 nodes, and n1 answers for it on its segment") {
		t.Errorf("told %q with a session", d.Summary)
	}
	lease, _ := fsm.Get[*fsm.Lease](g.Read(), fsm.TableLeases, "192.0.2.10")
	g.Apply(t, &fsm.EndLease{VIP: lease.VIP, Fence: lease.Fence})
	if d = why(t, s, "shop/web").Services[0]; !strings.Contains(d.Summary, "nodes, and no node answers for it on its segment yet (`fairlead get leases`)") {
		t.Errorf("told %q without a lease", d.Summary)
	}
}

// A BGPPeer that has to wait, since another one has its address, is in no list: what is asked about an address tells of it.
func TestWhyTellsOfPeersThatWaitForOthers(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t)
	peer := func(name string, port uint16) *world.Peer {
		return &world.Peer{Meta: world.Meta{ID: world.ID{Name: name}}, Address: addr("198.51.100.254"), Port: port, ASN: 65001, OwnASN: 65000}
	}
	w := &world.World{Peers: []*world.Peer{peer("again", 1790), peer("tor", 179)}}
	s := records.New(records.Options{Member: "m1", Record: g, Leader: g, Planner: plans{Group: g, seen: []leader.Admitted{{World: w}}}})
	if got := why(t, s, "shop/web").Services[0].Problems; len(got) != 1 || !strings.Contains(got[0], "BGPPeer again: peer tor has the address 198.51.100.254 already") {
		t.Errorf("told %q", got)
	}
}

// Peers are those that the address is to be sent to, and not all there are; and who is sent it by no advertisement hears which one leaves it out.
func TestWhyNamesThePeersThatAreToBeSentIt(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t)
	s := records.New(records.Options{Member: "m1", Record: g, Leader: g, Planner: plans{Group: g}})
	peers := func() (names []string) {
		for _, p := range why(t, s, "shop/web").Services[0].Addresses[0].Peers {
			names = append(names, p.Name)
		}
		return names
	}
	for _, ad := range fsm.List[*fsm.Advertisement](g.Read(), fsm.TableAdvertisements) {
		g.Apply(t, &fsm.DeleteAdvertisement{Name: ad.Name})
	}
	before := peers()
	if len(before) == 0 {
		t.Fatal("there are no peers")
	}
	ad := fsm.Advertisement{Name: "ad", Peers: []fsm.PeerName{"elsewhere"}}
	if g.Apply(t, &fsm.PutAdvertisement{Advertisement: ad}); len(peers()) > 0 {
		t.Errorf("it is to be sent to %v, and an advertisement names another peer", peers())
	}
	ad.Terms.OnlyServices = true
	g.Apply(t, &fsm.ReportSessions{Members: []fsm.MemberSessions{{Server: "m1-a1b2", Run: "r1"}}})
	pool := why(t, s, "shop/web").Services[0].Addresses[0].Pool
	g.Apply(t, &fsm.PutAdvertisement{Advertisement: ad}, &fsm.PutAdvertisement{Advertisement: fsm.Advertisement{
		Name: fsm.Unadvertised, Pools: []fsm.PoolName{fsm.PoolName(pool)}, Peers: []fsm.PeerName{fsm.Nobody}, Terms: fsm.AdvertisementTerms{Fallback: true},
	}})
	if d := why(t, s, "shop/web").Services[0]; !strings.Contains(d.Summary, "spec.serviceSelectors of BGPAdvertisement ad leave its Service out") {
		t.Errorf("told %q", d.Summary)
	}
	if g.Apply(t, &fsm.DeleteAdvertisement{Name: fsm.Unadvertised}); !slices.Equal(peers(), before) {
		t.Errorf("it is to be sent to %v, want %v", peers(), before)
	}
}
