// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// oneBackend is a cluster with one static backend that is registered.
func oneBackend(t failer) (*cluster, *fsm.Binding) {
	c := newCluster(t)
	for _, line := range []string{
		"driver shop/d", "lb shop/edge driver=d spec=vip:1 created=vip:1 synced finalized", "group shop/web lbs=edge static=192.0.2.7:80",
	} {
		c.object(strings.Fields(line))
	}
	c.record.settle(c.input())
	for c.record.work() {
		c.record.settle(c.input())
	}
	return c, fsm.List[*fsm.Binding](c.record.state.Read(), fsm.TableBindings)[0]
}

// Section 5.7: only the BackendRecord of this very binding, seen to go on a live watch, is a finalizer taken off by hand.
func TestOnlyADeletedBackendRecordOfTheBindingItselfForgetsIt(t *testing.T) {
	for _, c := range []struct {
		what   string
		mirror func(uid string) string
		how    world.How
		forget bool
	}{
		{"its own", func(uid string) string { return uid }, world.ByWatch, true},
		{"its own, with the group", func(uid string) string { return "test/" + uid }, world.ByWatch, true},
		{"of an earlier life", func(string) string { return "test/earlier" }, world.ByWatch, false},
		{"of another controller", func(string) string { return "" }, world.ByWatch, false},
		{"missing from a folder", func(uid string) string { return uid }, world.ByScan, false},
	} {
		cl, b := oneBackend(t)
		cl.deleted = []world.Deletion{{
			Ref: world.Ref{Kind: world.KindBackendRecord, ID: splitID(string(b.ID)), UID: "k8s"}, Mirror: c.mirror(b.UID), How: c.how,
		}}
		lines, _ := cl.record.settle(cl.input())
		if got := len(lines) > 0 && strings.HasPrefix(lines[0], "Forget "); got != c.forget {
			t.Errorf("%s: %v", c.what, lines)
		}
		now, _ := fsm.Get[*fsm.Binding](cl.record.state.Read(), fsm.TableBindings, string(b.ID))
		if again := now != nil && now.UID != b.UID; again != c.forget {
			t.Errorf("%s: registered anew is %t", c.what, again)
		}
	}
}

// Section 5.7: deleting our mirror of a binding by hand forces a deregistration; that of an earlier life does not.
func TestOnlyTheBackendRecordOfTheBindingItselfTakesItOff(t *testing.T) {
	for mirror, want := range map[string]bool{"": true, "earlier": false} {
		c, b := oneBackend(t)
		if mirror == "" {
			mirror = b.UID
		}
		c.object(strings.Fields("record " + string(b.ID) + " owner=BackendGroup/web lb=edge driver=d info=vip:1 static=192.0.2.7:80 finalized deleting mirror=test/" + mirror))
		lines, _ := c.record.settle(c.input())
		if got := len(lines) == 1 && strings.HasPrefix(lines[0], "RemoveBinding "); got != want {
			t.Errorf("mirror %s: %v", mirror, lines)
		}
	}
}

// A BackendRecord that this group wrote is not taken over: its binding ended. One of another group is: that group's record is lost.
func TestBackendRecordsOfALostGroupAreTakenOver(t *testing.T) {
	for mirror, want := range map[string]bool{"test/life": false, "life": false, "former/life": true} {
		c, _ := oneBackend(t)
		c.object(strings.Fields("record shop/other owner=BackendGroup/web lb=edge driver=d info=vip:1 static=192.0.2.9:80 address=192.0.2.9:80 registered finalized mirror=" + mirror))
		lines, _ := c.record.settle(c.input())
		if got := len(lines) > 0 && strings.Contains(lines[0], "AdoptBinding shop/other") && strings.Contains(lines[0], "uid=life "); got != want {
			t.Errorf("%s: %v", mirror, lines)
		}
	}
}

// What was taken over is not taken over again while its BackendRecord waits to be taken down.
func TestABackendRecordWhoseBindingEndedIsNotTakenOverAgain(t *testing.T) {
	c, _ := oneBackend(t)
	c.object(strings.Fields("record shop/other owner=BackendGroup/web lb=edge driver=d info=vip:1 static=192.0.2.9:80 address=192.0.2.9:80 registered finalized uid=r"))
	c.record.settle(c.input())
	for c.record.work() {
		c.record.settle(c.input())
	}
	if want := "deregister 192.0.2.9:80 on shop/edge"; c.record.calls[len(c.record.calls)-1] != want {
		t.Fatalf("calls: %v", c.record.calls)
	}
	if lines, _ := c.record.settle(c.input()); len(lines) > 0 {
		t.Errorf("proposes %v", lines)
	}
}

// What LBCF made anew and was not told the address of is ensured where it was: there it may be still.
func TestWhatHasNoAddressYetIsEnsuredWhereItWas(t *testing.T) {
	c := newCluster(t)
	name := PodRecord("edge", "web", "web-0-uid", world.BackendPort{Port: 80, Protocol: "TCP"})
	record := "record shop/" + name + " owner=BackendGroup/web lb=edge driver=d info=vip:1 pod=web-0 port=80/TCP finalized"
	for _, line := range []string{
		"driver shop/d", "lb shop/edge driver=d spec=vip:1 created=vip:1 synced finalized", "group shop/web lbs=edge names=web-0 ports=80/TCP",
		"pod shop/web-0 ip=10.0.0.1", record + " address=10.0.0.1:80 registered uid=r1",
	} {
		c.object(strings.Fields(line))
	}
	c.record.settle(c.input())
	c.object(strings.Fields(record + " uid=r2"))
	c.record.settle(c.input())
	b, _ := fsm.Get[*fsm.Binding](c.record.state.Read(), fsm.TableBindings, "shop/"+name)
	if b.UID != "r2" || b.State != fsm.BindingEnsuring || b.Address != "10.0.0.1:80" {
		t.Errorf("%s is %s at %q", b.UID, b.State, b.Address)
	}
}

func TestNothingIsProposedToARecordOfAnOlderFormat(t *testing.T) {
	c := newCluster(t)
	c.record.state = fsm.New()
	c.record.must(&fsm.InitGroup{Group: "test", Format: 1})
	c.object([]string{"driver", "shop/d"})
	lines, out := c.record.settle(c.input())
	if len(lines) > 0 || len(out.Waiting) != 1 || out.Waiting[0].Code != WaitsForFormat {
		t.Errorf("proposes %v, waits %v", lines, out.Waiting)
	}
}

// Whatever removal rests on the absence of is listed, so that the guard can judge it.
func TestKnownListsWhatTheRecordStandsOn(t *testing.T) {
	c, _ := oneBackend(t)
	for _, line := range []string{
		"group shop/pods lbs=edge names=p ports=80/TCP", "pod shop/p ip=10.0.0.1", "group shop/svc lbs=edge service=web:80/TCP",
		"service shop/web type=NodePort ports=80/TCP/31080", "node n1 ip=192.0.2.1", "bind shop/b entries=e|d|vip:2 names=p ports=80/TCP finalized",
		"record shop/lonely owner=BackendGroup/web lb=former driver=d info=vip:5 static=192.0.2.9:80 address=192.0.2.9:80 registered finalized",
	} {
		c.object(strings.Fields(line))
	}
	c.lost["BackendGroup shop/web"], c.lost["LoadBalancer shop/former"] = true, true
	c.record.settle(c.input())
	var got []string
	for _, r := range Known(c.record.state.Read()) {
		got = append(got, r.String()+" "+r.UID)
	}
	want := []string{
		"BackendGroup shop/pods pods-uid", "BackendGroup shop/svc svc-uid", "BackendGroup shop/web web-uid", "Bind shop/b b-uid",
		"LoadBalancer shop/edge edge-uid", "LoadBalancer shop/former ", "LoadBalancerDriver shop/d d-uid", "Node n1 ", "Pod shop/p p-uid", "Service shop/web ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Section 7: a LoadBalancer that is yet to be created is waited for; one whose creation fails is there and cannot be had.
func TestAGroupIsToldThatALoadBalancerCannotBeCreated(t *testing.T) {
	c := newCluster(t)
	for _, line := range []string{"driver shop/d", "lb shop/edge driver=d spec=vip:1 finalized", "group shop/web lbs=edge static=192.0.2.7:80"} {
		c.object(strings.Fields(line))
	}
	codes := func() (out []string) {
		_, result := c.record.settle(c.input())
		for _, e := range result.Waiting {
			out = append(out, e.Kind+" "+e.Code)
		}
		return out
	}
	if got := codes(); !slices.Equal(got, []string{"BackendGroup load-balancer"}) {
		t.Errorf("before its driver is asked: %v", got)
	}
	l := fsm.List[*fsm.LoadBalancer](c.record.state.Read(), fsm.TableBalancers)[0]
	begun := c.record.must(&fsm.BeginOperation{Action: fsm.ActionCreateBalancer, Balancer: l.ID, Deadline: time.Second})
	c.record.must(&fsm.FinishOperation{Subject: l.Subject(), Attempt: begun.Revision, Result: fsm.ResultFailed, Message: "no", Refused: true})
	if got := codes(); !slices.Equal(got, []string{"BackendGroup unusable"}) {
		t.Errorf("once its driver refused: %v", got)
	}
}

// Section 13: what LBCF registered on the object of a binding that no driver of ours was asked about is as LBCF left it: it is
// neither registered anew where it is wanted, nor forgotten where it is not.
func TestWhatAnotherControllerRegisteredOnOurObjectIsNotForgotten(t *testing.T) {
	for _, c := range []struct {
		group string
		calls []string
	}{
		{"static=192.0.2.7:80,192.0.2.8:80", nil},
		{"static=192.0.2.7:80", []string{"deregister 192.0.2.8:80 on shop/edge"}},
	} {
		cl, _ := oneBackend(t)
		cl.object(strings.Fields("group shop/web lbs=edge static=192.0.2.7:80,192.0.2.8:80"))
		cl.record.settle(cl.input()) // no driver is called
		name := "shop/" + StaticRecord("edge", "web", "192.0.2.8:80")
		b, ok := fsm.Get[*fsm.Binding](cl.record.state.Read(), fsm.TableBindings, name)
		if !ok || b.Asked {
			t.Fatalf("%s: binding %v", c.group, b)
		}
		before := len(cl.record.calls)
		cl.object(strings.Fields("record " + name + " owner=BackendGroup/web lb=edge driver=d info=vip:1 static=192.0.2.8:80 address=192.0.2.8:80 registered finalized uid=u mirror=test/" + b.UID))
		cl.object(strings.Fields("group shop/web lbs=edge " + c.group))
		cl.record.settle(cl.input())
		for cl.record.work() {
			cl.record.settle(cl.input())
		}
		if got := cl.record.calls[before:]; !slices.Equal(got, c.calls) {
			t.Errorf("%s: calls %v, want %v", c.group, got, c.calls)
		}
	}
}
