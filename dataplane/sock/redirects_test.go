// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"net/netip"
	"testing"

	"fairlead.io/fairlead/api/desired"
)

// Balancing §3, §4, §6, §7, §8: what clients of the node n1 get where a policy captures the ClusterIP of a Service.
// Rule: balancing §6.
func TestWhatPoliciesLeadTo(t *testing.T) {
	ip4, ip6 := netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("fd96::1")
	service := &desired.Service{
		Name: "shop/web", ClusterIPs: []netip.Addr{ip4, ip6}, Frontends: []desired.Frontend{web},
		Endpoints: []desired.Endpoint{pod("10.0.0.1", "n2"), pod("fd00::1", "n2")},
	}
	backend := func(address, node string, ready bool) desired.PolicyBackend {
		return desired.PolicyBackend{Address: netip.MustParseAddr(address), Node: node, Ready: ready}
	}
	plain := desired.Policy{
		Name: "BalancingPolicy/a", Number: 7, Created: 5, EveryNode: true, OfService: true, Mode: desired.ToPods,
		Captures: []desired.Capture{{Address: ip4, Port: web.Port, Target: 9000}, {Address: ip6, Port: web.Port, Target: 9000}},
		Backends: []desired.PolicyBackend{backend("10.1.0.1", "n1", true), backend("10.1.0.2", "n2", false)},
	}
	local := plain
	local.Name, local.Number, local.Mode = "LocalRedirectPolicy/a", 8, desired.ToLocalPods
	with := func(r desired.Policy, edit func(*desired.Policy)) desired.Policy { edit(&r); return r }
	elsewhere := func(r *desired.Policy) { r.Backends = r.Backends[1:] }
	none := func(r *desired.Policy) { r.Backends = nil }
	ofService, ofService6 := "use 10.0.0.1:8080 ServiceClusterIP", "use [fd00::1]:8080 ServiceClusterIP"
	for name, c := range map[string]struct {
		redirects []desired.Policy
		v4, v6    string
	}{
		"none":              {nil, ofService, ofService6},
		"a ready one":       {[]desired.Policy{plain}, "use 10.1.0.1:9000 balancingPod", "refuse"},
		"none is ready":     {[]desired.Policy{with(plain, elsewhere)}, "use 10.1.0.2:9000 balancingPod", "refuse"},
		"no pod":            {[]desired.Policy{with(plain, none)}, "refuse", "refuse"},
		"falls through":     {[]desired.Policy{with(with(plain, none), func(r *desired.Policy) { r.FallThrough = true })}, ofService, ofService6},
		"host ports":        {[]desired.Policy{with(plain, func(r *desired.Policy) { r.Mode = desired.ToHostPorts })}, "use 10.1.0.1:9000 balancingHostPort", "refuse"},
		"on this node":      {[]desired.Policy{with(plain, func(r *desired.Policy) { r.EveryNode, r.Nodes = false, []string{"n0", "n1"} })}, "use 10.1.0.1:9000 balancingPod", "refuse"},
		"on others":         {[]desired.Policy{with(plain, func(r *desired.Policy) { r.EveryNode, r.Outside, r.Nodes = false, true, []string{"n2"} })}, ofService, ofService6},
		"local":             {[]desired.Policy{local}, "use 10.1.0.1:9000 localRedirectService", ofService6},
		"local, not ready":  {[]desired.Policy{with(local, func(r *desired.Policy) { r.Backends = []desired.PolicyBackend{backend("10.1.0.1", "n1", false)} })}, ofService, ofService6},
		"local, elsewhere":  {[]desired.Policy{with(local, func(r *desired.Policy) { r.Backends = []desired.PolicyBackend{backend("10.1.0.2", "n2", true)} })}, ofService, ofService6},
		"local before both": {[]desired.Policy{plain, local}, "use 10.1.0.1:9000 localRedirectService", "refuse"},
		"local gives way":   {[]desired.Policy{plain, with(local, none)}, "use 10.1.0.1:9000 balancingPod", "refuse"},
		"the older one": {[]desired.Policy{plain, with(plain, func(r *desired.Policy) {
			r.Name, r.Number, r.Created, r.Mode = "BalancingPolicy/b", 9, 4, desired.ToAddresses
		})}, "use 10.1.0.1:9000 balancingAddress", "refuse"},
		"of one second the first by name": {[]desired.Policy{plain, with(plain, func(r *desired.Policy) {
			r.Name, r.Number, r.Mode = "BalancingPolicy/b", 6, desired.ToAddresses
		})}, "use 10.1.0.1:9000 balancingPod", "refuse"},
	} {
		k := newMemory()
		s, err := Over(Options{Config: Config{Node: "n1"}, Room: room}, k)
		if err != nil {
			t.Fatal(err)
		}
		w := wanted{services: held(service)}
		for i := range c.redirects {
			w.redirects = append(w.redirects, &c.redirects[i])
		}
		check := func(when string, v4, v6 string) {
			t.Helper()
			for address, want := range map[netip.Addr]string{ip4: v4, ip6: v6} {
				a := k.rows.Resolve(Call{To: Place{Address: address, Port: 80, Protocol: TCP}})
				got := a.Verdict.String()
				if a.Verdict == Use {
					got += " " + a.Backend.String() + " " + a.Choice.Mode.String()
				}
				if got != want {
					t.Errorf("%s%s: %s at %s, want %s", name, when, got, address, want)
				}
			}
		}
		if err := s.apply(w); err != nil {
			t.Fatal(err)
		}
		check("", c.v4, c.v6)
		for i := range c.redirects {
			if got := s.nameOf(c.redirects[i].Number); got != c.redirects[i].Name {
				t.Errorf("%s: number %d is called %q", name, c.redirects[i].Number, got)
			}
		}
		w.redirects = nil
		if err := s.apply(w); err != nil {
			t.Fatal(err)
		}
		check(", gone", ofService, ofService6)
	}
}

// An address that is listed twice gets twice as many connections, a pod that is named twice does not.
// Rule: balancing §6.
func TestOnlyListedAddressesCountTwice(t *testing.T) {
	vips := []desired.Capture{{Address: vip, Port: web.Port, Target: 9000}}
	one, two := netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("10.1.0.2")
	for mode, want := range map[string]int{desired.ToAddresses: 3, desired.ToHostPorts: 2} {
		r := Config{Node: "n1"}.RedirectRule(&desired.Policy{
			Number: 1, EveryNode: true, Mode: mode, Captures: vips, Backends: []desired.PolicyBackend{{Address: one, Ready: true}, {Address: two, Ready: true}, {Address: one, Ready: true}},
		})
		if got := len(r.Fronts[0].Backends); got != want {
			t.Errorf("%s: %d backends, want %d", mode, got, want)
		}
	}
}

// A Service whose number a policy has gets another one.
func TestNumbersOfPoliciesAreNotServices(t *testing.T) {
	var id uint32
	for n := range Names([]string{"shop/web"}, nil) {
		id = n
	}
	names := Names([]string{"shop/web"}, []*desired.Policy{{Name: "BalancingPolicy/a", Number: id}})
	if len(names) != 2 || names[id] != "BalancingPolicy/a" || names[id+1] != "shop/web" {
		t.Errorf("numbers %v", names)
	}
}
