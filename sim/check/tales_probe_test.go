// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"fmt"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
)

const toListed = `"backend":{"addressEndpoint":{"addresses":["10.20.0.11","10.20.0.12"],"toPorts":[{"name":"w","port":"9080","protocol":"TCP"}]}}`

// listing is what the record has of a policy of virtual that leads to two listed addresses, which are probed.
func listing() *fsm.PutPolicy {
	r := redirect("BalancingPolicy/p")
	r.Policy.Mode = "address"
	r.Policy.Probe = fsm.Probe{Type: "TCP", Interval: time.Second, Timeout: time.Second, Healthy: 1, Unhealthy: 2}
	for n := 11; n <= 12; n++ {
		r.Policy.Backends = append(r.Policy.Backends, fsm.PolicyBackend{Address: addr(fmt.Sprint("10.20.0.", n)), Ready: true})
	}
	return r
}

// atListed is a row that leads to some of these addresses.
func atListed(last ...int) event.Way {
	w := event.Way{Verdict: "use", Rule: 1}
	for _, n := range last {
		w.Backends = append(w.Backends, fmt.Sprintf("10.20.0.%d:9080", n))
	}
	return w
}

// listed has a policy lead to both addresses, everywhere and acknowledged.
func listed(s *story) {
	s.attach()
	s.policy("BalancingPolicy", "p", "create", "2026-01-01T00:00:00Z", toListed)
	s.commit(listing())
	s.everywhere(atListed(11, 12))
	s.acknowledge("n1", "n2", "n3")
	s.wait(12 * time.Second)
}

// blocks has nodes not reach an address, or reach it again.
func (s *story) blocks(last int, on bool, nodes ...string) {
	for _, n := range nodes {
		s.say(event.Link{From: n, To: fmt.Sprintf("%s10.20.0.%d", start.ListedPrefix, last), Up: !on})
	}
}

// says has the record call the second address bad, or good.
func (s *story) says(bad bool) {
	s.commit(&fsm.SetPolicyHealth{ID: "BalancingPolicy/p", UID: "u-p", Verdicts: []fsm.ProbeVerdict{
		{Address: addr("10.20.0.12"), Port: fsm.Port{Protocol: fsm.TCP, Number: 9080}, Healthy: !bad, Say: 2, Of: 3},
	}})
}

func probeTales() []tale {
	const late = 11 * time.Second
	all := []tale{
		fine("S17", "left-out-where-it-cannot-be-reached", func(s *story) {
			listed(s)
			s.blocks(12, true, "n1")
			s.wait(3 * time.Second)
			s.gives("n1", virtual+":80", atListed(11))
			s.wait(late)
			s.blocks(12, false, "n1")
			s.wait(3 * time.Second)
			s.gives("n1", virtual+":80", atListed(11, 12))
			s.wait(late)
		}),
		breaks("S17", "led-to-what-cannot-be-reached", func(s *story) {
			listed(s)
			s.blocks(12, true, "n1")
			s.wait(late)
		}),
		breaks("S17", "led-there-by-a-node-that-is-cut-off", func(s *story) {
			listed(s)
			s.say(event.FaultBegan{ID: 1, Fault: "partition", On: []string{"n1"}})
			s.blocks(12, true, "n1")
			s.wait(late)
		}),
		fine("S17", "led-there-by-an-agent-that-does-not-run", func(s *story) {
			listed(s)
			s.say(event.Ended{Process: "n1", Life: 1})
			s.blocks(12, true, "n1")
			s.wait(late)
		}),
		fine("S17", "led-there-by-a-node-whose-kernel-fails", func(s *story) {
			listed(s)
			s.say(event.FaultBegan{ID: 1, Fault: "kernel-error", On: []string{"n1"}})
			s.blocks(12, true, "n1")
			s.wait(late)
		}),
		fine("S17", "led-there-by-an-agent-that-started-and-has-to-find-out", func(s *story) {
			listed(s)
			s.blocks(12, true, "n1")
			s.gives("n1", virtual+":80", atListed(11))
			s.wait(late)
			s.say(event.Ended{Process: "n1", Life: 1}, event.Started{Process: "n1", Life: 2, Boot: "b1"})
			s.gives("n1", virtual+":80", atListed(11, 12))
			s.wait(5 * time.Second)
			s.gives("n1", virtual+":80", atListed(11))
			s.wait(late)
		}),
		breaks("S17", "led-there-by-an-agent-that-started-though-the-record-says-better", func(s *story) {
			listed(s)
			s.blocks(12, true, three...)
			s.everywhere(atListed(11))
			s.says(true)
			s.acknowledge(three...)
			s.wait(late)
			s.say(event.Ended{Process: "n1", Life: 1}, event.Started{Process: "n1", Life: 2, Boot: "b1"})
			s.gives("n1", virtual+":80", atListed(11, 12))
			s.wait(3 * time.Second)
			s.gives("n1", virtual+":80", atListed(11))
			s.wait(late)
		}),
		fine("S17", "led-there-by-an-agent-that-started-and-has-not-heard-what-the-record-says", func(s *story) {
			listed(s)
			s.blocks(12, true, three...)
			s.everywhere(atListed(11))
			s.says(true)
			s.wait(late)
			s.say(event.Ended{Process: "n1", Life: 1}, event.Started{Process: "n1", Life: 2, Boot: "b1"})
			s.gives("n1", virtual+":80", atListed(11, 12))
			s.wait(3 * time.Second)
			s.gives("n1", virtual+":80", atListed(11))
			s.wait(late)
		}),
		breaks("S17", "left-out-though-it-answers-again", func(s *story) {
			listed(s)
			s.blocks(12, true, "n1")
			s.gives("n1", virtual+":80", atListed(11))
			s.wait(late)
			s.blocks(12, false, "n1")
			s.wait(late)
		}),
		fine("S17", "all-where-none-can-be-reached", func(s *story) {
			listed(s)
			s.blocks(11, true, "n1")
			s.blocks(12, true, "n1")
			s.wait(late)
		}),
		breaks("S17", "none-where-none-can-be-reached", func(s *story) {
			listed(s)
			s.blocks(11, true, "n1")
			s.blocks(12, true, "n1")
			s.gives("n1", virtual+":80", event.Way{Verdict: "refuse", Rule: 1})
			s.wait(late)
		}),
		fine("S17", "what-most-find-is-said", func(s *story) {
			listed(s)
			s.blocks(12, true, "n1", "n2")
			for _, n := range three[:2] {
				s.gives(n, virtual+":80", atListed(11))
			}
			s.says(true)
			s.wait(late)
		}),
		breaks("S17", "what-most-find-is-not-said", func(s *story) {
			listed(s)
			s.blocks(12, true, "n1", "n2")
			for _, n := range three[:2] {
				s.gives(n, virtual+":80", atListed(11))
			}
			s.wait(late)
		}),
		breaks("S17", "what-one-finds-is-said", func(s *story) {
			listed(s)
			s.blocks(12, true, "n1")
			s.gives("n1", virtual+":80", atListed(11))
			s.says(true)
			s.wait(late)
		}),
		breaks("S17", "said-still-though-it-answers-again", func(s *story) {
			listed(s)
			s.blocks(12, true, three...)
			s.everywhere(atListed(11))
			s.says(true)
			s.wait(late)
			s.blocks(12, false, three...)
			s.everywhere(atListed(11, 12))
			s.wait(late)
		}),
		fine("S17", "not-told-of-the-policy-as-it-is", func(s *story) {
			listed(s)
			s.blocks(12, true, "n1")
			s.gives("n1", virtual+":80", atListed(11))
			s.wait(late)
			r := listing()
			r.Policy.Backends = r.Policy.Backends[1:]
			s.commit(r)
			s.wait(late)
		}),
		breaks("S17", "told-of-the-policy-as-it-is", func(s *story) {
			listed(s)
			r := listing()
			r.Policy.Backends = r.Policy.Backends[1:]
			s.commit(r)
			s.acknowledge("n1")
			s.wait(late)
		}),
	}
	for i := range all {
		all[i].sockets, all[i].probes = true, true
	}
	return all
}
