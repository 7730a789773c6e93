// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	api "fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/cluster/records"
	"fairlead.io/fairlead/fsm"
	fsmworld "fairlead.io/fairlead/fsm/world"
)

// thinker plans from a record, as a leader without sources would.
type thinker struct{ *grouptest.Group }

func (p thinker) Asked(context.Context) (leader.Input, bool) {
	return leader.Input{Record: p.Read()}, true
}
func (p thinker) AskedOutside(context.Context) (leader.OutsideInput, string) {
	w := fsmworld.World{Source: "manifests:/etc/x"} // which has nothing of them, as it knows
	for _, k := range fsmworld.Kinds() {
		w.Kinds = append(w.Kinds, fsmworld.KindView{Kind: k, Listed: true, Complete: true})
	}
	return leader.OutsideInput{Record: p.Read(), Views: []leader.Admitted{{World: &w, Complete: true}}}, ""
}
func (p thinker) NextCalls(context.Context, []fsm.Subject) (map[fsm.Subject]leader.NextCall, bool) {
	return map[fsm.Subject]leader.NextCall{
		fsm.SubjectOf("", "", "shop/b1"): {Action: fsm.ActionAddress, In: 1500 * time.Millisecond},
	}, true
}
func (p thinker) Status() leader.Status { return leader.Status{} }

// explained is a member whose record holds a Service with an address on many nodes, one that waits for an address, and
// one that shares the first one's.
func explained(t *testing.T) (*grouptest.Group, records.Options) {
	t.Helper()
	g := grouptest.NewGroup(t)
	vip := netip.MustParseAddr("203.0.113.10")
	host := func(i int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("198.51.100.%d", i)) }
	web := fsm.Service{ID: "shop/web", UID: "u1", Rare: &fsm.Rare{SharingKey: "edge"}, Frontends: []fsm.Frontend{{Port: fsm.Port{Protocol: fsm.TCP, Number: 80}}}}
	for i := 1; i <= 3; i++ {
		web.Endpoints = append(web.Endpoints, fsm.Endpoint{Address: netip.MustParseAddr(fmt.Sprintf("10.0.%d.5", i)), Node: fsm.NodeID(fmt.Sprintf("n%02d", i)), Ready: true})
	}
	mail := fsm.Service{ID: "shop/mail", UID: "u2", Rare: &fsm.Rare{SharingKey: "edge"}, Frontends: []fsm.Frontend{{Port: fsm.Port{Protocol: fsm.TCP, Number: 25}}}}
	late := fsm.Service{ID: "shop/late", UID: "u3", Pending: fsm.Pending{Code: "pool-exhausted", Text: "every pool has run out; add addresses to a pool"}}
	for i := 1; i <= 14; i++ {
		n := &fsm.PutNode{ID: fsm.NodeID(fmt.Sprintf("n%02d", i)), UID: "u", Addresses: []netip.Addr{host(i)}, Eligible: true}
		if i == 3 {
			n.Eligible, n.Why = false, "labelled node.kubernetes.io/exclude-from-external-load-balancers"
		}
		g.Apply(t, n)
	}
	g.Apply(t,
		&fsm.PutPool{Pool: fsm.Pool{Name: "edge", AutoAssign: true, Ranges: []fsm.Range{{From: vip, To: vip}}}},
		&fsm.PutPeer{Peer: fsm.Peer{Name: "tor", Address: netip.MustParseAddr("198.51.100.254"), ASN: 65001, LocalASN: 65000}},
		&fsm.PutService{Service: web}, &fsm.PutService{Service: mail}, &fsm.PutService{Service: late},
		&fsm.Allocate{Address: vip, Service: "shop/web", Pool: "edge", Ports: web.Ports(), SharingKey: "edge"},
		&fsm.Allocate{Address: vip, Service: "shop/mail", Pool: "edge", Ports: mail.Ports(), SharingKey: "edge"},
		&fsm.SetRoute{Prefix: fsm.HostPrefix(vip), Hops: []fsm.HopSpec{{Node: "n01", Address: host(1)}, {Node: "n02", Address: host(2)}}},
		&fsm.RegisterBoot{Node: "n01", Boot: "b1"}, &fsm.ReportMember{Server: "m1-a", Name: "m1", Format: fsm.NewestFormat, Run: "r"},
		&fsm.ReportMember{Server: "m2-a", Name: "m2", Format: fsm.NewestFormat, Run: "r"},
	)
	g.Apply(t, &fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: "n01", Boot: "b1", Upto: g.Read().Revision()}}})
	g.Apply(t, &fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{{Server: "m1-a", Run: "r", Upto: g.Read().Revision()}}})
	group, lb := "BackendGroup/shop/web/g1", fsm.BalancerID("LoadBalancer/shop/edge/e1")
	pod := func(name string) fsm.Backend {
		return fsm.Backend{Kind: "Pod", Name: name, UID: name, Port: 80, Protocol: "TCP", Target: "10.0.0.1"}
	}
	g.Apply(t,
		&fsm.PutDriver{Driver: fsm.Driver{Name: "shop/clb", URL: "http://192.0.2.7"}},
		&fsm.PutLoadBalancer{ID: lb, Driver: "shop/clb", UID: "e1", Info: []fsm.KV{{Key: "vip", Value: "198.51.100.21"}}, Synced: true},
		&fsm.PutBinding{ID: "shop/b1", Balancer: lb, Owner: group, Backend: pod("web-1")},
		&fsm.PutBinding{ID: "shop/b2", Balancer: lb, Owner: group, Backend: pod("web-2"), Address: "10.0.0.2:80"},
	)
	b1, _ := fsm.Get[*fsm.Binding](g.Read(), fsm.TableBindings, "shop/b1")
	g.Apply(t, &fsm.SetBindingAddress{ID: "shop/b1", UID: b1.UID, Message: "no such network", Failed: true})
	g.Apply(t, &fsm.BeginOperation{Action: fsm.ActionEnsure, Binding: "shop/b2", Deadline: time.Second})
	b2, _ := fsm.Get[*fsm.Binding](g.Read(), fsm.TableBindings, "shop/b2")
	op, _ := fsm.Get[*fsm.Operation](g.Read(), fsm.TableOperations, string(b2.Subject()))
	g.Apply(t, &fsm.FinishOperation{Subject: b2.Subject(), Attempt: op.Attempt, Result: fsm.ResultSucceeded, Settled: true})
	return g, records.Options{Member: "m1", Record: g, Leader: g, Planner: thinker{g}}
}

func TestWhyInEveryFormat(t *testing.T) {
	w := newWorld(t)
	_, o := explained(t)
	server := w.serve(&fakeRaft{}, records.New(o))
	for name, args := range map[string][]string{
		"why":         {"why", "shop/web"},
		"why-pending": {"why", "late", "-n", "shop"},
		"why-address": {"why", "203.0.113.10"},
		"why-outside": {"why", "backendgroup", "shop/web"},
		"why-backend": {"why", "backend", "web-1", "-n", "shop"},
		"why-lb":      {"why", "lb", "shop/edge"},
	} {
		for _, format := range []string{"table", "json", "yaml"} {
			if format != "table" && name != "why" && name != "why-outside" {
				continue
			}
			t.Run(name+"-"+format, func(t *testing.T) {
				golden(t, name+"-"+format, w.run([]string{server}, append(args, "-o", format)...).mustPrint(t))
			})
		}
	}
}

// A member on its own says how old its word is.
func TestWhySaysWhereAnAnswerMayBeOld(t *testing.T) {
	w := newWorld(t)
	g, o := explained(t)
	g.Change(func(k *grouptest.Knobs) { k.Follow = true })
	o.Planner = nil
	got := w.run([]string{w.serve(&fakeRaft{}, records.New(o))}, "why", "shop/web").mustPrint(t)
	for _, text := range []string{"nobody leads at present; this is from the record of m1 alone", "in touch with the group", "node-excluded"} {
		if !strings.Contains(got, text) {
			t.Errorf("%q is not in\n%s", text, got)
		}
	}
}

func TestWhyFailsInOneLine(t *testing.T) {
	w := newWorld(t)
	_, o := explained(t)
	server := w.serve(&fakeRaft{}, records.New(o))
	w.run([]string{server}, "why", "shop/wbe").mustFail(t, exitFailed, "why shop/wbe", "no such Service", "did you mean shop/web?", "`fairlead get services`")
	w.run([]string{server}, "why", "203.0.113.11").mustFail(t, exitFailed, "no Service has the address", "in no pool")
	w.run([]string{server}, "why").mustFail(t, exitUsage, "SERVICE|ADDRESS")
	w.run([]string{server}, "why", "a", "b").mustFail(t, exitUsage, "no kind a", "backendgroup")
	w.run([]string{server}, "why", "bg", "web").mustFail(t, exitUsage, "want NAMESPACE/NAME")
	w.run([]string{server}, "why", "lb", "none", "-n", "shop").mustFail(t, exitFailed, "why loadbalancer shop/none", "neither the record nor a source", "`fairlead get loadbalancers`")
	w.run([]string{server}, "why", "shop/web", "-n", "zoo").mustFail(t, exitUsage, "another namespace")
	w.run([]string{server}, "why", "203.0.113.10", "-n", "zoo").mustFail(t, exitUsage, "no namespace")
	w.run([]string{server}, "why", "nothing", "-n", "shop").mustFail(t, exitFailed, "why shop/nothing")
	old := w.serve(&fakeRaft{}, shop())
	w.run([]string{old}, "why", "shop/web").mustFail(t, exitFailed, "use the release of fairlead that the group runs")
	w.run([]string{w.serve(&fakeRaft{}, &oddRecord{})}, "why", "shop/web").mustFail(t, exitFailed, "cannot be read", "use the release")
}

// oddRecord answers in words of another release.
type oddRecord struct{ fakeRecord }

func (*oddRecord) Why(context.Context, *fairleadv1.WhyRequest) (*fairleadv1.WhyResponse, error) {
	return &fairleadv1.WhyResponse{Document: `{"services": 7}`}, nil
}

func TestWhyIsDocumentedWithItsFields(t *testing.T) {
	documented(t, "why", "`"+fields(reflect.TypeFor[api.Why]())+"`\n")
}

func TestWhyPrintsNoNullLists(t *testing.T) {
	w := newWorld(t)
	_, o := explained(t)
	got := w.run([]string{w.serve(&fakeRaft{}, records.New(o))}, "why", "shop/web", "-o", "json").mustPrint(t)
	var d api.Why
	if err := json.Unmarshal([]byte(got), &d); err != nil {
		t.Fatal(err)
	}
	for name, list := range map[string]any{
		"sources": d.Sources, "services": d.Services, "outside": d.Outside, "reasons": d.Services[0].Reasons, "problems": d.Services[0].Problems, "holds": d.Services[0].Holds,
		"pending": d.Services[0].Pending, "history": d.Services[0].History, "sharedWith": d.Services[0].Addresses[0].SharedWith,
		"members": d.Services[0].Addresses[0].Nodes[0].Members, "waitsFor": d.Services[0].Addresses[0].Nodes[0].WaitsFor,
	} {
		if reflect.ValueOf(list).IsNil() {
			t.Errorf("%s is null", name)
		}
	}
}

// Every reason has a row in docs/why.md, with the remedy that the program tells.
func TestEveryReasonIsDocumented(t *testing.T) {
	const page = "../../docs/why.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, " | "); len(cells) == 3 && strings.HasPrefix(line, "| `") {
			rows[strings.Trim(cells[0], "| `")] = strings.TrimSuffix(strings.TrimSpace(cells[2]), " |")
		}
	}
	for _, code := range append(leader.Codes(), leader.OutsideCodes()...) {
		remedy, ok := rows[string(code)]
		if want := code.Remedy(); !ok || want != "" && remedy != want || want == "" && remedy != "-" {
			t.Errorf("%s: the row of %s has the remedy %q; want %q (- for none)", page, code, remedy, want)
		}
		delete(rows, string(code))
	}
	for code := range rows {
		t.Errorf("%s has a row of %s, which no reason is called", page, code)
	}
}
