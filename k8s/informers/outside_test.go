// SPDX-License-Identifier: Apache-2.0

package informers_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/informers"
	"fairlead.io/fairlead/k8s/objects"
)

// install defines LBCF's kinds, as far as they are named.
func (s *server) install(paths ...string) {
	s.set(func() {
		for _, path := range paths {
			s.resources[path].missing = false
		}
	})
}

func pod(ip, phase string, labels object) object {
	return object{"metadata": object{"labels": labels}, "spec": object{"nodeName": "n1"},
		"status": object{"phase": phase, "podIP": ip, "conditions": []any{object{"type": "Ready", "status": "True"}}}}
}

// asked tells whether a path was asked for.
func (s *server) askedFor(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.queries, func(q string) bool { return strings.HasPrefix(q, path+"?") })
}

func TestLBCFsObjectsAndPodsAreSeen(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.install(drivers, balancers, groups, records, binds)
	s.put(drivers, "shop", "f5", object{"spec": object{"driverType": "Webhook", "url": "http://f5.example", "webhooks": nil}, "status": object{"conditions": nil}})
	s.put(balancers, "shop", "edge", object{"spec": object{"lbDriver": "f5", "lbSpec": object{"vip": "198.51.100.20"}, "attributes": nil, "scope": nil}, "status": nil})
	s.put(groups, "shop", "web", object{"spec": object{"lbName": "edge", "loadBalancers": nil,
		"pods": object{"port": object{"portNumber": 80, "port": 0}, "ports": nil, "byName": []any{"web-0"}}}})
	s.put(records, "shop", "r", object{"spec": object{"lbName": "edge", "lbDriver": "f5", "podBackend": object{"name": "web-0", "port": object{"port": 80}}}})
	s.put(binds, "shop", "b", object{"spec": object{"loadBalancers": []any{object{"name": "x", "driver": "f5", "spec": nil}}, "pods": object{"ports": nil}}})
	s.put(pods, "shop", "web-0", pod("10.244.1.17", "Running", object{"app": "web"}))
	s.put(pods, "shop", "job-0", pod("10.244.1.18", "Succeeded", object{"app": "web"}))
	r := read(t, s, fast)
	w := r.until(t, "complete with pods", func(w world.World) bool { return w.Complete && len(w.Pods) == 2 })
	if len(w.Drivers) != 1 || len(w.LoadBalancers) != 1 || len(w.BackendGroups) != 1 || len(w.BackendRecords) != 1 || len(w.Binds) != 1 {
		t.Errorf("got %+v", w)
	}
	if g := w.BackendGroups[0]; len(g.LoadBalancers) != 1 || g.LoadBalancers[0] != "edge" || g.Pods.Ports[0] != (world.BackendPort{Port: 80, Protocol: "TCP"}) {
		t.Errorf("a group in the old form is %+v", g)
	}
	if p := w.Pods[1]; p.Name != "web-0" || !p.Available() || !p.Alive() || p.Labels[0] != (world.KV{Key: "app", Value: "web"}) || p.Node != "n1" {
		t.Errorf("got pod %+v", p)
	}
	if p := w.Pods[0]; p.Alive() {
		t.Errorf("a pod that ended is alive: %+v", p)
	}
	uid := s.remove(pods, "shop", "web-0")
	w = r.until(t, "gone", func(w world.World) bool { return len(w.Deleted) == 1 })
	if d := w.Deleted[0]; d.Kind != world.KindPod || d.UID != uid || d.How != world.ByWatch {
		t.Errorf("got %+v", d)
	}
	for _, kind := range []world.Kind{world.KindDriver, world.KindLoadBalancer, world.KindBackendGroup, world.KindBackendRecord, world.KindBind, world.KindPod} {
		if v := view(t, w, kind); v.Version == 0 || !v.Listed || !v.Complete {
			t.Errorf("%s: %+v", kind, v)
		}
	}
}

// Whoever has no outside load balancers does not pay for their pods.
func TestPodsAreReadOnlyWhereGroupsOrBindsCanBe(t *testing.T) {
	t.Parallel()
	for _, wanted := range []string{groups, binds} {
		s := newServer(t)
		s.install(drivers, balancers, records)
		s.put(pods, "shop", "web-0", pod("10.244.1.17", "Running", nil))
		slow := fast
		slow.Absent = time.Hour
		r := read(t, s, slow)
		w := r.until(t, "complete", complete)
		if s.askedFor(pods) || len(w.Pods) != 0 {
			t.Fatalf("pods are read though nobody wants them: %+v", w.Pods)
		}
		if v := view(t, w, world.KindPod); !v.Listed || !v.Complete || v.Version != 0 {
			t.Errorf("pods that nobody wants leave a view like %+v", v)
		}
		s.install(wanted)
		kind := world.KindBackendGroup
		if wanted == binds {
			kind = world.KindBind
		}
		r.Relist(kind) // as somebody would who waits for it; the pods need no word
		r.until(t, "with the pods of a cluster that has "+string(kind), func(w world.World) bool { return len(w.Pods) == 1 })
	}
}

// A store that is filled by the source has what webhook calls and admission need: as soon as everything is listed, and as
// it comes and goes.
func TestObjectsAreKeptBesideTheWorld(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.install(drivers, balancers, groups, records, binds)
	s.put(drivers, "shop", "f5", object{"spec": object{"driverType": "Webhook", "url": "http://f5.example"}})
	s.put(binds, "shop", "b", object{"spec": object{"loadBalancers": []any{object{"name": "x", "driver": "f5"}}}})
	s.put(pods, "shop", "web-0", pod("10.244.1.17", "Running", nil))
	s.put(services, "shop", "web", object{"spec": object{"type": "NodePort", "ports": []any{object{"port": 80, "nodePort": 30080}}}})
	s.put(nodes, "", "n1", node("192.0.2.1"))
	store := objects.New()
	r := readWith(t, s, informers.Options{Timing: fast, Objects: store})
	r.until(t, "complete with pods", func(w world.World) bool { return w.Complete && len(w.Pods) == 1 })
	v, err := store.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := v.Driver("shop", "f5"); d == nil || d.Spec.URL != "http://f5.example" || len(slices.Collect(v.Binds(""))) != 1 {
		t.Errorf("got driver %+v", d)
	}
	if text, ok := store.Pod("shop", "web-0", ""); !ok || !strings.Contains(string(text), "10.244.1.17") {
		t.Errorf("got pod %s", text)
	}
	if text, ok := store.Service("shop", "web"); !ok || !strings.Contains(string(text), "30080") {
		t.Errorf("got Service %s", text)
	}
	if text, _ := store.NodeAddresses("n1"); string(text) != `[{"type":"InternalIP","address":"192.0.2.1"}]` {
		t.Errorf("got addresses %s", text)
	}
	s.remove(drivers, "shop", "f5")
	s.remove(pods, "shop", "web-0")
	r.until(t, "gone", func(w world.World) bool { return len(w.Drivers)+len(w.Pods) == 0 })
	if _, ok := store.Pod("shop", "web-0", ""); ok {
		t.Error("a pod that went is kept")
	}
	if v, _ = store.View(t.Context()); v.Driver("shop", "f5") != nil {
		t.Error("a driver that went is kept")
	}
	s.set(func() { s.uid, s.round = "cluster-2", s.round+1 })
	r.until(t, "of the other cluster", func(w world.World) bool { return w.Cluster == "cluster-2" && w.Complete })
	if _, err := store.View(t.Context()); err != nil {
		t.Error(err)
	}
}
