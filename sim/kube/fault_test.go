// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/sim/kube"
)

// seen asks for a list and gives the names in it, and its version.
func (b *bench) seen(t *testing.T) (names string, version string) {
	t.Helper()
	list := b.ask(t, "GET", allServices, "").object(t)
	var all []string
	for _, o := range list.Items {
		all = append(all, o.Metadata.Name)
	}
	return strings.Join(all, " "), list.Metadata.ResourceVersion
}

func (b *bench) make(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := b.Create("user", service(name, 80)); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *bench) wait(t *testing.T, d time.Duration) {
	t.Helper()
	if err := b.w.Run(b.w.Now() + d); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) watchServices(t *testing.T) *reply {
	t.Helper()
	return b.ask(t, "GET", fmt.Sprintf("%s?watch=true&allowWatchBookmarks=true&resourceVersion=%d", allServices, b.Version()), "")
}

// told gives events in short.
func (r *reply) told(t *testing.T) string {
	t.Helper()
	var out []string
	for _, e := range r.events(t) {
		out = append(out, strings.ToLower(e.Type)+" "+e.Object.Metadata.Name)
	}
	return strings.Join(out, ", ")
}

func TestWatchesTellOfEachChangeAndOfTheTime(t *testing.T) {
	b := newCluster(t, 1)
	w := b.watchServices(t)
	b.make(t, "a")
	if _, err := b.Change("user", "Service", "default", "a", func(o kube.Object) { o.SetLabels(map[string]string{"x": "y"}) }); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete("user", "Service", "default", "a"); err != nil {
		t.Fatal(err)
	}
	b.wait(t, time.Second)
	if told := w.told(t); told != "added a, modified a, deleted a" {
		t.Error(told)
	}
	b.wait(t, time.Minute)
	marks := w.events(t)
	if len(marks) != 1 || marks[0].Type != "BOOKMARK" || marks[0].Object.Metadata.ResourceVersion != fmt.Sprint(b.Version()) {
		t.Errorf("%+v at %d", marks, b.Version())
	}
	w.leave()
	b.make(t, "b")
	b.wait(t, time.Hour)
	if told := w.told(t); told != "" {
		t.Errorf("told who has left: %s", told)
	}
}

func TestAWatchEndsWhenItsTimeIsUp(t *testing.T) {
	b := newCluster(t, 1)
	w := b.ask(t, "GET", allServices+"?watch=true&timeoutSeconds=7&resourceVersion=0", "")
	b.wait(t, 6*time.Second)
	if told := w.told(t); told != "added kubernetes" || w.ended {
		t.Errorf("%s, ended %v", told, w.ended)
	}
	b.wait(t, time.Second)
	if !w.ended || w.broken {
		t.Error("not ended in order")
	}
}

func TestCompactedVersionsAreGone(t *testing.T) {
	b := newCluster(t, 1)
	old := b.Version()
	b.make(t, "a")
	end := b.Begin(kube.Compact, kube.Scope{})
	end()
	inStream, inStatus := 0, 0
	for range 50 {
		r := b.ask(t, "GET", fmt.Sprintf("%s?watch=true&resourceVersion=%d", allServices, old), "")
		if r.status == 410 {
			inStatus++
			if o := r.object(t); o.Reason != "Expired" {
				t.Fatalf("%+v", o)
			}
			continue
		}
		events := r.events(t)
		if r.status != 200 || !r.ended || len(events) != 1 || events[0].Type != "ERROR" || events[0].Object.Code != 410 || events[0].Object.Reason != "Expired" {
			t.Fatalf("%d %+v", r.status, events)
		}
		inStream++
	}
	if inStream < inStatus || inStatus == 0 || b.viewed["gone"] != 50 {
		t.Errorf("%d in the stream, %d by status, %d seen", inStream, inStatus, b.viewed["gone"])
	}
	if r := b.ask(t, "GET", fmt.Sprintf("%s?resourceVersionMatch=Exact&resourceVersion=%d", allServices, old), ""); r.status != 410 {
		t.Errorf("a list of an old version: %d", r.status)
	}
}

func TestStaleListsAreTheTruthOfBefore(t *testing.T) {
	b := newCluster(t, 1)
	b.make(t, "a")
	b.wait(t, 10*time.Second)
	then := b.Version()
	b.wait(t, 10*time.Second)
	b.make(t, "b")
	w := b.watchServices(t)
	end := b.Begin(kube.StaleLists, kube.Scope{Delay: 5 * time.Second})
	if !w.broken {
		t.Error("the old server still answers")
	}
	if names, version := b.seen(t); names != "a kubernetes" || version != fmt.Sprint(then) {
		t.Errorf("%s at %s", names, version)
	}
	w = b.ask(t, "GET", fmt.Sprintf("%s?watch=true&allowWatchBookmarks=true&resourceVersion=%d", allServices, then), "")
	b.make(t, "c")
	b.wait(t, 2*time.Minute)
	for _, e := range w.events(t) {
		if e.Type != "BOOKMARK" || e.Object.Metadata.ResourceVersion != fmt.Sprint(then) {
			t.Errorf("%+v from one that hears nothing", e)
		}
	}
	end()
	b.wait(t, time.Second)
	if told := w.told(t); told != "added b, added c" {
		t.Error(told)
	}
	if names, _ := b.seen(t); names != "a b c kubernetes" || b.viewed["stale"] == 0 {
		t.Errorf("%s, seen %v", names, b.viewed)
	}
}

func TestEmptyAndPartialListsAreOfTheNewestVersionAndLeaveNoWatchBehind(t *testing.T) {
	for fault, how := range map[kube.Fault]string{kube.EmptyLists: "empty", kube.PartialLists: "partial"} {
		b := newCluster(t, 1)
		b.make(t, "a", "b", "c", "d", "e", "f")
		whole, _ := b.seen(t)
		end := b.Begin(fault, kube.Scope{Kinds: []string{"Service"}})
		names, version := b.seen(t)
		if version != fmt.Sprint(b.Version()) || names == whole || (how == "empty") != (names == "") || b.viewed[how] != 1 {
			t.Errorf("%s: %q at %s, now %d, seen %v", fault, names, version, b.Version(), b.viewed)
		}
		if again, _ := b.seen(t); again != names {
			t.Errorf("%s: then %q", fault, again)
		}
		if nodes := b.ask(t, "GET", "/api/v1/nodes", "").object(t); len(nodes.Items) != 1 {
			t.Errorf("%s: of nodes, too", fault)
		}
		w := b.ask(t, "GET", allServices+"?watch=true&resourceVersion="+version, "")
		end()
		if now, _ := b.seen(t); now != whole || !w.broken {
			t.Errorf("%s: after it %q, watch broken %v", fault, now, w.broken)
		}
		if r := b.ask(t, "GET", allServices+"?watch=true&resourceVersion="+version, ""); r.status != 410 && !strings.Contains(r.body.String(), "Expired") {
			t.Errorf("%s: resumed from a lie: %d %s", fault, r.status, r.body.String())
		}
	}
}

// By name everything is there that lists lack, unless the server has lost it altogether.
func TestWhatListsLackIsThereByName(t *testing.T) {
	for _, fault := range []kube.Fault{kube.EmptyLists, kube.PartialLists} {
		for how, lost := range map[string]bool{"": false, "everywhere": true} {
			b := newCluster(t, 1)
			b.make(t, "a", "b", "c", "d", "e", "f")
			end := b.Begin(fault, kube.Scope{Kinds: []string{"Service"}, How: how})
			names, _ := b.seen(t)
			for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
				there := b.ask(t, "GET", "/api/v1/namespaces/default/services/"+name, "").status == 200
				if listed := slices.Contains(strings.Fields(names), name); there != (listed || !lost) {
					t.Errorf("%s %q: %s is listed: %v, there: %v", fault, how, name, listed, there)
				}
			}
			end()
		}
	}
}

func TestASilentWatchSaysNothingAndBreaksAtTheEnd(t *testing.T) {
	b := newCluster(t, 1)
	w := b.watchServices(t)
	end := b.Begin(kube.WatchDrop, kube.Scope{})
	b.make(t, "a")
	b.wait(t, 3*time.Minute)
	if told := w.told(t); told != "" || w.broken || b.viewed["silent"] != 1 {
		t.Errorf("%q, broken %v, seen %v", told, w.broken, b.viewed)
	}
	end()
	if !w.broken {
		t.Error("still open")
	}
}

func TestLateDoubledAndMergedEvents(t *testing.T) {
	ports := func(b *bench) *reply {
		b.make(t, "a")
		b.wait(t, time.Second)
		w := b.watchServices(t)
		for n := range 20 {
			if _, err := b.Change("user", "Service", "default", "a", func(o kube.Object) { o.(*corev1.Service).Spec.Ports[0].Port = int32(100 + n) }); err != nil {
				t.Fatal(err)
			}
		}
		return w
	}
	b := newCluster(t, 1)
	end := b.Begin(kube.WatchDelay, kube.Scope{Delay: time.Minute})
	w := ports(b)
	b.wait(t, 100*time.Millisecond)
	if n := len(w.events(t)); n != 0 {
		t.Errorf("%d events at once", n)
	}
	end()
	b.wait(t, 100*time.Millisecond)
	if n := len(w.events(t)); n != 20 {
		t.Errorf("%d of 20 events were there soon after events had ceased to be late", n)
	}
	b = newCluster(t, 1)
	b.Begin(kube.Duplicate, kube.Scope{})
	w = ports(b)
	b.wait(t, time.Second)
	if n := len(w.events(t)); n <= 20 || n > 40 {
		t.Errorf("%d events of 20 changes", n)
	}
	b = newCluster(t, 1)
	b.Begin(kube.Coalesce, kube.Scope{})
	w = ports(b)
	b.wait(t, time.Minute)
	if events := w.events(t); len(events) != 1 || !strings.Contains(string(events[0].Object.Spec), `"port":119`) {
		t.Errorf("%+v", events)
	}
}

func TestRewindBringsTheBackupBackAndTellsIt(t *testing.T) {
	b := newCluster(t, 1)
	b.make(t, "a", "b")
	uid := string(b.Get("Service", "default", "a").GetUID())
	b.wait(t, 10*time.Second)
	then := b.Version()
	b.wait(t, 10*time.Second)
	if err := b.Delete("user", "Service", "default", "a"); err != nil {
		t.Fatal(err)
	}
	b.make(t, "c")
	later, w := b.Version(), b.watchServices(t)
	b.heard = nil
	b.Begin(kube.Rewind, kube.Scope{Delay: 5 * time.Second})
	names, version := b.seen(t)
	if names != "a b kubernetes" || version != fmt.Sprint(then) || !w.broken {
		t.Errorf("%s at %s, broken %v", names, version, w.broken)
	}
	var told []string
	for _, o := range b.heard {
		if o.Kind == "Service" {
			told = append(told, o.By+" "+o.Verb+" "+o.Name)
		}
	}
	if !slices.Equal(told, []string{"etcd create a", "etcd delete c"}) || string(b.Get("Service", "default", "a").GetUID()) != uid {
		t.Error(told)
	}
	w = b.ask(t, "GET", fmt.Sprintf("%s?watch=true&resourceVersion=%d", allServices, later), "")
	for n := b.Version(); n <= later; n++ {
		b.make(t, fmt.Sprintf("d%d", n))
	}
	b.wait(t, time.Second)
	if told := w.told(t); strings.Count(told, "added") != 1 {
		t.Errorf("a watch from the future was told %q", told)
	}
	if h := b.History("Service", "default", "a"); len(h) != 3 || h[2].By != "etcd" || h[2].After == nil {
		t.Errorf("%+v", h)
	}
}

func TestTheOtherClusterIsAnother(t *testing.T) {
	b := newCluster(t, 1)
	b.make(t, "a", "b", "c", "d")
	whole, _ := b.seen(t)
	uid := func() string { return b.ask(t, "GET", "/api/v1/namespaces/kube-system", "").object(t).Metadata.UID }
	before := uid()
	end := b.Begin(kube.OtherCluster, kube.Scope{})
	names, _ := b.seen(t)
	if uid() == before || names == whole || b.viewed["other"] == 0 {
		t.Errorf("%s %s", uid(), names)
	}
	b.heard = nil
	r := b.ask(t, "POST", servicesPath, loadBalancer("new"), "Content-Type", asJSON)
	if r.status != 201 || len(b.heard) != 0 || b.Get("Service", "default", "new") != nil {
		t.Errorf("%d, heard %v", r.status, b.heard)
	}
	end()
	if now, _ := b.seen(t); now != whole || uid() != before {
		t.Errorf("%s after it", now)
	}
}

// Whoever lists something, and asks then which cluster that was, asks the one that listed it.
func TestTheOtherClusterAnswersForItself(t *testing.T) {
	b := newCluster(t, 1)
	b.make(t, "a", "b", "c", "d")
	before := b.ask(t, "GET", "/api/v1/namespaces/kube-system", "").object(t).Metadata.UID
	for _, scope := range []kube.Scope{{Kinds: []string{"Service"}}, {Share: 0.5}} {
		whole, _ := b.seen(t)
		end := b.Begin(kube.OtherCluster, scope)
		for range 20 {
			names, _ := b.seen(t)
			uid := b.ask(t, "GET", "/api/v1/namespaces/kube-system", "").object(t).Metadata.UID
			if names == whole || uid == before {
				t.Fatalf("%+v: lists %s, and says that it is %s", scope, names, uid)
			}
		}
		end()
	}
}

func TestAwayAndErrors(t *testing.T) {
	b := newCluster(t, 1)
	w := b.watchServices(t)
	end := b.Begin(kube.Away, kube.Scope{From: []string{"m1"}})
	r := b.ask(t, "GET", allServices, "")
	b.wait(t, time.Minute)
	if r.status != 0 || r.broken || w.broken {
		t.Errorf("%+v %+v", r, w)
	}
	end()
	if !r.broken || !w.broken {
		t.Error("whoever waits waits for ever")
	}
	end = b.Begin(kube.Away, kube.Scope{How: "refused", From: []string{"m2"}})
	if r := b.ask(t, "GET", allServices, ""); r.status != 200 {
		t.Errorf("%d for another machine", r.status)
	}
	end()
	end = b.Begin(kube.ErrorOn, kube.Scope{Status: 429})
	done := 0
	for n := range 40 {
		if r := b.ask(t, "POST", servicesPath, loadBalancer(fmt.Sprintf("s%d", n)), "Content-Type", asJSON); r.status != 429 {
			t.Fatalf("%d", r.status)
		}
		if b.Get("Service", "default", fmt.Sprintf("s%d", n)) != nil {
			done++
		}
	}
	if done == 0 || done == 40 {
		t.Errorf("%d of 40 writes took effect", done)
	}
	end()
	if len(b.refused) != 0 {
		t.Errorf("refused %+v", b.refused)
	}
}

func TestNonsenseIsRefusedAloud(t *testing.T) {
	for what, ask := range map[string]func(b *bench) *reply{
		"path":    func(b *bench) *reply { return b.ask(t, "GET", "/api/v1/servces", "") },
		"slashes": func(b *bench) *reply { return b.ask(t, "GET", "/api/v1//services", "") },
		"apply": func(b *bench) *reply {
			return b.ask(t, "PATCH", statusPath+"?fieldManager=x", "{}", "Content-Type", asJSON)
		},
		"no manager": func(b *bench) *reply { return b.ask(t, "PATCH", statusPath, "{}", "Content-Type", asApply) },
		"method":     func(b *bench) *reply { return b.ask(t, "POST", webPath, "{}") },
		"event": func(b *bench) *reply {
			return b.ask(t, "POST", eventsPath, strings.Replace(happening("e", ""), "Normal", "normal", 1), "Content-Type", asJSON)
		},
	} {
		b := newCluster(t, 1)
		b.make(t, "web")
		if r := ask(b); r.status < 400 || len(b.refused) != 1 || b.refused[0].By != "m1" {
			t.Errorf("%s: %d, refused %+v", what, r.status, b.refused)
		}
	}
	b := newCluster(t, 1)
	b.ask(t, "GET", "/apis/fairlead.io/v1alpha1", "")
	b.ask(t, "GET", "/api/v1/namespaces/default/services/nobody", "")
	if len(b.refused) != 0 {
		t.Errorf("refused what is normal: %+v", b.refused)
	}
}

func TestPodsEndInTwoSteps(t *testing.T) {
	b := newCluster(t, 1)
	b.make(t, "web")
	if _, err := b.Create("kubelet", pod("web", "p", "n1", "192.0.2.50")); err != nil {
		t.Fatal(err)
	}
	b.wait(t, time.Second)
	if e := b.Endpoints("default", "web"); len(e) != 1 || !e[0].Ready || e[0].Terminating || e[0].Node != "n1" || e[0].Pod != "default/p" || *e[0].Ports[0].Port != 80 {
		t.Errorf("%+v", e)
	}
	if err := b.Terminate("user", "default", "p", 30*time.Second); err != nil {
		t.Fatal(err)
	}
	b.wait(t, time.Second)
	if e := b.Endpoints("default", "web"); len(e) != 1 || e[0].Ready || !e[0].Serving || !e[0].Terminating {
		t.Errorf("%+v", e)
	}
	if err := b.Delete("kubelet", "Pod", "default", "p"); err != nil {
		t.Fatal(err)
	}
	b.wait(t, time.Second)
	if e := b.Endpoints("default", "web"); len(e) != 0 || len(b.List("EndpointSlice")) != 2 {
		t.Errorf("%+v", e)
	}
	if err := b.Delete("user", "Service", "default", "web"); err != nil {
		t.Fatal(err)
	}
	b.wait(t, time.Second)
	if n := len(b.List("EndpointSlice")); n != 1 {
		t.Errorf("%d slices left", n)
	}
}

func TestNativeWritesMeetTheSameRules(t *testing.T) {
	b := newCluster(t, 1)
	b.make(t, "web")
	old := b.Get("Service", "default", "web").DeepCopyObject().(*corev1.Service)
	if _, err := b.ChangeStatus("other", "Service", "default", "web", func(o kube.Object) {
		o.(*corev1.Service).Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "198.51.100.1"}}
		o.(*corev1.Service).Spec.Ports = nil
	}); err != nil {
		t.Fatal(err)
	}
	now := b.Get("Service", "default", "web").(*corev1.Service)
	if len(now.Spec.Ports) != 1 || len(now.Status.LoadBalancer.Ingress) != 1 || old.ResourceVersion == now.ResourceVersion {
		t.Errorf("%+v", now)
	}
	if _, err := b.Update("user", old); !apierrors.IsConflict(err) {
		t.Errorf("an old version: %v", err)
	}
	if _, err := b.Create("user", old.DeepCopy()); !apierrors.IsBadRequest(err) {
		t.Errorf("created with a version: %v", err)
	}
	if err := b.Delete("user", "Service", "default", "nobody"); !apierrors.IsNotFound(err) {
		t.Errorf("nobody: %v", err)
	}
	if _, err := b.Create("user", &metav1.PartialObjectMetadata{}); err == nil {
		t.Error("made what is not served")
	}
}
