// SPDX-License-Identifier: Apache-2.0

package informers_test

import (
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/informers"
)

// redirecting is a policy that captures 169.254.77.1:80 for pods with a label.
func redirecting(backend object) object {
	return object{"spec": object{
		"frontend": object{"addressMatcher": object{"ip": "169.254.77.1", "toPorts": []any{object{"name": "p", "port": "80", "protocol": "TCP"}}}},
		"backend":  backend,
	}}
}

func podsOf(label string) object {
	return object{"endpointSelector": object{"matchLabels": object{"app": label}}, "toPorts": []any{object{"name": "p", "port": "8080", "protocol": "TCP"}}}
}

// Policies of both kinds are seen with the pods that they choose among, and what is wrong with one is told and costs no other.
func TestPoliciesAreSeenAndSoArePods(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.install(balancing, redirects)
	s.put(balancing, "", "to-web", redirecting(object{"serviceEndpoint": podsOf("web")}))
	s.put(balancing, "", "to-both", redirecting(object{"serviceEndpoint": podsOf("web"), "addressEndpoint": object{"addresses": []any{"192.0.2.9"}}}))
	s.put(balancing, "", "odd", redirecting(object{"serviceEndpoint": "web"}))
	s.put(redirects, "", "dns", redirecting(podsOf("dns")))
	s.put(pods, "shop", "web-0", pod("10.244.1.17", "Running", object{"app": "web"}))
	r := readWith(t, s, informers.Options{Timing: fast, Redirects: true})
	w := r.until(t, "complete with pods", func(w world.World) bool { return w.Complete && len(w.Pods) == 1 })
	if len(w.BalancingPolicies) != 1 || len(w.LocalRedirectPolicies) != 1 || len(w.Unusable) != 2 {
		t.Fatalf("got %+v and %+v, unusable %v", w.BalancingPolicies, w.LocalRedirectPolicies, w.Unusable)
	}
	if p := w.BalancingPolicies[0]; p.Name != "to-web" || p.Mode != world.ToPods || p.UID == "" || p.Ports[0].Target != 8080 {
		t.Errorf("got %+v", p)
	}
	if p := w.LocalRedirectPolicies[0]; p.Name != "dns" || p.Mode != world.ToLocalPods {
		t.Errorf("got %+v", p)
	}
	told := map[string]bool{}
	for _, p := range w.Problems {
		told[p.Object.Name] = told[p.Object.Name] || p.Severity == world.Failed && p.Object.Kind == world.KindBalancingPolicy
	}
	if !told["to-both"] || !told["odd"] || told["to-web"] {
		t.Errorf("told of %v", w.Problems)
	}
	uid := s.remove(redirects, "", "dns")
	w = r.until(t, "gone", func(w world.World) bool { return len(w.Deleted) == 1 })
	if d := w.Deleted[0]; d.Kind != world.KindLocalRedirect || d.UID != uid || d.How != world.ByWatch || len(w.LocalRedirectPolicies) != 0 {
		t.Errorf("got %+v", d)
	}
	for _, kind := range []world.Kind{world.KindBalancingPolicy, world.KindLocalRedirect} {
		if v := view(t, w, kind); v.Version == 0 || !v.Listed || !v.Complete {
			t.Errorf("%s: %+v", kind, v)
		}
	}
}

// Where nobody carries policies out they are not read, and have no pods read.
func TestPoliciesAreReadOnlyIfAskedFor(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.install(balancing, redirects)
	s.put(balancing, "", "to-web", redirecting(object{"serviceEndpoint": podsOf("web")}))
	s.put(pods, "shop", "web-0", pod("10.244.1.17", "Running", nil))
	slow := fast
	slow.Absent = time.Hour
	r := read(t, s, slow)
	w := r.until(t, "complete", complete)
	s.mu.Lock()
	asked := strings.Join(s.queries, "\n")
	s.mu.Unlock()
	if strings.Contains(asked, "balancing.elf.io") || strings.Contains(asked, pods+"?") || len(w.BalancingPolicies)+len(w.Pods) != 0 {
		t.Errorf("asked for\n%s", asked)
	}
	for _, kind := range []world.Kind{world.KindBalancingPolicy, world.KindLocalRedirect} {
		if v := view(t, w, kind); v.Version != 0 || !v.Listed || !v.Complete {
			t.Errorf("%s: %+v", kind, v)
		}
	}
}
