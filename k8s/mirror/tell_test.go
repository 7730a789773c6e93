// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm"
	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

func tellings(list []Telling) string {
	var out []string
	for _, t := range list {
		kind := "N"
		if t.Warning {
			kind = "W"
		}
		out = append(out, fmt.Sprintf("%s %s: %s", kind, t.Reason, t.Note))
	}
	return strings.Join(out, "; ")
}

// lbcf §7, rows of BackendRecord; transport errors too (§11 no. 40).
func TestEventsOfBackendRecordsAreThoseOfLBCF(t *testing.T) {
	b := newBook(t)
	b.edgeReady(t)
	noAddress := func(why string, failed bool) { b.do(t, b.answer(1, "", why, failed)) }
	ensure := fsm.BeginOperation{Action: fsm.ActionEnsure, Binding: name(1)}
	deregister := fsm.BeginOperation{Action: fsm.ActionDeregister, Binding: name(1)}
	timedOut := fsm.FinishOperation{Result: fsm.ResultUnknown, Message: "no answer in 10s"}
	invalid := fsm.FinishOperation{Result: fsm.ResultFailed, Message: `its answer's status "ok" is none of Succ, Fail, Running`}
	for _, c := range []struct {
		what string
		do   func()
		want string
	}{
		{"wanted", func() { b.do(t, pod(1)) }, ""},
		{"address fails", func() { noAddress("no such pod", true) }, "W FailedGenerateAddr: msg: no such pod"},
		{"address fails alike", func() { noAddress("no such pod", true) }, "W FailedGenerateAddr: msg: no such pod"},
		{"address invalid", func() { noAddress(invalid.Message, true) }, "W InvalidGenerateAddr: msg: " + invalid.Message},
		{"address takes time", func() { noAddress("wait", false) }, "N RunningGenerateAddr: msg: wait"},
		{"address", func() { b.addressed(t, 1) }, "N SuccGenerateAddr: addr: 10.0.0.1:8080"},
		{"ensure breaks off", func() { b.must(t, ensure, timedOut) }, "W FailedEnsureBackend: msg: outcome unknown: no answer in 10s"},
		{"ensure fails", func() { b.must(t, ensure, refusedWith("full")) }, "W FailedEnsureBackend: msg: full"},
		{"ensure takes time", func() { b.must(t, ensure, running("adding")) }, "N RunningEnsureBackend: msg: adding"},
		{"ensure takes more time", func() { b.must(t, ensure, running("adding")) }, ""},
		{"ensure invalid", func() { b.must(t, ensure, invalid) }, "W InvalidEnsureBackend: msg: " + invalid.Message},
		{"ensured", func() { b.ensured(t, 1, "welcome") }, "N SuccEnsureBackend: welcome"},
		{"ensured again", func() { b.ensured(t, 1, "welcome") }, ""},
		{"unwanted", func() { b.do(t, &fsm.RemoveBinding{ID: name(1)}) }, ""},
		{"deregister takes time", func() { b.must(t, deregister, running("draining")) }, "N RunningDeregister: msg: draining"},
		{"deregister fails", func() { b.must(t, deregister, refusedWith("locked")) }, "W FailedDeregister: msg: locked"},
		{"deregister invalid", func() { b.must(t, deregister, invalid) }, "W InvalidDeregister: msg: " + invalid.Message},
	} {
		before, _ := fsm.Get[*fsm.Binding](b.Read(), fsm.TableBindings, string(name(1)))
		c.do()
		after, _ := fsm.Get[*fsm.Binding](b.Read(), fsm.TableBindings, string(name(1)))
		if got := tellings(bindingEvents(b.Read(), before, after)); got != c.want {
			t.Errorf("%s: told %q, want %q", c.what, got, c.want)
		}
	}
}

// lbcf §5.6, §7
func TestARecordThatWaitsForAnothersDeregistrationSaysSo(t *testing.T) {
	b := newBook(t)
	b.edgeReady(t)
	b.do(t, pod(1))
	b.addressed(t, 1)
	b.ensured(t, 1, "")
	b.do(t, &fsm.RemoveBinding{ID: name(1)}, &fsm.BeginOperation{Action: fsm.ActionDeregister, Binding: name(1), Deadline: time.Second})
	next := pod(2)
	next.Address = "10.0.0.1:8080"
	b.do(t, next)
	after, _ := fsm.Get[*fsm.Binding](b.Read(), fsm.TableBindings, string(name(2)))
	want := "N SuccGenerateAddr: addr: 10.0.0.1:8080; N DelayedEnsureBackend: BackendRecord " + string(name(1)) + " is deregistered from the same address first"
	if got := tellings(bindingEvents(b.Read(), nil, after)); got != want {
		t.Errorf("told %q", got)
	}
}

// lbcf §7, rows of LoadBalancer; a Bind is told them too, with the name of the load balancer.
func TestEventsOfLoadBalancersAreThoseOfLBCF(t *testing.T) {
	for _, id := range []fsm.BalancerID{edge, "Bind/shop/both/b-uid/inner"} {
		b := newBook(t)
		of, _ := balancerOf(id)
		prefix := ""
		if of.Kind == Bind {
			prefix = "loadBalancer inner: "
		}
		put := func(algo string) *fsm.PutLoadBalancer {
			return &fsm.PutLoadBalancer{ID: id, Driver: "shop/clb", Spec: kv("vip", "192.0.2.1"), Attributes: kv("algo", algo)}
		}
		operation := func(a fsm.Action) fsm.BeginOperation { return fsm.BeginOperation{Action: a, Balancer: id} }
		create, ensure, del := operation(fsm.ActionCreateBalancer), operation(fsm.ActionEnsureBalancer), operation(fsm.ActionDeleteBalancer)
		invalid := fsm.FinishOperation{Result: fsm.ResultFailed, Message: `its answer's status "" is none of Succ, Fail, Running`}
		deleted := ""
		if of.Kind == Bind {
			deleted = "N DeleteAllBackends: " + prefix + "its backends are deregistered first"
		}
		for _, c := range []struct {
			what string
			do   func()
			want string
		}{
			{"wanted", func() { b.do(t, put("rr")) }, ""},
			{"create fails", func() { b.must(t, create, refusedWith("no")) }, "W FailedCreateLoadBalancer: " + prefix + "msg: no"},
			{"create takes time", func() { b.must(t, create, running("wait")) }, "N RunningCreateLoadBalancer: " + prefix + "msg: wait"},
			{"create invalid", func() { b.must(t, create, invalid) }, "W InvalidCreateLoadBalancer: " + prefix + "msg: " + invalid.Message},
			{"created", func() { b.must(t, create, succeeded("made", kv("vip", "192.0.2.1")...)) }, "N SuccCreateLoadBalancer: " + prefix + "made"},
			{"changed", func() { b.do(t, put("hash")) }, ""},
			{"ensure fails", func() { b.must(t, ensure, refusedWith("no")) }, "W FailedEnsureLoadBalancer: " + prefix + "msg: no"},
			{"ensure takes time", func() { b.must(t, ensure, running("wait")) }, "N RunningEnsureLoadBalancer: " + prefix + "msg: wait"},
			{"ensure invalid", func() { b.must(t, ensure, invalid) }, "W InvalidEnsureLoadBalancer: " + prefix + "msg: " + invalid.Message},
			{"ensured", func() { b.must(t, ensure, succeeded("set")) }, "N SuccEnsureLoadBalancer: " + prefix + "set"},
			{"deleted", func() { b.do(t, &fsm.DeleteLoadBalancer{ID: id}) }, deleted},
			{"delete fails", func() { b.must(t, del, refusedWith("no")) }, "W FailedDeleteLoadBalancer: " + prefix + "msg: no"},
			{"delete takes time", func() { b.must(t, del, running("wait")) }, "N RunningDeleteLoadBalancer: " + prefix + "msg: wait"},
			{"delete invalid", func() { b.must(t, del, invalid) }, "W InvalidDeleteLoadBalancer: " + prefix + "msg: " + invalid.Message},
		} {
			before, _ := fsm.Get[*fsm.LoadBalancer](b.Read(), fsm.TableBalancers, string(id))
			c.do()
			after, _ := fsm.Get[*fsm.LoadBalancer](b.Read(), fsm.TableBalancers, string(id))
			if got := tellings(balancerEvents(of, before, after)); got != c.want {
				t.Errorf("%s %s: told %q, want %q", of.Kind, c.what, got, c.want)
			}
		}
	}
}

// A load balancer that came and was created between two looks is told of, and one that was taken over is not.
func TestCreationBetweenTwoLooksIsTold(t *testing.T) {
	of, _ := balancerOf(edge)
	wanted := &fsm.PutLoadBalancer{ID: edge, Driver: "shop/clb", Spec: kv("vip", "192.0.2.1")}
	for want, do := range map[string]func(*book){
		"N SuccCreateLoadBalancer: made": func(b *book) {
			b.do(t, wanted)
			b.must(t, fsm.BeginOperation{Action: fsm.ActionCreateBalancer, Balancer: edge}, succeeded("made", kv("id", "lb1")...))
		},
		"": func(b *book) {
			known := *wanted
			known.Info = kv("id", "lb1")
			b.do(t, &known)
		},
	} {
		b := newBook(t)
		do(b)
		after, _ := fsm.Get[*fsm.LoadBalancer](b.Read(), fsm.TableBalancers, string(edge))
		if got := tellings(balancerEvents(of, nil, after)); got != want {
			t.Errorf("told %q, want %q", got, want)
		}
	}
}

// lbcf §7, rows of BackendGroup and Bind that the plan knows of.
func TestEventsOfWhatThePlanWaitsFor(t *testing.T) {
	for _, c := range []struct {
		e     Explanation
		about string
		want  string
	}{
		{Explanation{"BackendGroup", "shop/web", "load-balancer", "there is no LoadBalancer edge"}, "BackendGroup shop/web", "N GetLoadBalancerFailed: there is no LoadBalancer edge"},
		{Explanation{"BackendGroup", "shop/web", "unusable", "it is being deleted"}, "BackendGroup shop/web", "W GetLoadBalancerFailed: it is being deleted"},
		{Explanation{"BackendGroup", "shop/web", "scope", "it is for others"}, "BackendGroup shop/web", "W GetLoadBalancerFailed: it is for others"},
		{Explanation{"BackendGroup", "shop/web", "judge", "msg: no"}, "BackendGroup shop/web", "W WebhookFailed: msg: no"},
		{Explanation{"BackendGroup", "shop/web", "driver", "failurePolicy holds"}, "BackendGroup shop/web", "W WebhookFailed: failurePolicy holds"},
		{Explanation{"Bind", "shop/both", "judge", "msg: no"}, "Bind shop/both", "W WebhookFailed: msg: no"},
		{Explanation{"LoadBalancer", "shop/edge", "driver", "there is none"}, "LoadBalancer shop/edge", "W DriverNotFound: there is none"},
		{Explanation{"Bind", "shop/both/inner", "driver", "there is no LoadBalancerDriver clb"}, "Bind shop/both", "W DriverNotFound: there is no LoadBalancerDriver clb"},
		{Explanation{"BackendGroup", "shop/web", "evidence", "x"}, "", ""},
	} {
		list := waitingEvents(c.e)
		about := ""
		if len(list) > 0 {
			about = string(list[0].About.Kind) + " " + list[0].About.ID()
		}
		if got := tellings(list); got != c.want || about != c.about {
			t.Errorf("of %s told %q, want %q of %s", about, got, c.want, c.about)
		}
	}
}

// The same is told once and then counted, and nothing is told without end.
func TestEventsAreCountedAndBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newBook(t), newServer()
		b.edgeReady(t)
		defer lead(t, config(b, s))()
		b.do(t, pod(1))
		b.addressed(t, 1)
		pass(5 * time.Second)
		ensure := fsm.BeginOperation{Action: fsm.ActionEnsure, Binding: name(1)}
		for range 300 { // 5 minutes
			b.must(t, ensure, refusedWith("full"))
			pass(time.Second)
		}
		pass(2 * time.Minute)
		var failed []*corev1.Event
		for _, e := range s.events {
			if e.Reason == "FailedEnsureBackend" {
				failed = append(failed, e)
			}
		}
		if len(failed) != 1 || failed[0].Count != 300 || s.counts > 8 {
			t.Fatalf("%d Events, counted %d times: %+v", len(failed), s.counts, failed)
		}
		e := failed[0]
		if e.Source.Component != "lbcf-controller" || e.Type != corev1.EventTypeWarning || e.InvolvedObject.UID != s.record(1).UID || e.InvolvedObject.Kind != "BackendRecord" {
			t.Errorf("%+v", e)
		}
		if n := len(s.writes); n > 5+300/10 {
			t.Errorf("%d writes of an object that only fails", n)
		}
	})
}

// A new leader does not tell anew how things stand: it says so under the same names. What comes back later is counted.
func TestANewLeaderRepeatsNoStandingExplanation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newBook(t), newServer()
		s.put(Key{Group, "shop", "web"}, &v1beta1.BackendGroup{ObjectMeta: metav1.ObjectMeta{UID: "g-uid"}})
		missing := Explanation{"BackendGroup", "shop/web", "load-balancer", "there is no LoadBalancer edge"}
		var mu sync.Mutex
		waiting := []Explanation{missing}
		set := func(list ...Explanation) {
			mu.Lock()
			defer mu.Unlock()
			waiting = list
		}
		c := config(b, s)
		c.Waiting = func() []Explanation {
			mu.Lock()
			defer mu.Unlock()
			return waiting
		}
		told := func() string {
			s.mu.Lock()
			defer s.mu.Unlock()
			var out []string
			for _, e := range s.events {
				out = append(out, fmt.Sprintf("%s x%d", e.Message, e.Count))
			}
			return strings.Join(out, "; ")
		}
		expect := func(when, want string) {
			t.Helper()
			if got := told(); got != want {
				t.Errorf("%s: %s, want %s", when, got, want)
			}
		}
		for term := range 3 {
			stop := lead(t, c)
			pass(5 * time.Second)
			expect(fmt.Sprint("term ", term), "there is no LoadBalancer edge x1")
			stop()
		}
		defer lead(t, c)()
		set()
		pass(30 * time.Minute)
		set(missing, Explanation{"BackendGroup", "shop/web", "scope", "it is for others"})
		pass(time.Minute)
		expect("later", "there is no LoadBalancer edge x2; it is for others x1")
	})
}

// lbcf §7: LBCF told it every minute.
func TestAGroupTellsOnlyNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newBook(t), newServer()
		b.edgeReady(t)
		s.put(Key{Group, "shop", "web"}, &v1beta1.BackendGroup{ObjectMeta: metav1.ObjectMeta{UID: "g-uid"}})
		s.put(Key{Bind, "shop", "both"}, &v1.Bind{ObjectMeta: metav1.ObjectMeta{UID: "b-uid"}})
		c := config(b, s)
		c.Expected = func(owner string) (int32, bool) { return 5, owner == "BackendGroup/shop/web/g-uid" }
		defer lead(t, c)()
		pass(10 * time.Second)
		for i := range 5 {
			b.do(t, pod(i+1))
			b.addressed(t, i+1)
			b.ensured(t, i+1, "")
			pass(10 * time.Millisecond)
		}
		pass(time.Hour)
		if got := s.get(Key{Group, "shop", "web"}).(*v1beta1.BackendGroup).Status; got != (v1beta1.BackendGroupStatus{Backends: 5, RegisteredBackends: 5}) {
			t.Errorf("status %+v", got)
		}
		if got := s.verbs(Group); len(strings.Fields(got)) > 3 {
			t.Errorf("wrote %s", got)
		}
		if got := s.reasons(Group); len(strings.Fields(got)) != len(strings.Fields(s.verbs(Group))) {
			t.Errorf("told %s", got)
		}
	})
}

// The API server takes a message of 1,024 bytes in an Event and of 2,048 in a condition here, if they are characters. What stands for half a
// character would make them longer.
func TestTextsOfEventsAndConditionsAreCutBetweenCharacters(t *testing.T) {
	text := "x" + strings.Repeat("é", longestMessage)
	r := &run{Mirror: &Mirror{metrics: newMetrics()}, tales: newTales(0)}
	about := Key{Kind: Record, Namespace: "shop", Name: strings.Repeat("n", longestName-1) + "é"}
	r.tell([]Telling{{About: about, Reason: "Failed", Note: text}}, happened, noon)
	for told, old := range r.tales.told {
		if want := "x" + strings.Repeat("é", longestNote/2-1); told.Note != want {
			t.Errorf("a message of %d bytes, want %d: ends in %q", len(told.Note), len(want), told.Note[len(told.Note)-3:])
		}
		if name := eventName(told, old); !utf8.ValidString(name) {
			t.Errorf("the Event is called %q", name)
		}
	}
	c := conditionsOf(nil, noon)
	c.set("Ready", metav1.ConditionFalse, "Failed", text)
	if got, want := c.list[0].Message, "x"+strings.Repeat("é", longestMessage/2-1); len(r.tales.told) != 1 || got != want {
		t.Errorf("%d tellings, and a condition of %d bytes, want %d: ends in %q", len(r.tales.told), len(got), len(want), got[len(got)-3:])
	}
}
