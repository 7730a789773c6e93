// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// is is what the record says of a policy, in one line: what it captures, what it leads to, and what it waits for; empty if it is not there.
func (g *group) is(id fsm.PolicyID) string {
	r := g.rows()[id]
	if r == nil {
		return ""
	}
	captures, backends, _ := told(r, nil)
	return strings.TrimRight(fmt.Sprintf("%s -> %s; %s", strings.Join(captures, ", "), strings.Join(backends, ", "), r.Pending.Code), "; ")
}

// Balancing §9, line by line: what the record says before something happens, and what after it. What hosts make of a backend that is not ready,
// and of a policy without any, is balancing §6 and §7.
// Rule: balancing §9.
func TestWhatHappensWhen(t *testing.T) {
	const (
		a    = fsm.PolicyID("BalancingPolicy/a")
		full = "10.96.0.1 80/TCP>8080 -> 10.0.0.1 shop/p0/u1 on n0 ready=true"
		none = "10.96.0.1 80/TCP>8080 -> "
	)
	service := mService{[]string{"10.96.0.1"}, []string{"80/TCP"}}
	pod := plain().pods["p0"]
	edit := func(p mPod, f func(*mPod)) mPod { f(&p); return p }
	host := toPods("a", 1)
	host.mode = world.ToHostPorts
	again := toPods("a", 2)
	again.uid, again.ports = "a-2", []string{"80/TCP>9090"}
	for line, c := range map[string]struct {
		policy        mPolicy
		begin, happen func(w mWorld)
		before, after string
		unseen        bool // what is absent is not surely gone
	}{
		"policy before Service": {toPods("a", 1), func(w mWorld) { delete(w.services, "s1") }, func(w mWorld) { w.services["s1"] = service },
			" -> 10.0.0.1 shop/p0/u1 on n0 ready=true; no-service", full, false},
		"Service deleted": {toPods("a", 1), nil, func(w mWorld) { delete(w.services, "s1") },
			full, " -> 10.0.0.1 shop/p0/u1 on n0 ready=true; no-service", false},
		"Service's ClusterIP changes": {toPods("a", 1), nil, func(w mWorld) { w.services["s1"] = mService{[]string{"10.96.0.9"}, service.ports} },
			full, "10.96.0.9 80/TCP>8080 -> 10.0.0.1 shop/p0/u1 on n0 ready=true", false},
		"Service's ports change": {toPods("a", 1), nil, func(w mWorld) { w.services["s1"] = mService{service.ips, []string{"81/TCP"}} },
			full, " -> 10.0.0.1 shop/p0/u1 on n0 ready=true; no-port", false},
		"Service becomes ExternalName": {toPods("a", 1), nil, func(w mWorld) { w.services["s1"] = mService{nil, service.ports} },
			full, " -> 10.0.0.1 shop/p0/u1 on n0 ready=true; no-cluster-ip", false},
		"Service becomes ClusterIP": {toPods("a", 1), func(w mWorld) { w.services["s1"] = mService{nil, service.ports} }, func(w mWorld) { w.services["s1"] = service },
			" -> 10.0.0.1 shop/p0/u1 on n0 ready=true; no-cluster-ip", full, false},
		"policy before pods": {toPods("a", 1), func(w mWorld) { delete(w.pods, "p0") }, func(w mWorld) { w.pods["p0"] = pod },
			none + "; no-backend", full, false},
		"last backend goes": {toPods("a", 1), nil, func(w mWorld) { delete(w.pods, "p0") }, full, none + "; no-backend", false},
		"pod becomes NotReady": {toPods("a", 1), nil, func(w mWorld) { w.pods["p0"] = edit(pod, func(p *mPod) { p.ready = false }) },
			full, "10.96.0.1 80/TCP>8080 -> 10.0.0.1 shop/p0/u1 on n0 ready=false", false},
		"pod deleted, gracefully": {toPods("a", 1), nil, func(w mWorld) { w.pods["p0"] = edit(pod, func(p *mPod) { p.going = true }) },
			full, none + "; no-backend", false},
		"pod's label changes": {toPods("a", 1), nil, func(w mWorld) { w.pods["p0"] = edit(pod, func(p *mPod) { p.label = "dns" }) },
			full, none + "; no-backend", false},
		"pod's address changes": {toPods("a", 1), nil, func(w mWorld) { w.pods["p0"] = edit(pod, func(p *mPod) { p.ip = "10.0.0.7" }) },
			full, "10.96.0.1 80/TCP>8080 -> 10.0.0.7 shop/p0/u1 on n0 ready=true", false},
		"node's address changes": {host, nil, func(w mWorld) { w.nodes["n0"] = mNode{label: "x", internal: "192.0.2.9"} },
			"10.96.0.1 80/TCP>8080 -> 192.0.2.1 shop/p0/u1 on n0 ready=true", "10.96.0.1 80/TCP>8080 -> 192.0.2.9 shop/p0/u1 on n0 ready=true", false},
		"node deleted": {host, nil, func(w mWorld) { delete(w.nodes, "n0") },
			"10.96.0.1 80/TCP>8080 -> 192.0.2.1 shop/p0/u1 on n0 ready=true", none + "; no-backend", false},
		"policy deleted": {toPods("a", 1), nil, func(w mWorld) { delete(w.policies, string(a)) }, full, "", false},
		"policy made anew, otherwise": {toPods("a", 1), nil, func(w mWorld) { w.policies[string(a)] = again },
			full, "10.96.0.1 80/TCP>9090 -> 10.0.0.1 shop/p0/u1 on n0 ready=true", false},
		"API server does not answer": {toPods("a", 1), nil, func(w mWorld) {
			clear(w.pods)
			clear(w.services)
			clear(w.nodes)
			clear(w.policies)
		}, full, full, true},
	} {
		t.Run(strings.ReplaceAll(line, " ", "-"), func(t *testing.T) {
			w, g := plain().with(c.policy), newGroup(t, format)
			if c.begin != nil {
				c.begin(w)
			}
			g.settle(t, w.input(everything))
			if got := g.is(a); got != c.before {
				t.Errorf("before: %q, not %q", got, c.before)
			}
			number := uint32(0)
			if r := g.rows()[a]; r != nil {
				number = r.Number
			}
			c.happen(w)
			may := everything
			if c.unseen {
				may = nothing
			}
			g.settle(t, w.input(may))
			if got := g.is(a); got != c.after {
				t.Errorf("after: %q, not %q", got, c.after)
			}
			if r := g.rows()[a]; r != nil && (r.Number == number) != (r.UID == "a") {
				t.Errorf("its number was %d, and is %d", number, r.Number)
			}
		})
	}
}

// Balancing §9: a node's annotation with a proxy address is added, changed and removed; the node is led to, led to there, and no more.
// Rule: balancing §9.
func TestWhatHappensWhenProxyAnnotationsChange(t *testing.T) {
	const a = fsm.PolicyID("BalancingPolicy/a")
	g := newGroup(t, format)
	g.joins(t)
	in := proxied(toProxies("a", 1))
	in.Tunnels = fsm.TunnelSettings{}
	for _, c := range []struct{ annotated, after string }{
		{"", " -> ; not-carried-out"},
		{"203.0.113.7", "10.96.0.1 80/TCP>8080 -> 203.0.113.7  ready=true"},
		{"203.0.113.8", "10.96.0.1 80/TCP>8080 -> 203.0.113.8  ready=true"},
		{"", " -> ; not-carried-out"},
	} {
		in.Nodes[0].Proxies = nil
		if c.annotated != "" {
			in.Nodes[0].Proxies = []netip.Addr{netip.MustParseAddr(c.annotated)}
		}
		g.converge(t, in)
		if got := g.is(a); got != c.after {
			t.Errorf("annotated with %q: %q, not %q", c.annotated, got, c.after)
		}
	}
}
