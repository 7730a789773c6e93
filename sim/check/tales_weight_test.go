// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"time"

	"fairlead.io/fairlead/sim/event"
)

func weightTales() []tale {
	return []tale{
		fine("S8", "weighs-something", func(s *story) {
			s.weighed("pod/web-n1=0, node/n2=3", 4*time.Second)
			s.flow(vip1, "n1", "a/web-n2")
		}),
		breaks("S8", "weighs-nothing", func(s *story) {
			s.weighed("pod/web-n1=0, node/n2=3", 4*time.Second)
			s.flow(vip1, "n2", "a/web-n1")
		}),
		fine("S8", "weighs-nothing-since-just-now", func(s *story) {
			s.weighed("pod/web-n1=0", 2*time.Second)
			s.flow(vip1, "n2", "a/web-n1")
		}),
		fine("S8", "weighs-nothing-by-a-node-that-cannot-know", func(s *story) {
			s.weighed("pod/web-n1=0", 0)
			s.say(event.FaultBegan{ID: 1, Fault: "kill", On: []string{"n2"}})
			s.wait(4 * time.Second)
			s.flow(vip1, "n2", "a/web-n1")
		}),
		breaks("S8", "where-all-weigh-nothing", func(s *story) {
			s.weighed("pod/*=0", 4*time.Second)
			s.flow(vip1, "n2", "a/web-n1")
		}),
		fine("S8", "what-weighs-anything-is-where-nobody-is", func(s *story) {
			s.weighed("node/n1=0", 4*time.Second)
			s.say(event.FaultBegan{ID: 1, Fault: "kill", On: []string{"n2"}})
			s.wait(4 * time.Second)
			s.flow(vip1, "n1", "")
		}),
		breaks("S8", "what-weighs-anything-is-there", func(s *story) {
			s.weighed("node/n1=0", 4*time.Second)
			s.flow(vip1, "n1", "")
		}),
	}
}

// weighed publishes a Service with pods on n1 and n2, says what they weigh, and waits.
func (s *story) weighed(rules string, d time.Duration) {
	s.publish("web", vip1, "n1", "n2")
	s.object("Service", "web", "update", "user", `{"metadata":{"namespace":"a","name":"web","uid":"u-web","annotations":{"fairlead.io/endpoint-weights":"`+
		rules+`"}},"spec":{"type":"LoadBalancer","ports":[{"port":80}]},"status":{"loadBalancer":{"ingress":[{"ip":"`+vip1+`"}]}}}`)
	s.wait(d)
}
