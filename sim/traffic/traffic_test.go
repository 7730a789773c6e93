// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/kernel"
	"fairlead.io/fairlead/sim/traffic"
)

var (
	vip   = netip.MustParseAddr("203.0.113.10")
	hops  = []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}
	alice = traffic.Client{Name: "alice", Addresses: []netip.Addr{netip.MustParseAddr("198.51.100.1")}}
	bob   = traffic.Client{Name: "bob", Addresses: []netip.Addr{netip.MustParseAddr("198.51.100.2"), netip.MustParseAddr("2001:db8::2")}}
)

// sw forwards vip to hops.
type sw struct {
	name string
	off  bool
	hops []netip.Addr
}

func (s *sw) Name() string { return s.name }
func (s *sw) On() bool     { return !s.off }
func (s *sw) Forward(to netip.Addr, hash uint64) (netip.Addr, bool) {
	if to != vip || len(s.hops) == 0 {
		return netip.Addr{}, false
	}
	return s.hops[hash%uint64(len(s.hops))], true
}

// node delivers to an endpoint, to what kube-proxy chooses without one, or not, and says why.
type node struct {
	name     string
	down     bool
	endpoint netip.AddrPort
	why      string
}

func (n *node) Node() string { return n.name }
func (n *node) IsUp() bool   { return !n.down }
func (n *node) Deliver(kernel.Packet) (netip.AddrPort, bool, string) {
	return n.endpoint, n.why == "", n.why
}

// site is two switches, two nodes, and a Service a/x with a pod on each node.
type site struct {
	*engine.World
	switches []*sw
	nodes    []*node
	cluster  *traffic.Cluster
	flows    []event.Flow
	cut      map[string]bool
}

func newSite(seed uint64) *site {
	w := &site{World: engine.New(seed), cut: map[string]bool{}}
	w.cluster = traffic.NewCluster(w.World, 10*time.Second)
	w.Hear(func(e event.Stamped) {
		if f, ok := e.Event.(event.Flow); ok {
			w.flows = append(w.flows, f)
		}
	})
	for i := range 2 {
		w.switches = append(w.switches, &sw{name: fmt.Sprint("s", i+1), hops: hops})
		w.nodes = append(w.nodes, &node{name: fmt.Sprint("n", i+1)})
	}
	w.service("a", "x", vip.String(), "Cluster")
	w.slice("a", "x", "n1", "n2")
	return w
}

func (w *site) service(namespace, name, address, policy string) {
	ingress := ""
	if address != "" {
		ingress = fmt.Sprintf(`{"ip":%q}`, address)
	}
	w.Publish(event.Object{Kind: "Service", Namespace: namespace, Name: name, Verb: "update", JSON: fmt.Appendf(nil,
		`{"spec":{"type":"LoadBalancer","externalTrafficPolicy":%q,"ports":[{"name":"web","port":80,"protocol":"TCP"}]},
		"status":{"loadBalancer":{"ingress":[%s]}}}`, policy, ingress)})
}

// slice says that a Service has a ready pod on each of some nodes: x-n1 at 10.0.0.1 and so on.
func (w *site) slice(namespace, name string, on ...string) {
	text := ""
	for i, n := range on {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(`{"addresses":["10.0.0.%s"],"nodeName":%q,"conditions":{"ready":true},"targetRef":{"namespace":%q,"name":"%s-%s"}}`,
			n[1:], n, namespace, name, n)
	}
	w.Publish(event.Object{Kind: "EndpointSlice", Namespace: namespace, Name: name + "-1", Verb: "update", JSON: fmt.Appendf(nil,
		`{"metadata":{"labels":{"kubernetes.io/service-name":%q}},"ports":[{"name":"web","port":8080,"protocol":"TCP"}],"endpoints":[%s]}`, name, text)})
}

func (w *site) traffic(clients ...traffic.Client) *traffic.Traffic {
	o := traffic.Options{Clients: clients, Truth: w.cluster, Kernels: map[netip.Addr]traffic.Kernel{}}
	for i := range 2 {
		o.Switches = append(o.Switches, w.switches[i])
		o.Kernels[hops[i]] = w.nodes[i]
	}
	o.Passes = func(from, to string) bool { return !w.cut[from+" "+to] }
	return traffic.New(w.World, o)
}

// run gives the flows of a client in a second.
func (w *site) run(t *testing.T, name string, clients ...traffic.Client) (out []event.Flow) {
	t.Helper()
	tr := w.traffic(clients...)
	tr.Start()
	if err := w.Run(time.Second); err != nil {
		t.Fatal(err)
	}
	tr.Stop()
	n := len(w.flows)
	if err := w.Run(2 * time.Second); err != nil || len(w.flows) != n {
		t.Errorf("%d flows after the end, %v", len(w.flows)-n, err)
	}
	return slices.DeleteFunc(w.flows, func(f event.Flow) bool { return f.Client != name })
}

// A client's requests depend on the seed and its name alone, whoever else is there.
func TestClientsDrawFromStreamsOfTheirOwn(t *testing.T) {
	alone := newSite(7).run(t, "alice", alice)
	if together := newSite(7).run(t, "alice", alice, bob); len(alone) < 20 || !slices.Equal(alone, together) {
		t.Errorf("%d flows alone, %d together", len(alone), len(together))
	}
	if other := newSite(8).run(t, "alice", alice); slices.Equal(alone, other) {
		t.Error("another seed draws the same")
	}
	ways := map[string]int{}
	for _, f := range alone {
		if !f.Served || !f.Wanted {
			t.Fatalf("%+v", f)
		}
		ways[f.Switch+" "+f.Node+" "+f.Pod]++
	}
	if len(ways) != 8 {
		t.Errorf("ways %v", ways)
	}
}

// Each part of the way that fails is why a request was not served, and says so.
func TestAFlowTellsWhereItEnded(t *testing.T) {
	target := traffic.Target{Service: "a/x", Address: vip, Protocol: 6, Port: 80}
	pod := netip.MustParseAddrPort("10.0.0.2:8080")
	for why, damage := range map[string]func(*site){
		"":                                   func(w *site) { w.nodes[0].endpoint = pod },
		"no switch works":                    func(w *site) { w.switches[0].off, w.switches[1].off = true, true },
		"the switch knows no way":            func(w *site) { w.switches[0].hops = nil },
		"nobody has the next hop 192.0.2.9":  func(w *site) { w.switches[0].hops = []netip.Addr{netip.MustParseAddr("192.0.2.9")} },
		"the node has no power":              func(w *site) { w.nodes[0].down = true },
		"the switch does not reach the node": func(w *site) { w.cut["n1 s1"] = true },
		"not steered":                        func(w *site) { w.nodes[0].why = "not steered" },
		"kube-proxy knows no endpoint":       func(w *site) { w.service("a", "x", vip.String(), "Local"); w.slice("a", "x", "n2") },
		"nobody answers at 10.0.0.9:8080":    func(w *site) { w.nodes[0].endpoint = netip.MustParseAddrPort("10.0.0.9:8080") },
		"the node of a/x-n2 has no power":    func(w *site) { w.nodes[0].endpoint = pod; w.nodes[1].down = true },
		"the node does not reach that of a/x-n2": func(w *site) {
			w.nodes[0].endpoint = pod
			w.cut["n1 n2"] = true
		},
	} {
		w := newSite(1)
		damage(w)
		f := w.traffic(alice).Send("alice", alice.Addresses[0], target, 0, 0)
		if f.Why != why || f.Served != (why == "") || !f.Wanted {
			t.Errorf("%q, not %q: %+v", f.Why, why, f)
		}
		if why == "" && (f.Switch != "s1" || f.Node != "n1" || f.NextHop != hops[0] || f.Pod != "a/x-n2") {
			t.Errorf("%+v", f)
		}
	}
	w := newSite(1)
	w.switches[0].off = true
	if f := w.traffic(alice).Send("alice", alice.Addresses[0], target, 0, 0); !f.Served || f.Switch != "s2" {
		t.Errorf("beside a switch that is off: %+v", f)
	}
}

// Clients dial an address for a while after its user has lost it; nobody wants that to be served then, and who has the
// address now gets the packets.
func TestClientsRememberAddressesForAWhile(t *testing.T) {
	w := newSite(1)
	old := traffic.Target{Service: "a/x", Address: vip, Protocol: 6, Port: 80}
	if !slices.Equal(w.cluster.Targets(), []traffic.Target{old}) || !w.cluster.Wanted(old) {
		t.Fatalf("targets %v", w.cluster.Targets())
	}
	w.service("a", "x", "", "Cluster")
	w.service("a", "y", vip.String(), "Cluster")
	w.slice("a", "y", "n1")
	now := traffic.Target{Service: "a/y", Address: vip, Protocol: 6, Port: 80}
	if !slices.Equal(w.cluster.Targets(), []traffic.Target{old, now}) || w.cluster.Wanted(old) || !w.cluster.Wanted(now) {
		t.Errorf("targets %v, wanted %t and %t", w.cluster.Targets(), w.cluster.Wanted(old), w.cluster.Wanted(now))
	}
	if at, ok := w.cluster.Choose(old, "n2", 5); !ok || at.String() != "10.0.0.1:8080" {
		t.Errorf("kube-proxy chose %s, %t", at, ok)
	}
	w.Pass(10 * time.Second)
	if !slices.Equal(w.cluster.Targets(), []traffic.Target{now}) {
		t.Errorf("targets %v", w.cluster.Targets())
	}
	w.slice("a", "y")
	if w.cluster.Wanted(now) {
		t.Error("wanted, and no pod could answer")
	}
}

// Nobody is to be served by pods that weigh nothing; those that end serve where all that are ready weigh nothing.
func TestPodsThatWeighNothingServeNobody(t *testing.T) {
	w := newSite(1)
	to := traffic.Target{Service: "a/x", Address: vip, Protocol: 6, Port: 80}
	for _, step := range []struct {
		rules, chosen string // empty: nobody
		pods          string
	}{
		{"node/n1=0", "10.0.0.2:8080", ""},
		{"pod/x-n2=0, pod/*=3", "10.0.0.1:8080", ""},
		{"pod/*=0", "", ""},
		{"node/n1=0", "10.0.0.2:8080", `{"addresses":["10.0.0.1"],"nodeName":"n1","conditions":{"ready":true}},
			{"addresses":["10.0.0.2"],"nodeName":"n2","conditions":{"ready":false,"serving":true,"terminating":true}}`},
	} {
		w.Publish(event.Object{Kind: "Service", Namespace: "a", Name: "x", Verb: "update", JSON: fmt.Appendf(nil,
			`{"metadata":{"annotations":{"fairlead.io/endpoint-weights":%q}},"spec":{"type":"LoadBalancer","ports":[{"name":"web","port":80}]},
			"status":{"loadBalancer":{"ingress":[{"ip":%q}]}}}`, step.rules, vip)})
		if step.pods != "" {
			w.Publish(event.Object{Kind: "EndpointSlice", Namespace: "a", Name: "x-1", Verb: "update", JSON: fmt.Appendf(nil,
				`{"metadata":{"labels":{"kubernetes.io/service-name":"x"}},"ports":[{"name":"web","port":8080}],"endpoints":[%s]}`, step.pods)})
		}
		if w.cluster.Wanted(to) != (step.chosen != "") {
			t.Errorf("%s: wanted %v", step.rules, w.cluster.Wanted(to))
		}
		for hash := range uint64(8) {
			if at, ok := w.cluster.Choose(to, "n1", hash<<32); ok != (step.chosen != "") || ok && at.String() != step.chosen {
				t.Errorf("%s: %v, %v", step.rules, at, ok)
			}
		}
	}
}
