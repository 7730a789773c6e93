// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"fmt"
	"net/netip"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
)

// podAt is the address of the pod of Service w on a node.
func podAt(n int) netip.Addr { return addr(fmt.Sprint("10.244.0.", n)) }

// endpoints is what the record has of Service w, whose endpoints are probed at a port, 0 for their own: those of some nodes rest.
func endpoints(port uint16, resting ...int) *fsm.PutService {
	c := &fsm.PutService{Service: fsm.Service{ID: "a/w", UID: "u-w", Rare: &fsm.Rare{Probe: fsm.Probe{Type: "TCP", Port: port, Interval: time.Second, Timeout: time.Second, Healthy: 1, Unhealthy: 2}}}}
	for n := 1; n <= 3; n++ {
		e := fsm.Endpoint{Address: podAt(n), Node: fsm.NodeID(fmt.Sprint("n", n)), Ready: true, Serving: true, Offer: &fsm.Offer{Ports: []fsm.EndpointPort{{Port: fsm.Port{Protocol: fsm.TCP, Number: 80}}}}}
		for _, r := range resting {
			if r == n {
				e.Ready, e.Failing = false, true
			}
		}
		c.Service.Endpoints = append(c.Service.Endpoints, e)
	}
	return c
}

// answers has pods take connections at some ports.
func (s *story) answers(ports []string, pods ...int) {
	for _, n := range pods {
		s.say(event.Answers{Pod: fmt.Sprint("a/w-n", n), Node: fmt.Sprint("n", n), Address: podAt(n), Ports: ports})
	}
}

// judges has the record call endpoints bad, and no others.
func (s *story) judges(bad ...int) { s.judgesBy(3, bad...) }

func (s *story) judgesBy(say uint32, bad ...int) {
	c := &fsm.JudgeService{ID: "a/w", UID: "u-w"}
	for _, n := range bad {
		c.Verdicts = append(c.Verdicts, fsm.ProbeVerdict{Address: podAt(n), Say: say, Of: 3})
	}
	s.commit(c)
}

var three = []string{"n1", "n2", "n3"}

// served has Service w with a pod on each node, which are probed at a port, and which everybody has known for a while.
func served(s *story, port uint16) {
	s.answers([]string{"80"}, 1, 2, 3)
	s.wait(7 * time.Second)
	s.publish("w", vip1, three...)
	s.commit(endpoints(port))
	s.acknowledge(three...)
	s.wait(12 * time.Second)
}

// dies has the pod on n2 take no connections, as far as most need to find it out.
func dies(s *story) {
	s.answers(nil, 2)
	s.wait(3 * time.Second)
}

func endpointTales() []tale {
	const late = 11 * time.Second
	own := []string{"80"}
	all := []tale{
		fine("S18", "one-rests-while-it-is-dead", func(s *story) {
			served(s, 0)
			dies(s)
			s.judges(2)
			s.commit(endpoints(0, 2))
			s.acknowledge(three...)
			s.wait(5 * time.Second)
			s.flow(vip1, "n1", "a/w-n1")
			s.wait(late)
			s.answers(own, 2)
			s.wait(3 * time.Second)
			s.judges()
			s.commit(endpoints(0))
			s.wait(late)
		}),
		breaks("S18", "dead-and-nothing-is-said", func(s *story) {
			served(s, 0)
			dies(s)
			s.wait(late)
		}),
		fine("S18", "dead-with-its-node-and-nothing-is-said", func(s *story) {
			served(s, 0)
			dies(s)
			s.commit(&fsm.SetLiveness{Node: "n2", Boot: "b1", Liveness: fsm.NodeDown})
			s.wait(late)
		}),
		breaks("S18", "dead-at-the-port-that-is-asked-and-nothing-is-said", func(s *story) {
			served(s, 443)
			s.wait(late)
		}),
		fine("S18", "dead-at-ports-that-are-not-asked", func(s *story) {
			served(s, 0)
			s.answers([]string{"80", "443"}, 1, 2, 3)
			s.wait(late)
			s.answers(own, 1, 2, 3)
			s.wait(late)
		}),
		breaks("S18", "bad-and-does-not-rest", func(s *story) {
			served(s, 0)
			dies(s)
			s.judges(2)
			s.wait(5 * time.Second)
		}),
		fine("S18", "bad-and-does-not-rest-while-the-api-server-is-away", func(s *story) {
			served(s, 0)
			dies(s)
			s.say(event.FaultBegan{ID: 1, Fault: "kubernetes-down", On: []string{start.Kubernetes}})
			s.judges(2)
			s.wait(5 * time.Second)
		}),
		breaks("S18", "rests-though-it-is-not-bad", func(s *story) {
			served(s, 0)
			s.commit(endpoints(0, 2))
			s.wait(5 * time.Second)
		}),
		fine("S18", "none-rests-where-all-are-dead", func(s *story) {
			served(s, 0)
			s.answers(nil, 1, 2, 3)
			s.wait(3 * time.Second)
			s.judges(1, 2, 3)
			s.wait(late)
		}),
		breaks("S18", "all-rest-where-all-are-dead", func(s *story) {
			served(s, 0)
			s.answers(nil, 1, 2, 3)
			s.wait(3 * time.Second)
			s.judges(1, 2, 3)
			s.commit(endpoints(0, 1, 2, 3))
			s.wait(5 * time.Second)
		}),
		breaks("S18", "bad-still-though-it-is-back", func(s *story) {
			served(s, 0)
			dies(s)
			s.judges(2)
			s.commit(endpoints(0, 2))
			s.wait(late)
			s.answers(own, 2)
			s.wait(late)
		}),
		breaks("S18", "bad-and-nobody-found-it", func(s *story) {
			served(s, 0)
			s.judges(2)
		}),
		breaks("S18", "bad-by-more-than-found-it", func(s *story) {
			served(s, 0)
			s.say(event.Link{From: "n1", To: start.PodPrefix + podAt(2).String()})
			s.wait(3 * time.Second)
			s.judgesBy(2, 2)
		}),
		breaks("S18", "bad-by-the-only-one-that-finds-it", func(s *story) {
			served(s, 0)
			s.say(event.Link{From: "n1", To: start.PodPrefix + podAt(2).String()})
			s.wait(3 * time.Second)
			s.judgesBy(1, 2)
		}),
		fine("S18", "one-that-finds-it-says-nothing", func(s *story) {
			served(s, 0)
			s.say(event.Link{From: "n1", To: start.PodPrefix + podAt(2).String()})
			s.wait(late)
		}),
		breaks("S18", "bad-by-the-port-of-before", func(s *story) {
			served(s, 0)
			s.commit(endpoints(443))
			s.wait(3 * time.Second)
			s.judges(1, 2, 3)
			s.wait(5 * time.Second)
			s.commit(endpoints(0))
			s.judges(2)
		}),
		fine("S18", "a-request-while-the-node-has-not-heard", func(s *story) {
			served(s, 0)
			dies(s)
			s.judges(2)
			s.commit(endpoints(0, 2))
			s.wait(5 * time.Second)
			s.flow(vip1, "n1", "a/w-n2")
		}),
		breaks("S18", "a-request-to-one-that-rests", func(s *story) {
			served(s, 0)
			dies(s)
			s.judges(2)
			s.commit(endpoints(0, 2))
			s.acknowledge(three...)
			s.wait(5 * time.Second)
			s.flow(vip1, "n1", "a/w-n2")
		}),
		fine("S12", "a-hop-whose-endpoint-rests-goes", func(s *story) {
			served(s, 0)
			dies(s)
			s.judges(2)
			s.commit(endpoints(0, 2))
			s.withdraw(vip1, "n2", "n1", "n3")
			s.acknowledge(three...)
		}),
	}
	for i := range all {
		all[i].sockets, all[i].probes = true, true
	}
	return all
}
