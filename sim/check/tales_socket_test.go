// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// virtual is an address that a policy captures, inside one of the Service "web".
const (
	virtual = "169.254.77.1"
	inside  = "10.96.0.10"
)

func (s *story) policy(kind, name, verb, created, rest string) {
	s.object(kind, name, verb, "user", `{"metadata":{"name":"`+name+`","uid":"u-`+name+`","creationTimestamp":"`+created+`"},"spec":{"frontend":{"addressMatcher":{"ip":"`+virtual+
		`","toPorts":[{"name":"w","port":"80","protocol":"TCP"}]}},`+rest+`}}`)
}

const (
	toDNS      = `"backend":{"serviceEndpoint":{"endpointSelector":{"matchLabels":{"app":"dns"}},"toPorts":[{"name":"w","port":"9080","protocol":"TCP"}]}}`
	toLocalDNS = `"backend":{"endpointSelector":{"matchLabels":{"app":"dns"}},"toPorts":[{"name":"w","port":"9080","protocol":"TCP"}]}`
	atEdge     = `"config":{"nodeLabelSelector":{"matchLabels":{"role":"edge"}}},`
)

func (s *story) pod(n int, verb, more string) {
	s.object("Pod", fmt.Sprint("dns-", n), verb, "kubelet", fmt.Sprintf(`{"metadata":{"namespace":"a","name":"dns-%d","uid":"u-dns-%d","labels":{"app":"dns"}%s`, n, n, more))
}

// pods are dns-1 on n1 and dns-2 on n2, which are ready unless it is said otherwise.
func (s *story) runs(n int, ready bool) {
	status := map[bool]string{true: "True", false: "False"}[ready]
	s.pod(n, "status", fmt.Sprintf(`},"spec":{"nodeName":"n%d"},"status":{"phase":"Running","podIP":"10.244.0.%d","conditions":[{"type":"Ready","status":"%s"}]}}`, n, n, status))
}

// redirect is what the record has of a policy of virtual, with some of the pods.
func redirect(id string, pods ...int) *fsm.PutPolicy {
	kind, name, _ := strings.Cut(id, "/")
	r := fsm.Policy{
		ID: fsm.PolicyID(id), UID: "u-" + name, EveryNode: true, Mode: map[bool]string{true: "local", false: "podEndpoint"}[kind == "LocalRedirectPolicy"],
		Captures: []fsm.Capture{{Address: addr(virtual), Port: fsm.Port{Protocol: fsm.TCP, Number: 80}, Target: 9080}},
	}
	for _, n := range pods {
		r.Backends = append(r.Backends, fsm.PolicyBackend{
			Address: addr(fmt.Sprint("10.244.0.", n)), Node: fsm.NodeID(fmt.Sprint("n", n)), Pod: fmt.Sprint("a/dns-", n), UID: fmt.Sprint("u-dns-", n), Ready: true,
		})
	}
	return &fsm.PutPolicy{Policy: r}
}

func useOf(rule uint32, pods ...int) event.Way {
	w := event.Way{Verdict: "use", Rule: rule}
	for _, n := range pods {
		w.Backends = append(w.Backends, fmt.Sprintf("10.244.0.%d:9080", n))
	}
	return w
}

func (s *story) gives(node, at string, w event.Way) {
	to := netip.MustParseAddrPort(at)
	s.say(event.Resolves{Node: node, Boot: "b1", Address: to.Addr(), Port: to.Port(), Protocol: "TCP", There: true, Way: w})
}

func (s *story) everywhere(w event.Way) {
	for _, n := range []string{"n1", "n2", "n3"} {
		s.gives(n, virtual+":80", w)
	}
}

func (s *story) attach() {
	for _, n := range []string{"n1", "n2", "n3"} {
		s.say(event.Programs{Node: n, Boot: "b1", Attached: true})
	}
}

// redirected has a BalancingPolicy lead to two pods, everywhere and acknowledged.
func redirected(s *story) {
	s.attach()
	s.runs(1, true)
	s.runs(2, true)
	s.policy("BalancingPolicy", "p", "create", "2026-01-01T00:00:00Z", toDNS)
	s.commit(redirect("BalancingPolicy/p", 1, 2))
	s.everywhere(useOf(1, 1, 2))
	s.acknowledge("n1", "n2", "n3")
	s.wait(12 * time.Second)
}

func calmDown(s *story) {
	s.say(event.Calm{})
	s.wait(35 * time.Second)
}

func socketTales() []tale {
	all := []tale{
		fine("S14", "taken-off-before-it-is-acknowledged", func(s *story) {
			redirected(s)
			s.pod(2, "delete", `}}`)
			s.commit(redirect("BalancingPolicy/p", 1))
			s.everywhere(useOf(1, 1))
			s.acknowledge("n1", "n2", "n3")
		}),
		fine("S14", "not-acknowledged-yet", func(s *story) {
			redirected(s)
			s.pod(2, "delete", `}}`)
			s.commit(redirect("BalancingPolicy/p", 1))
			s.everywhere(useOf(1, 1, 2))
		}),
		breaks("S14", "acknowledged-and-not-taken-off", func(s *story) {
			redirected(s)
			s.pod(2, "delete", `}}`)
			s.commit(redirect("BalancingPolicy/p", 1))
			s.acknowledge("n1")
		}),
		breaks("S14", "led-there-again", func(s *story) {
			redirected(s)
			s.pod(2, "delete", `}}`)
			s.commit(redirect("BalancingPolicy/p", 1))
			s.everywhere(useOf(1, 1))
			s.acknowledge("n1", "n2", "n3")
			s.gives("n3", virtual+":80", useOf(1, 1, 2))
		}),
		breaks("S14", "another-port-than-the-record-ever-had", func(s *story) {
			redirected(s)
			s.gives("n3", virtual+":80", event.Way{Verdict: "use", Rule: 1, Backends: []string{"10.244.0.1:80"}})
		}),
		breaks("S14", "unready-and-still-led-to", func(s *story) {
			redirected(s)
			s.runs(2, false)
			r := redirect("BalancingPolicy/p", 1, 2)
			r.Policy.Backends[1].Ready = false
			s.commit(r)
			s.acknowledge("n1")
		}),
		fine("S14", "an-address-that-left-is-served-on", func(s *story) {
			s.publish("web", vip1, "n1")
			s.commit(&fsm.PutService{Service: fsm.Service{ID: "a/web", UID: "u-web", Frontends: []fsm.Frontend{{Name: "", Port: fsm.Port{Protocol: fsm.TCP, Number: 80}}},
				Endpoints: []fsm.Endpoint{{Address: addr("10.244.0.1"), Node: "n1", Ready: true, Offer: &fsm.Offer{Ports: []fsm.EndpointPort{{Port: fsm.Port{Protocol: fsm.TCP, Number: 9080}}}}}}}})
			s.attach()
			s.gives("n1", vip1+":80", useOf(7, 1))
			s.acknowledge("n1")
			s.wait(time.Second)
			s.service("web", "delete", "user", "}")
			s.wait(time.Second)
			s.withdraw(vip1, "n1")
			s.commit(&fsm.ReleaseAllocation{Address: addr(vip1), Service: "a/web"})
			s.acknowledge("n1")
			s.gives("n1", vip1+":80", useOf(7, 1))
		}),
		fine("S14", "gone-with-a-boot", func(s *story) {
			redirected(s)
			s.pod(2, "delete", `}}`)
			s.say(event.MachineDown{Machine: "n1"}, event.MachineUp{Machine: "n1", Boot: "b2"})
			s.commit(redirect("BalancingPolicy/p", 1), &fsm.RegisterBoot{Node: "n1", Boot: "b2"})
			s.commit(&fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: "n1", Boot: "b2", Upto: s.state.Read().Revision()}}})
		}),

		fine("S15", "given-again-when-nobody-has-it", func(s *story) {
			redirected(s)
			s.policy("BalancingPolicy", "p", "delete", "", toDNS)
			s.commit(&fsm.DeletePolicy{ID: "BalancingPolicy/p", UID: "u-p"})
			for _, n := range []string{"n1", "n2", "n3"} {
				s.say(event.Resolves{Node: n, Boot: "b1", Address: addr(virtual), Port: 80, Protocol: "TCP"})
			}
			s.acknowledge("n1", "n2", "n3")
			r := redirect("BalancingPolicy/q", 1)
			r.Policy.Number = 1
			s.commit(r)
		}),
		breaks("S15", "given-again-while-a-node-has-rows-by-it", func(s *story) {
			redirected(s)
			s.policy("BalancingPolicy", "p", "delete", "", toDNS)
			s.commit(&fsm.DeletePolicy{ID: "BalancingPolicy/p", UID: "u-p"})
			s.acknowledge("n1", "n2", "n3")
			r := redirect("BalancingPolicy/q", 1)
			r.Policy.Number = 1
			s.commit(r)
		}),

		fine("S12", "policy-deleted", func(s *story) {
			redirected(s)
			s.policy("BalancingPolicy", "p", "delete", "", toDNS)
			s.commit(&fsm.DeletePolicy{ID: "BalancingPolicy/p", UID: "u-p"})
		}),
		breaks("S12", "policy-given-up", func(s *story) {
			redirected(s)
			s.commit(&fsm.DeletePolicy{ID: "BalancingPolicy/p", UID: "u-p"})
		}),
		fine("S12", "backend-whose-pod-goes", func(s *story) {
			redirected(s)
			s.pod(2, "update", `,"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"nodeName":"n2"},"status":{"phase":"Running","podIP":"10.244.0.2"}}`)
			s.commit(redirect("BalancingPolicy/p", 1))
		}),
		breaks("S12", "backend-taken-away", func(s *story) {
			redirected(s)
			s.commit(redirect("BalancingPolicy/p", 1))
		}),
		breaks("S12", "place-given-up", func(s *story) {
			redirected(s)
			r := redirect("BalancingPolicy/p", 1, 2)
			r.Policy.Captures = nil
			s.commit(r)
		}),
		breaks("S12", "policy-given-up-on-a-node", func(s *story) {
			s.policy("BalancingPolicy", "p", "create", "2026-01-01T00:00:00Z", atEdge+toDNS)
			r := redirect("BalancingPolicy/p")
			r.Policy.EveryNode, r.Policy.Nodes = false, []fsm.NodeID{"n1"}
			s.commit(r)
			s.wait(12 * time.Second)
			r.Policy.Nodes = nil
			s.commit(r)
		}),

		fine("L1", "calls-get-what-a-policy-says", func(s *story) {
			redirected(s)
			calmDown(s)
		}),
		breaks("L1", "calls-get-an-unready-backend", func(s *story) {
			redirected(s)
			s.runs(2, false)
			calmDown(s)
		}),
		fine("L1", "none-is-ready-and-all-that-run-count", func(s *story) {
			redirected(s)
			s.runs(1, false)
			s.runs(2, false)
			calmDown(s)
		}),
		breaks("L1", "calls-get-what-a-deleted-policy-said", func(s *story) {
			redirected(s)
			s.policy("BalancingPolicy", "p", "delete", "", toDNS)
			s.commit(&fsm.DeletePolicy{ID: "BalancingPolicy/p", UID: "u-p"})
			calmDown(s)
		}),
		breaks("L1", "no-program-works", func(s *story) {
			redirected(s)
			s.say(event.Programs{Node: "n2", Boot: "b1"})
			calmDown(s)
		}),
		breaks("L1", "effective-on-a-node-without-the-label", func(s *story) {
			redirected(s)
			s.policy("BalancingPolicy", "p", "update", "2026-01-01T00:00:00Z", atEdge+toDNS)
			calmDown(s)
		}),
		breaks("L1", "the-younger-one-counts", func(s *story) {
			redirected(s)
			s.policy("BalancingPolicy", "a", "create", "2025-01-01T00:00:00Z", strings.ReplaceAll(toDNS, "9080", "9081"))
			calmDown(s)
		}),
		fine("L1", "local-before-balancing-on-nodes-with-a-pod", func(s *story) {
			redirected(s)
			s.policy("LocalRedirectPolicy", "l", "create", "2026-01-01T00:00:00Z", toLocalDNS)
			s.commit(redirect("LocalRedirectPolicy/l", 1, 2))
			for n := 1; n < 3; n++ {
				s.say(event.Resolves{
					Node: fmt.Sprint("n", n), Boot: "b1", Address: addr(virtual), Port: 80, Protocol: "TCP", There: true, Way: useOf(2, n), Limited: true, Beyond: useOf(1, 1, 2),
				})
			}
			calmDown(s)
		}),
		breaks("L1", "local-not-before-balancing", func(s *story) {
			redirected(s)
			s.policy("LocalRedirectPolicy", "l", "create", "2026-01-01T00:00:00Z", toLocalDNS)
			s.commit(redirect("LocalRedirectPolicy/l", 1, 2))
			calmDown(s)
		}),
		breaks("L1", "counted-for-another", func(s *story) {
			redirected(s)
			s.everywhere(useOf(9, 1, 2))
			calmDown(s)
		}),
		fine("L1", "a-cluster-address-with-an-endpoint-elsewhere", func(s *story) {
			clusterIP(s, "")
			for _, n := range []string{"n1", "n2", "n3"} {
				s.gives(n, inside+":80", useOf(7, 1))
			}
			calmDown(s)
		}),
		fine("L1", "a-cluster-address-for-the-node-alone", func(s *story) {
			clusterIP(s, `,"internalTrafficPolicy":"Local"`)
			s.gives("n1", inside+":80", useOf(7, 1))
			s.gives("n2", inside+":80", event.Way{Verdict: "unreachable", Rule: 7})
			s.gives("n3", inside+":80", event.Way{Verdict: "unreachable", Rule: 7})
			calmDown(s)
		}),
		breaks("L1", "a-cluster-address-that-is-left-alone", func(s *story) {
			clusterIP(s, "")
			calmDown(s)
		}),
	}
	for i := range all {
		all[i].sockets = true
	}
	return all
}

// clusterIP makes a Service with a ClusterIP alone, whose endpoint is on n1.
func clusterIP(s *story, more string) {
	s.attach()
	s.object("Service", "web", "create", "user",
		`{"metadata":{"namespace":"a","name":"web","uid":"u-web"},"spec":{"type":"ClusterIP","clusterIP":"`+inside+`","ports":[{"name":"w","port":80,"protocol":"TCP"}]`+more+`}}`)
	s.object("EndpointSlice", "web-1", "create", "controller", `{"metadata":{"labels":{"kubernetes.io/service-name":"web"}},"ports":[{"name":"w","port":9080,"protocol":"TCP"}],`+
		`"endpoints":[{"addresses":["10.244.0.1"],"nodeName":"n1","conditions":{"ready":true}}]}`)
	s.commit(&fsm.PutService{Service: fsm.Service{ID: "a/web", UID: "u-web", ClusterIPs: []netip.Addr{addr(inside)}, Frontends: []fsm.Frontend{{Name: "w", Port: fsm.Port{Protocol: fsm.TCP, Number: 80}}},
		Endpoints: []fsm.Endpoint{{Address: addr("10.244.0.1"), Node: "n1", Ready: true, Offer: &fsm.Offer{Ports: []fsm.EndpointPort{{Name: "w", Port: fsm.Port{Protocol: fsm.TCP, Number: 9080}}}}}}}})
}
