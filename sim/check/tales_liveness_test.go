// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"time"

	"fairlead.io/fairlead/sim/event"
)

func livenessTales() []tale {
	return []tale{
		fine("L1", "everything-agrees", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.say(event.Calm{})
			s.wait(65 * time.Second)
		}),
		fine("L1", "backend-there", func(s *story) {
			bound(s)
			s.say(event.Calm{})
			s.wait(100 * time.Second)
		}),
		fine("L1", "backend-taken-off-by-hand", func(s *story) {
			bound(s)
			s.say(event.Entry{Balancer: lb, Address: backend, Owner: "fairlead", By: "hand"}, event.Calm{})
			s.wait(100 * time.Second)
		}),
		breaks("L1", "backend-never-bound", func(s *story) {
			s.bind("b1")
			s.say(event.Calm{})
			s.wait(100 * time.Second)
		}),
		breaks("L1", "backend-not-there", func(s *story) {
			bound(s)
			s.say(event.Entry{Balancer: lb, Address: backend, Owner: "fairlead", By: "driver"}, event.Calm{})
			s.wait(100 * time.Second)
		}),
		breaks("L1", "no-address", func(s *story) {
			s.service("web", "create", "user", "}")
			s.say(event.Calm{})
			s.wait(35 * time.Second)
		}),
		breaks("L1", "next-hop-missing", func(s *story) {
			s.publish("web", vip1, "n1")
			s.serve("web", "n1", "n2")
			s.say(event.Calm{})
			s.wait(35 * time.Second)
		}),
		breaks("L1", "next-hop-left", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.serve("web", "n1")
			s.say(event.Calm{})
			s.wait(35 * time.Second)
		}),
		breaks("L1", "switch-lacks-a-hop", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.forward(vip1, "n1")
			s.say(event.Calm{})
			s.wait(35 * time.Second)
		}),
		breaks("L1", "address-left", func(s *story) {
			s.publish("web", vip1, "n1")
			s.service("web", "delete", "user", "}")
			s.say(event.Calm{})
			s.wait(35 * time.Second)
		}),
		breaks("L1", "status-not-written", func(s *story) {
			s.publish("web", vip1, "n1")
			s.service("web", "status", "m1", `},"status":{}`)
			s.say(event.Calm{})
			s.wait(35 * time.Second)
		}),
		breaks("L1", "kernel-lost-its-rules", func(s *story) {
			s.publish("web", vip1, "n1")
			s.say(event.Steered{Node: "n1", Boot: "b1", By: "hand"}, event.Calm{})
			s.wait(35 * time.Second)
		}),
		breaks("L1", "kernel-kept-its-rules", func(s *story) {
			s.steer("n3", vip2, true)
			s.say(event.Calm{})
			s.wait(65 * time.Second)
		}),
		fine("L3", "minority-away", func(s *story) {
			s.say(event.FaultBegan{ID: 1, Fault: "cut", On: []string{"m3"}})
			s.wait(5 * time.Second)
			s.put("c1", "x", "1")
			s.publish("web", vip1, "n1")
		}),
		fine("L3", "majority-away", func(s *story) {
			s.say(event.FaultBegan{ID: 1, Fault: "cut", On: []string{"m3", "m2"}})
			s.service("web", "create", "user", "}")
			s.serve("web", "n1")
			fails(s, 10)
			s.wait(10 * time.Second)
			s.say(event.FaultEnded{ID: 1})
			s.publish("web", vip1, "n1")
			s.put("c1", "x", "1")
		}),
		fine("L3", "leader-lost", func(s *story) {
			s.say(event.FaultBegan{ID: 1, Fault: "kill", On: []string{"m3"}}, event.Leading{Process: "m3", Life: 1, Term: 2, On: true},
				event.Ended{Process: "m3", Life: 1})
			fails(s, 4)
			s.put("c1", "x", "1")
		}),
		fine("L3", "api-server-not-asked-again-yet", func(s *story) {
			s.say(event.FaultBegan{ID: 1, Fault: "away", On: []string{"kubernetes"}})
			s.service("web", "create", "user", "}")
			s.serve("web", "n1")
			s.wait(10 * time.Second)
			s.say(event.FaultEnded{ID: 1})
			s.wait(12 * time.Second)
			s.publish("web", vip1, "n1")
		}),
		breaks("L3", "api-server-not-asked-again", func(s *story) {
			s.say(event.FaultBegan{ID: 1, Fault: "away", On: []string{"kubernetes"}})
			s.service("web", "create", "user", "}")
			s.serve("web", "n1")
			s.wait(10 * time.Second)
			s.say(event.FaultEnded{ID: 1})
			s.wait(14 * time.Second)
		}),
		breaks("L3", "calls-fail", func(s *story) {
			s.say(event.FaultBegan{ID: 1, Fault: "cut", On: []string{"m3"}})
			fails(s, 10)
		}),
		breaks("L3", "call-hangs", func(s *story) {
			s.say(event.CallBegan{Client: "c1", ID: 99, Do: "put", Key: "x", Value: "1", To: "m2"})
			s.wait(4 * time.Second)
		}),
		breaks("L3", "service-without-route", func(s *story) {
			s.say(event.FaultBegan{ID: 1, Fault: "cut", On: []string{"m3"}})
			s.service("web", "create", "user", "}")
			s.serve("web", "n1")
			s.wait(4 * time.Second)
		}),
	}
}

// fails has a client ask in vain, twice a second.
func fails(s *story, n int) {
	for i := range n {
		s.say(event.CallBegan{Client: "c1", ID: 200 + i, Do: "put", Key: "z", Value: "1", To: "m1"})
		s.wait(500 * time.Millisecond)
		s.say(event.CallEnded{Client: "c1", ID: 200 + i, Outcome: "unknown", Why: "no leader"})
	}
}
