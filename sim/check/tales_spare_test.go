// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// sparing is what the record has of a policy of virtual that spares its own backends, or not: a pod on n1.
func sparing(yes bool) *fsm.PutPolicy {
	r := redirect("BalancingPolicy/p")
	r.Policy.SpareOwn = yes
	r.Policy.Backends = []fsm.PolicyBackend{{Address: addr("10.244.0.1"), Node: "n1", Pod: "a/p-1", UID: "u-p-1", Ready: true}}
	return r
}

// spares is a row that leads to that pod, and leaves it alone.
func spares(yes bool) event.Way {
	return event.Way{Verdict: "use", Rule: 1, Backends: []string{"10.244.0.1:9080"}, Spares: yes}
}

// alone says which pods n1 has, and who leaves them alone.
func (s *story) alone(pods, own []string) {
	s.say(event.Spares{Node: "n1", Boot: "b1", Pods: pods, Own: own})
}

// spared has a policy spare its only backend, everywhere and acknowledged.
func spared(s *story) {
	s.attach()
	s.commit(sparing(true))
	s.everywhere(spares(true))
	s.acknowledge("n1", "n2", "n3")
	s.wait(4 * time.Second)
}

func spareTales() []tale {
	const late = 4 * time.Second
	pod, own := []string{"a/p-1"}, []string{"a/p-1 1"}
	all := []tale{
		fine("S19", "left-alone-once-it-has-sockets", func(s *story) {
			spared(s)
			s.alone(pod, nil)
			s.wait(2 * time.Second)
			s.alone(pod, own)
			s.wait(late)
		}),
		breaks("S19", "not-left-alone", func(s *story) {
			spared(s)
			s.alone(pod, nil)
			s.wait(late)
		}),
		fine("S19", "not-left-alone-by-a-node-that-has-not-heard", func(s *story) {
			s.attach()
			s.commit(sparing(false))
			s.everywhere(spares(false))
			s.acknowledge("n1", "n2", "n3")
			s.alone(pod, nil)
			s.wait(late)
			s.commit(sparing(true))
			s.wait(late)
		}),
		fine("S19", "not-left-alone-by-an-agent-that-does-not-run", func(s *story) {
			spared(s)
			s.say(event.Ended{Process: "n1", Life: 1})
			s.alone(pod, nil)
			s.wait(late)
		}),
		breaks("S19", "another-pod-left-alone", func(s *story) {
			spared(s)
			s.alone([]string{"a/p-1", "a/q-1"}, []string{"a/p-1 1", "a/q-1 1"})
			s.wait(late)
		}),
		fine("S19", "left-alone-where-the-policy-is-not-effective", func(s *story) {
			s.attach()
			r := sparing(true)
			r.Policy.EveryNode, r.Policy.Nodes = false, []fsm.NodeID{"n2"}
			s.commit(r)
			s.gives("n2", virtual+":80", spares(true))
			s.acknowledge("n1", "n2", "n3")
			s.alone(pod, nil)
			s.wait(late)
			s.alone(pod, own)
			s.wait(late)
		}),
		breaks("S19", "left-alone-still", func(s *story) {
			spared(s)
			s.alone(pod, own)
			s.commit(sparing(false))
			s.everywhere(spares(false))
			s.acknowledge("n1")
			s.wait(late)
		}),
		fine("S19", "left-alone-until-the-node-has-heard", func(s *story) {
			spared(s)
			s.alone(pod, own)
			s.commit(sparing(false))
			s.wait(late)
		}),
		breaks("S19", "rows-do-not-say-so", func(s *story) {
			spared(s)
			s.gives("n1", virtual+":80", spares(false))
			s.wait(time.Second)
		}),
		breaks("S19", "led-to-itself-beside-the-row", func(s *story) {
			spared(s)
			s.say(event.Resolves{Node: "n1", Boot: "b1", Address: addr(virtual), Port: 80, Protocol: "TCP", There: true, Way: spares(true), Beyond: spares(false)})
			s.wait(time.Second)
		}),
	}
	for i := range all {
		all[i].sockets = true
	}
	return all
}
