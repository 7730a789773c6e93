// SPDX-License-Identifier: Apache-2.0

package informers_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/informers"
	"fairlead.io/fairlead/k8s/unread"
)

// What configures the fabric is read from namespaces of operators alone. Of other objects their authors are told, they come and go without any
// effect, and are known to be there.
func TestTenantsConfigureNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.set(func() {
		s.resources[pools].missing, s.resources[peers].missing, s.resources[policies].missing = false, false, false
	})
	tor := func(address string) object {
		return object{"spec": object{"peerAddress": address, "peerASN": 65001, "myASN": 65000}}
	}
	s.put(pools, "metallb-system", "public", pool("203.0.113.0/28"))
	s.put(peers, "metallb-system", "tor", tor("192.0.2.254"))
	s.put(policies, "", "all", object{"spec": object{"maxAddresses": 3}})
	s.put(pools, "a-tenant", "public", pool("8.8.8.0/24"))
	s.put(peers, "a-tenant", "tor", tor("192.0.2.66"))
	s.put(peers, "z-tenant", "odd", object{"spec": object{"peerASN": "x"}})
	shown := &unreadNow{now: map[unread.Key]unread.Seen{}}
	r := readWith(t, s, informers.Options{Timing: fast, Namespaces: []string{"metallb-system"}, Unread: shown})
	counts := func(w world.World) bool {
		return len(w.Pools) == 1 && w.Pools[0].Home == "metallb-system" && len(w.Peers) == 1 && w.Peers[0].Home == "metallb-system" && len(w.AddressPolicies) == 1
	}
	w := r.until(t, "complete", func(w world.World) bool { return w.Complete && counts(w) && len(w.Unusable) == 3 })
	for _, name := range []string{"IPAddressPool a-tenant/public", "BGPPeer a-tenant/tor", "BGPPeer z-tenant/odd"} {
		if !problem(w, name+": metadata.namespace: objects of kind "+strings.Fields(name)[0]+" are read from namespace metallb-system alone", "sources.configNamespaces") {
			t.Errorf("nobody is told of %s: %v", name, w.Problems)
		}
	}
	if text := shown.text(); text != "BGPPeer a-tenant/tor of metallb.io/v1beta2, BGPPeer z-tenant/odd of metallb.io/v1beta2, IPAddressPool a-tenant/public of metallb.io/v1beta1" {
		t.Errorf("shown as not read: %s", text)
	}
	s.put(peers, "a-tenant", "tor", tor("192.0.2.67"))
	s.remove(peers, "a-tenant", "tor")
	w = r.until(t, "without the tenant's", func(w world.World) bool { return len(w.Unusable) == 2 })
	if text := shown.text(); strings.Contains(text, "a-tenant/tor") || !strings.Contains(text, "z-tenant/odd") {
		t.Errorf("shown as not read: %s", text)
	}
	if !counts(w) {
		t.Errorf("pools %v, peers %v", w.Pools, w.Peers)
	}
	for _, d := range w.Deleted {
		if d.Namespace == "" {
			t.Errorf("the end of a tenant's object is taken for that of %s", d.Ref)
		}
	}
}

// unreadNow knows what is shown as not read now.
type unreadNow struct {
	mu  sync.Mutex
	now map[unread.Key]unread.Seen
}

func (u *unreadNow) Show(k unread.Key, seen unread.Seen) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.now[k] = seen
}

func (u *unreadNow) Gone(k unread.Key) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.now, k)
}

func (u *unreadNow) text() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var all []string
	for k, seen := range u.now {
		all = append(all, string(k.Kind)+" "+k.ID.String()+" of "+seen.APIVersion)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

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
