// SPDX-License-Identifier: Apache-2.0

package status

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"fairlead.io/fairlead/fsm"
)

// K33: the finalizer is there before the first address is shown, and goes when the record is done with the Service.
// Rule: K33.
func TestFinalizerGuardsTheWithdrawal(t *testing.T) {
	guarded := Options{Class: class, Finalizer: true}
	for _, end := range []string{"deleted", "no-load-balancer", "quarantined"} {
		t.Run(end, func(t *testing.T) {
			b, s := newBook(t), newServed("web", corev1.ServiceTypeLoadBalancer, "")
			want := func(when string, of FinalizerWrite, finalized bool, shows string) {
				t.Helper()
				w, _ := one(b, s, nil, guarded, noon)
				if w.Finalizer != of || s.finalizer[Manager] != finalized || s.shows() != shows {
					t.Fatalf("%s: written %+v, finalized %t, shows %q", when, w, s.finalizer[Manager], s.shows())
				}
			}
			want("unknown to the record", KeepFinalizer, false, "")
			b.service(t, "default/web")
			b.serve(t, "default/web", "203.0.113.10", "n1")
			want("announced before anything was written", SetFinalizer, true, "")
			want("finalized", KeepFinalizer, true, "203.0.113.10/VIP")
			if end == "no-load-balancer" {
				s.turn(corev1.ServiceTypeClusterIP, "")
			} else {
				s.going = true
			}
			want("at its end", KeepFinalizer, true, "")
			b.service(t, "default/web", func(s *fsm.Service) { s.Deleting = true })
			a := netip.MustParseAddr("203.0.113.10")
			b.do(t, &fsm.ReleaseAllocation{Address: a, Service: "default/web"})
			b.route(t, "203.0.113.10")
			for range 2 {
				want("while it is withdrawn", KeepFinalizer, true, "")
			}
			hop := route(t, b, a)
			b.announce(t)
			b.do(t, &fsm.FinishWithdrawal{Prefix: fsm.HostPrefix(a), Node: hop.Node(), Address: hop.Address(), Since: hop.Since, Excused: []fsm.ServerID{"m1"}},
				&fsm.FreeAllocation{Address: a, Service: "default/web"})
			want("free, and in the record still", KeepFinalizer, true, "")
			b.do(t, &fsm.DeleteService{ID: "default/web", UID: "uid-default/web"})
			if end == "quarantined" {
				b.do(t, &fsm.NewEpoch{Group: "g", Epoch: 2, Cause: "restore"})
				want("while nobody knows what a restored record lacks", KeepFinalizer, true, "")
				b.do(t, &fsm.EndQuarantine{Since: b.Read().Group().Quarantine})
			}
			want("withdrawn", LiftFinalizer, false, "")
			want("over", KeepFinalizer, false, "")
		})
	}
}

// route gives the hop of an address that is being withdrawn.
func route(t *testing.T, b *book, a netip.Addr) fsm.NextHop {
	t.Helper()
	r, ok := fsm.Get[*fsm.Route](b.Read(), fsm.TableRoutes, fsm.HostPrefix(a).String())
	if !ok || len(r.NextHops) != 1 || !r.NextHops[0].Withdrawing {
		t.Fatalf("route %+v", r)
	}
	return r.NextHops[0]
}

// K33: an option that is switched off leaves no Service that cannot be deleted, and takes away nobody else's finalizer.
// Rule: K33.
func TestFinalizersGoWithTheOption(t *testing.T) {
	b, s := newBook(t), newServed("web", corev1.ServiceTypeLoadBalancer, "")
	b.service(t, "default/web")
	b.serve(t, "default/web", "203.0.113.10", "n1")
	for range 2 {
		one(b, s, nil, Options{Class: class, Finalizer: true}, noon)
	}
	s.finalizer["other"] = true
	if w, _ := one(b, s, nil, ours, noon); w.Finalizer != LiftFinalizer || !s.finalizer["other"] || s.shows() != "203.0.113.10/VIP" {
		t.Fatalf("written %+v, finalizers %v, shows %q", w, s.finalizer, s.shows())
	}
	if w, again := one(b, s, nil, ours, noon); again {
		t.Fatalf("written again: %+v", w)
	}
	s.turn(corev1.ServiceTypeClusterIP, "")
	s.ingress, s.owners, s.finalizer = nil, map[string]map[string]bool{}, map[string]bool{Manager: true}
	store := NewStore()
	if store.Set(s.object()); store.get("default/web") == nil {
		t.Fatal("a Service with our finalizer is out of sight once it is no LoadBalancer")
	}
}
