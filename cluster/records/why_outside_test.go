// SPDX-License-Identifier: Apache-2.0

package records_test

import (
	"strings"
	"testing"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	apirecords "fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/cluster/records"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// bound is a group of three pods on a load balancer: the driver has confirmed one, refuses another, and the third is not ready.
func bound(t *testing.T) (*grouptest.Group, *world.World) {
	g := grouptest.NewGroup(t)
	meta := func(name string) world.Meta {
		return world.Meta{ID: world.ID{Namespace: "shop", Name: name}, UID: name}
	}
	w := &world.World{
		Drivers:       []*world.Driver{{Meta: meta("clb"), URL: "http://192.0.2.7"}},
		LoadBalancers: []*world.OutsideBalancer{{Meta: meta("edge"), DriverID: meta("clb").ID, Finalizer: true}},
		BackendGroups: []*world.BackendGroup{{Meta: meta("web"), LoadBalancers: []string{"edge", "none"}, Balancing: world.Balancing{
			Pods: &world.PodSelection{ByLabel: true, Selector: []world.KV{{Key: "app", Value: "web"}}, Ports: []world.BackendPort{{Port: 80, Protocol: "TCP"}}},
		}}},
	}
	for _, name := range []string{"p1", "p2", "p3"} {
		w.Pods = append(w.Pods, &world.Pod{Meta: meta(name), IP: "10.0.0.1", Ready: name != "p3", Running: true, Labels: []world.KV{{Key: "app", Value: "web"}}})
	}
	for _, k := range world.Kinds() {
		w.Kinds = append(w.Kinds, world.KindView{Kind: k, Listed: true, Complete: true})
	}
	lb := fsm.BalancerID("LoadBalancer/shop/edge/edge")
	g.Apply(t,
		&fsm.PutDriver{Driver: fsm.Driver{Name: "shop/clb", URL: "http://192.0.2.7"}},
		&fsm.PutLoadBalancer{ID: lb, Driver: "shop/clb", UID: "edge", Info: []fsm.KV{{Key: "vip", Value: "7"}}, Synced: true},
	)
	for _, pod := range []string{"p1", "p2"} {
		g.Apply(t, &fsm.PutBinding{
			ID: fsm.BindingID("shop/b-" + pod), Balancer: lb, Owner: "BackendGroup/shop/web/web", Address: "10.0.0.1:80" + pod,
			Backend: fsm.Backend{Kind: "Pod", Name: pod, UID: pod, Port: 80, Protocol: "TCP", Target: "10.0.0.1"},
		})
		b, _ := fsm.Get[*fsm.Binding](g.Read(), fsm.TableBindings, "shop/b-"+pod)
		g.Apply(t, &fsm.BeginOperation{Action: fsm.ActionEnsure, Binding: b.ID, Deadline: time.Second})
		op, _ := fsm.Get[*fsm.Operation](g.Read(), fsm.TableOperations, string(b.Subject()))
		end := &fsm.FinishOperation{Subject: b.Subject(), Attempt: op.Attempt, Result: fsm.ResultSucceeded, Settled: true}
		if pod == "p2" {
			end.Result, end.Message, end.Refused, end.RetryAfter = fsm.ResultFailed, "quota exceeded", true, time.Minute
		}
		g.Apply(t, end)
	}
	return g, w
}

func TestWhyTellsOfOutsideLoadBalancers(t *testing.T) {
	t.Parallel()
	g, w := bound(t)
	b2, _ := fsm.Get[*fsm.Binding](g.Read(), fsm.TableBindings, "shop/b-p2")
	s := records.New(records.Options{Member: "m1", Record: g, Leader: g, Planner: plans{Group: g, out: w, next: map[fsm.Subject]leader.NextCall{
		b2.Subject(): {Action: fsm.ActionEnsure, In: 1500 * time.Millisecond},
	}}})
	d := why(t, s, "backendgroup shop/web").Outside[0]
	if d.Summary != "1 of 2 backends are registered; 1 pods cannot be; pod p2 port 80/TCP fails: quota exceeded" {
		t.Errorf("summary %q", d.Summary)
	}
	if len(d.Backends) != 2 || d.Backends[0].Call != nil || !d.Backends[0].Registered || d.Backends[0].Driver != "shop/clb" {
		t.Fatalf("backends %+v", d.Backends)
	}
	op, _ := fsm.Get[*fsm.Operation](g.Read(), fsm.TableOperations, string(b2.Subject()))
	asked := time.UnixMilli(op.Answered).Add(time.Minute).UTC().Format(time.RFC3339Nano)
	if c := d.Backends[1].Call; c == nil || *c != (apirecords.WhyCall{Action: "ensure", Progress: "due", DueInMs: 1500, NotBefore: asked, Attempts: 1, Last: "quota exceeded"}) {
		t.Errorf("the call about p2 is %+v", c)
	}
	if len(d.Unregistered) != 1 || d.Unregistered[0].Pod != "shop/p3" || d.Unregistered[0].Code != "pod-not-ready" || d.Unregistered[0].Remedy == "" {
		t.Errorf("not registered: %+v", d.Unregistered)
	}
	if len(d.Reasons) != 1 || d.Reasons[0].Code != "load-balancer" || !strings.Contains(d.Reasons[0].Text, "none") {
		t.Errorf("reasons %+v", d.Reasons)
	}
	last := apirecords.WhyTransition{}
	for _, h := range d.History {
		if h.Revision.Index < last.Revision.Index || h.Time == "" || h.Of == "" {
			t.Errorf("history has %+v after %+v", h, last)
		}
		last = h
	}
	if !strings.Contains(last.Change, "quota exceeded") {
		t.Errorf("the newest change is %+v", last)
	}
	if lb := why(t, s, "loadbalancer shop/edge").Outside[0]; lb.State != "ready" || lb.Driver != "shop/clb" || len(lb.Backends) != 2 {
		t.Errorf("the load balancer is %+v", lb)
	}
	for _, name := range []string{"shop/b-p1", "shop/p1", "shop/10.0.0.1:80p1"} {
		if b := why(t, s, "backend "+name).Outside[0]; len(b.Backends) != 1 || b.Backends[0].Name != "shop/b-p1" || b.State != "bound" {
			t.Errorf("backend %s is %+v", name, b)
		}
	}
	if _, err := s.Why(t.Context(), &fairleadv1.WhyRequest{Subject: "backend shop/none"}); err == nil || !strings.Contains(err.Error(), "neither the record nor a source has it") {
		t.Errorf("none: %v", err)
	}
}

// Without a leader the record tells which call is waited for, and that only the leader knows when.
func TestWhyTellsOfOutsideLoadBalancersByTheRecordAlone(t *testing.T) {
	t.Parallel()
	g, _ := bound(t)
	s := records.New(records.Options{Member: "m1", Record: g, Leader: g, Planner: plans{Group: g, lost: true}})
	d := why(t, s, "backendgroup shop/web")
	if c := d.Outside[0].Backends[1].Call; d.Basis != apirecords.WhyRecord || d.Doubt == "" || c == nil || c.Action != "ensure" || c.Progress != apirecords.CallUnknown || c.Attempts != 1 {
		t.Errorf("answer %+v, call %+v", d, c)
	}
	busy := records.New(records.Options{Member: "m1", Record: g, Leader: g, Planner: plans{Group: g, busy: "an LBCF controller runs"}})
	if r := why(t, busy, "backendgroup shop/web").Outside[0].Reasons; len(r) != 1 || r[0].Code != "handover" || r[0].Text != "an LBCF controller runs" {
		t.Errorf("reasons %+v", r)
	}
}
