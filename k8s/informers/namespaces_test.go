// SPDX-License-Identifier: Apache-2.0

package informers_test

import (
	"testing"

	"fairlead.io/fairlead/fsm/world"
)

// Namespaces are read once a pool or a policy chooses some by label, and not before.
func TestNamespacesAreReadWhereSomethingSelectsThem(t *testing.T) {
	t.Parallel()
	selectors := []any{object{"matchLabels": object{"kind": "shop"}}}
	for name, want := range map[string]func(s *server){
		"pool": func(s *server) {
			s.put(pools, "m", "p", object{"spec": object{"addresses": []any{"203.0.113.0/29"}, "serviceAllocation": object{"namespaceSelectors": selectors}}})
		},
		"policy": func(s *server) {
			s.put(policies, "", "p", object{"spec": object{"maxAddresses": 3, "namespaceSelectors": selectors}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.set(func() { s.resources[pools].missing, s.resources[policies].missing = false, false })
			s.put(namespaces, "", "shop-a", object{"metadata": object{"labels": object{"kind": "shop"}}})
			s.put(pools, "m", "plain", pool("198.51.100.0/29"))
			r := read(t, s, fast)
			w := r.until(t, "complete", func(w world.World) bool { return w.Complete && len(w.Pools) == 1 })
			if s.askedFor(namespaces) || len(w.Namespaces) != 0 {
				t.Fatalf("namespaces are read though nobody wants them: %+v", w.Namespaces)
			}
			want(s)
			w = r.until(t, "with namespaces", func(w world.World) bool { return len(w.Namespaces) == 1 })
			if n := w.Namespaces[0]; n.Name != "shop-a" || len(n.Labels) != 1 || n.Labels[0] != (world.KV{Key: "kind", Value: "shop"}) {
				t.Errorf("%+v", n)
			}
		})
	}
}
