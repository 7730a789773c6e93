// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"net/netip"
	"testing"

	"fairlead.io/fairlead/api/desired"
)

// Balancing §8: where a policy is effective, each row of its table. The selector is resolved to names of nodes by the leader; a host outside the
// cluster is none of them, also if it has the name of one.
// Rule: balancing §8.
func TestWherePoliciesAreEffective(t *testing.T) {
	match, other, outside := Config{Node: "n1"}, Config{Node: "n2"}, Config{Node: "n1", Outside: true}
	for name, c := range map[string]struct {
		everyNode, outside          bool
		nodes                       []string
		onMatch, onOther, onOutside bool
	}{
		"no config":                                  {everyNode: true, outside: true, onMatch: true, onOther: true, onOutside: true},
		"no selector, enableOutCluster":              {everyNode: true, outside: true, onMatch: true, onOther: true, onOutside: true},
		"no selector, no enableOutCluster":           {everyNode: true, onMatch: true, onOther: true},
		"selector, enableOutCluster":                 {nodes: []string{"n1"}, outside: true, onMatch: true, onOutside: true},
		"selector, no enableOutCluster":              {nodes: []string{"n1"}, onMatch: true},
		"selector that matches none, outside":        {outside: true, onOutside: true},
		"selector that matches none, no outside one": {},
	} {
		r := &desired.Policy{
			Name: "BalancingPolicy/a", Number: 1, EveryNode: c.everyNode, Nodes: c.nodes, Outside: c.outside, Mode: desired.ToAddresses,
			Captures: []desired.Capture{{Address: vip, Port: web.Port, Target: 9000}}, Backends: []desired.PolicyBackend{{Address: netip.MustParseAddr("10.1.0.1"), Ready: true}},
		}
		for host, want := range map[*Config]bool{&match: c.onMatch, &other: c.onOther, &outside: c.onOutside} {
			if got := host.RedirectRule(r) != nil; got != want {
				t.Errorf("%s: on %+v it is effective: %v", name, *host, got)
			}
		}
		local := *r
		local.Mode = desired.ToLocalPods
		if outside.RedirectRule(&local) != nil {
			t.Errorf("%s: local redirection applies outside", name)
		}
	}
}

// Balancing §15: outside nothing is local, whatever its name is: traffic policies are ignored, hints are for nobody there, and every endpoint serves.
// Rule: balancing §15.
func TestOutsideEveryEndpointServes(t *testing.T) {
	near, far := pod("10.0.0.1", "n1"), pod("10.0.0.2", "n2")
	near.Hints, far.Hints = []desired.Hint{{Node: "n1"}}, []desired.Hint{{Node: "n2"}}
	s := &desired.Service{
		Name: "shop/web", Addresses: []netip.Addr{vip}, ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.1")}, Local: true, InternalLocal: true,
		Frontends: []desired.Frontend{web}, Endpoints: []desired.Endpoint{near, far},
	}
	for name, c := range map[string]struct {
		config Config
		want   map[Mode]int
	}{
		"on a node":                     {Config{Node: "n1"}, map[Mode]int{ServiceLoadBalancer: 1, ServiceClusterIP: 1}},
		"on a node without endpoints":   {Config{Node: "n3"}, map[Mode]int{ServiceLoadBalancer: 2, ServiceClusterIP: 0}},
		"outside":                       {Config{Node: "edge", Outside: true}, map[Mode]int{ServiceLoadBalancer: 2, ServiceClusterIP: 2}},
		"outside, called as a node is":  {Config{Node: "n1", Outside: true}, map[Mode]int{ServiceLoadBalancer: 2, ServiceClusterIP: 2}},
		"outside, in a zone of its own": {Config{Node: "n1", Zone: "z1", Outside: true}, map[Mode]int{ServiceLoadBalancer: 2, ServiceClusterIP: 2}},
	} {
		for _, front := range c.config.RuleOf(s, 1).Fronts {
			for _, at := range front.At {
				if want := c.want[at.Mode]; len(front.Backends) != want {
					t.Errorf("%s: %v leads to %d endpoints, want %d", name, at, len(front.Backends), want)
				}
			}
		}
	}
}
