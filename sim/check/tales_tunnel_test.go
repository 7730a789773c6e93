// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// tunnelOf is the tunnel address of a node, and macs what it has hardware addresses like.
var (
	tunnelOf = map[string]netip.Addr{"n1": addr("10.250.0.1"), "n2": addr("10.250.0.2"), "n3": addr("10.250.0.3")}
	macs     = map[string]string{"n1": "0a01", "n2": "0a02", "n3": "0a03"}
)

// joined is what the tunnel of a node is like that knows all others but some.
func joined(node string, without ...string) event.Tunnel {
	e := event.Tunnel{Node: node, Boot: "b1", MAC: macs[node], Addresses: []netip.Addr{tunnelOf[node]}}
	for _, n := range []string{"n1", "n2", "n3"} {
		if n != node && !slices.Contains(without, n) {
			e.Ways = append(e.Ways, event.TunnelWay{To: tunnelOf[n], By: host(n), MAC: macs[n]})
			e.Peers = append(e.Peers, host(n))
		}
	}
	return e
}

func (s *story) proxies(node, protocol string, to ...string) {
	s.say(event.Proxies{Node: node, Boot: "b1", Address: tunnelOf[node], Port: 9080, Protocol: protocol, There: len(to) > 0, To: to})
}

// tunnels gives all nodes their tunnels, which they have and acknowledge.
func tunnels(s *story) {
	s.attach()
	s.commit(&fsm.SetTunnels{Settings: fsm.TunnelSettings{Range4: netip.MustParsePrefix("10.250.0.0/29"), Port: 7446, VNI: 7446}})
	for _, n := range []string{"n1", "n2", "n3"} {
		s.commit(&fsm.ReportTunnels{Node: fsm.NodeID(n), Boot: "b1", Tunnels: true}, &fsm.PutTunnel{Host: fsm.TunnelID(n), Underlay: host(n)})
	}
	s.say(joined("n1"), joined("n2"), joined("n3"))
	s.acknowledge("n1", "n2", "n3")
}

// proxied is a policy to proxy addresses, with the pod of n1 behind its port.
func proxied(led bool) *fsm.PutPolicy {
	r := redirect("BalancingPolicy/p")
	r.Policy.Mode = "nodeProxy"
	r.Policy.Proxied = []fsm.ProxiedPod{{Node: "n1", Pod: "a/dns-1", UID: "u-dns-1", Address: addr("10.244.0.1"), Ready: true,
		Ports: []fsm.ProxyPort{{Port: fsm.Port{Protocol: fsm.TCP, Number: 9080}, Target: 9080}}}}
	if led {
		r.Policy.Backends = []fsm.PolicyBackend{{Address: tunnelOf["n1"], Node: "n1", Ready: true}}
	}
	return r
}

// ledByProxy has the policy lead to n1, which said before that it leads to its pod.
func ledByProxy(s *story) {
	tunnels(s)
	s.object("Node", "n1", "create", "kubelet", `{"metadata":{"name":"n1"},"status":{"addresses":[{"type":"InternalIP","address":"192.0.2.1"}],"conditions":[{"type":"Ready","status":"True"}]}}`)
	s.runs(1, true)
	s.policy("BalancingPolicy", "p", "create", "2026-01-01T00:00:00Z", `"backend":{"serviceEndpoint":{"endpointSelector":{"matchLabels":{"app":"dns"}},"redirectMode":"nodeProxy","toPorts":[{"name":"w","port":"9080","protocol":"TCP"}]}}`)
	s.commit(proxied(false))
	for _, n := range []string{"n1", "n2", "n3"} {
		s.proxies(n, "TCP", "10.244.0.1:9080")
	}
	s.acknowledge("n1", "n2", "n3")
	s.commit(proxied(true))
	s.everywhere(event.Way{Verdict: "use", Rule: 1, Backends: []string{"10.250.0.1:9080"}})
	s.acknowledge("n1", "n2", "n3")
	s.wait(12 * time.Second)
}

func tunnelTales() []tale {
	all := []tale{
		fine("S16", "led-there-once-it-is-acknowledged", ledByProxy),
		breaks("S16", "led-to-a-port-that-leads-nowhere", func(s *story) {
			tunnels(s)
			s.commit(proxied(false))
			s.commit(proxied(true))
		}),
		breaks("S16", "led-to-a-node-without-its-tunnel", func(s *story) {
			tunnels(s)
			s.say(event.Tunnel{Node: "n1", Boot: "b1"})
			s.commit(proxied(true))
		}),
		breaks("S16", "two-hosts-have-an-address", func(s *story) {
			tunnels(s)
			two := joined("n2")
			two.Addresses = append(two.Addresses, tunnelOf["n1"])
			s.say(two)
		}),
		fine("S16", "a-hand-gives-a-host-another-ones-address", func(s *story) {
			tunnels(s)
			two := joined("n2")
			two.Addresses, two.By = append(two.Addresses, tunnelOf["n1"]), "hand"
			s.say(two)
		}),
		breaks("S16", "acknowledged-and-not-known", func(s *story) {
			tunnels(s)
			s.say(joined("n1", "n2"))
			s.acknowledge("n1")
		}),
		breaks("S16", "a-host-that-left-is-still-known", func(s *story) {
			tunnels(s)
			s.commit(&fsm.ReleaseTunnel{Host: "n2"})
			s.acknowledge("n1")
		}),
		fine("S16", "a-host-that-left-is-forgotten", func(s *story) {
			tunnels(s)
			s.commit(&fsm.ReleaseTunnel{Host: "n2"})
			s.say(joined("n1", "n2"))
			s.acknowledge("n1")
		}),
		breaks("S14", "a-proxy-port-leads-to-a-pod-that-went", func(s *story) {
			ledByProxy(s)
			s.pod(1, "delete", `}}`)
			gone := proxied(true)
			gone.Policy.Proxied = nil
			s.commit(gone)
			s.acknowledge("n2")
		}),
		breaks("S14", "a-proxy-port-leads-to-a-pod-of-nobody", func(s *story) {
			ledByProxy(s)
			s.proxies("n2", "TCP", "10.244.0.9:9080")
		}),
		fine("L1", "calls-get-through-tunnels", func(s *story) {
			ledByProxy(s)
			calmDown(s)
		}),
		breaks("L1", "a-host-is-not-known-to-clients", func(s *story) {
			ledByProxy(s)
			s.say(joined("n2", "n1"))
			calmDown(s)
		}),
		breaks("L1", "a-proxy-port-leads-nowhere", func(s *story) {
			ledByProxy(s)
			s.proxies("n1", "TCP")
			calmDown(s)
		}),
	}
	for i := range all {
		all[i].sockets, all[i].tunnels = true, true
	}
	return all
}
