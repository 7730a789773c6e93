// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// movedTo publishes a Service at vip1 on n1 and n2, and has an operator move it to a node.
func movedTo(s *story, node fsm.NodeID) {
	s.publish("web", vip1, "n1", "n2")
	s.commit(&fsm.BeginMove{Service: "a/web", Node: node})
}

func moveTales() []tale {
	return []tale{
		fine("S12", "moved", func(s *story) {
			movedTo(s, "n2")
			s.commit(s.hops(vip1, "n2"))
			s.forward(vip1, "n2")
		}),
		breaks("S12", "moved-away-from-where-it-was-moved", func(s *story) {
			movedTo(s, "n1")
			s.commit(s.hops(vip1, "n2"))
			s.forward(vip1, "n2")
		}),
		breaks("S12", "moved-to-a-node-that-is-not-ready", func(s *story) {
			movedTo(s, "n3")
			s.commit(s.hops(vip1, "n3"))
		}),
		breaks("S12", "long-after-the-move", func(s *story) {
			movedTo(s, "n2")
			s.commit(&fsm.EndMove{Service: "a/web"})
			s.wait(11 * time.Second)
			s.commit(s.hops(vip1, "n2"))
			s.forward(vip1, "n2")
		}),
		breaks("L1", "moved-and-led-to-others", func(s *story) {
			movedTo(s, "n2")
			s.say(event.Calm{})
			s.wait(35 * time.Second)
		}),
		fine("L1", "moved-to-a-node-that-is-drained", func(s *story) {
			movedTo(s, "n3")
			s.commit(&fsm.BeginDrain{Of: fsm.DrainNode, Name: "n3"})
			s.say(event.Calm{})
			s.wait(35 * time.Second)
		}),
		fine("L1", "moved-and-its-lease-too", func(s *story) {
			ownedOnSegment(s, "n2")
			s.say(event.Calm{})
			s.wait(35 * time.Second)
		}),
		breaks("L1", "moved-and-its-lease-not", func(s *story) {
			ownedOnSegment(s, "n1")
			s.say(event.Calm{})
			s.wait(35 * time.Second)
		}),
	}
}

// ownedOnSegment moves the Service to n2, and has a node hold the lease of its address.
func ownedOnSegment(s *story, holder string) {
	s.commit(&fsm.PutL2Advertisement{Advertisement: fsm.L2Advertisement{Name: "lan", Pools: []fsm.PoolName{""}, EveryNode: true}})
	movedTo(s, "n2")
	s.leases(vip1, holder, true)
}
