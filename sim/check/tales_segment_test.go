// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// term is that of the leases in these tales.
const term = 3 * time.Second

// leases gives a node the lease of an address.
func (s *story) leases(vip, node string, keep bool) fsm.Revision {
	return s.commit(&fsm.GrantLease{VIP: addr(vip), Holder: fsm.NodeID(node), Term: term, Keep: keep})
}

// told has a member tell a node something.
func (s *story) told(node string) {
	s.say(event.Message{From: "m1", To: node, What: "data", Sent: s.now, Arrived: s.now})
}

func (s *story) claims(node, vip string, asked bool) {
	s.say(event.Claim{Node: node, Segment: "lan1", Address: addr(vip), Asked: asked})
}

// owned publishes a Service at vip1 on n1 and n2, whose address n1 answers for.
func owned(s *story, keep bool) fsm.Revision {
	s.publish("web", vip1, "n1", "n2")
	fence := s.leases(vip1, "n1", keep)
	s.told("n1")
	s.claims("n1", vip1, false)
	s.claims("n1", vip1, true)
	return fence
}

// handedOverBefore has n2 answer for vip1, and restores a record by which n1 does.
func handedOverBefore(s *story, keep bool) {
	fence := owned(s, keep)
	backup := snapshot(s)
	s.commit(&fsm.EndLease{VIP: addr(vip1), Fence: fence, Word: fsm.WordHolder}, &fsm.GrantLease{VIP: addr(vip1), Holder: "n2", Term: term, Keep: keep})
	s.told("n2")
	s.claims("n2", vip1, false)
	restored(s, backup)
}

// unanswered has somebody ask for vip1 for a time, in vain.
func unanswered(s *story, d time.Duration) {
	for end := s.now + d; s.now < end; s.wait(time.Second) {
		s.say(event.Asks{Segment: "lan1", Address: addr(vip1)})
	}
}

func segmentTales() []tale {
	return []tale{
		fine("S10", "handed-over", func(s *story) {
			fence := owned(s, false)
			s.commit(&fsm.EndLease{VIP: addr(vip1), Fence: fence}, &fsm.GrantLease{VIP: addr(vip1), Holder: "n2", Term: term})
			s.told("n2")
			s.claims("n2", vip1, false)
			s.claims("n2", vip1, true)
		}),
		breaks("S10", "two-answer", func(s *story) {
			owned(s, false)
			s.told("n2")
			s.claims("n2", vip1, true)
		}),
		breaks("S10", "answered-for-after-the-handover", func(s *story) {
			fence := owned(s, false)
			s.commit(&fsm.EndLease{VIP: addr(vip1), Fence: fence}, &fsm.GrantLease{VIP: addr(vip1), Holder: "n2", Term: term})
			s.claims("n1", vip1, true)
		}),
		breaks("S10", "announced-without-a-lease", func(s *story) {
			s.publish("web", vip1, "n1")
			s.told("n1")
			s.claims("n1", vip1, false)
		}),
		breaks("S10", "answered-for-when-the-term-is-over", func(s *story) {
			owned(s, false)
			s.wait(term + term/32)
			s.claims("n1", vip1, true)
		}),
		fine("S10", "renewed", func(s *story) {
			owned(s, false)
			for range 3 {
				s.wait(term - time.Second)
				s.told("n1")
				s.claims("n1", vip1, true)
			}
		}),
		fine("S10", "kept", func(s *story) {
			owned(s, true)
			s.wait(3 * term)
			s.claims("n1", vip1, true)
		}),
		breaks("S10", "kept-by-an-agent-that-started-anew", func(s *story) {
			owned(s, true)
			s.say(event.Ended{Process: "n1", Life: 1}, event.Started{Process: "n1", Life: 2, Boot: "b1"})
			s.claims("n1", vip1, true)
		}),
		fine("S10", "with-a-clock-that-nobody-allows-for", func(s *story) {
			owned(s, false)
			s.say(event.FaultBegan{ID: 1, Fault: "clock-drift", On: []string{"n1"}})
			s.wait(term + term/10)
			s.claims("n1", vip1, true)
		}),
		fine("S10", "used-to-the-end-by-who-has-it-by-a-replaced-record", func(s *story) {
			handedOverBefore(s, false)
			s.claims("n2", vip1, true)
			s.wait(term - time.Second)
			s.claims("n2", vip1, true)
			s.wait(2 * time.Second)
			s.told("n1")
			s.claims("n1", vip1, false)
		}),
		breaks("S10", "used-for-longer-than-a-replaced-record-allows", func(s *story) {
			handedOverBefore(s, false)
			s.wait(term - time.Second)
			s.told("n2")
			s.wait(2 * time.Second)
			s.claims("n2", vip1, true)
		}),
		breaks("S10", "two-answer-after-a-restore", func(s *story) {
			handedOverBefore(s, false)
			s.told("n1")
			s.claims("n1", vip1, false)
			s.claims("n2", vip1, true)
		}),
		breaks("S10", "answered-for-by-neither-record", func(s *story) {
			handedOverBefore(s, false)
			s.told("n3")
			s.claims("n3", vip1, true)
		}),
		fine("S10", "kept-until-it-hears-of-the-replaced-record", func(s *story) {
			handedOverBefore(s, true)
			s.wait(3 * term)
			s.claims("n2", vip1, true)
		}),
		breaks("S10", "kept-though-it-heard-of-the-replaced-record", func(s *story) {
			handedOverBefore(s, true)
			s.wait(time.Second)
			s.told("n2")
			s.claims("n2", vip1, true)
		}),
		breaks("S9", "answered-for-unsteered", func(s *story) {
			owned(s, false)
			s.steer("n1", vip1, false)
			s.wait(3 * time.Second)
			s.told("n1")
			s.claims("n1", vip1, true)
		}),
		breaks("S8", "silent", func(s *story) {
			owned(s, false)
			unanswered(s, 12*time.Second)
		}),
		fine("S8", "silent-for-a-moment", func(s *story) {
			owned(s, false)
			unanswered(s, 8*time.Second)
			s.told("n1")
			s.claims("n1", vip1, true)
		}),
		fine("S8", "silent-where-nobody-is-heard", func(s *story) {
			owned(s, false)
			for _, n := range []string{"n1", "n2"} {
				s.say(event.Carrier{Node: n, Segment: "lan1", Up: n == "n2"})
			}
			unanswered(s, 30*time.Second)
		}),
		breaks("S8", "silent-beside-a-link-that-leads-nowhere", func(s *story) {
			owned(s, false)
			s.say(event.Carrier{Node: "n1", Segment: "lan1", Up: true})
			unanswered(s, 25*time.Second)
		}),
		breaks("S8", "unannounced", func(s *story) {
			s.publish("web", vip1, "n1")
			s.leases(vip1, "n1", false)
			s.told("n1")
			s.claims("n1", vip1, true)
			s.wait(3500 * time.Millisecond)
		}),
		breaks("S8", "unannounced-when-the-carrier-came-back", func(s *story) {
			owned(s, false)
			s.say(event.Carrier{Node: "n1", Segment: "lan1"}, event.Carrier{Node: "n1", Segment: "lan1", Up: true, Passes: true})
			s.claims("n1", vip1, true)
			s.wait(3500 * time.Millisecond)
		}),
		breaks("S8", "unannounced-when-it-is-heard-again", func(s *story) {
			owned(s, false)
			s.say(event.Carrier{Node: "n1", Segment: "lan1", Up: true})
			s.wait(3 * time.Second)
			s.told("n1")
			s.say(event.Carrier{Node: "n1", Segment: "lan1", Up: true, Passes: true})
			s.wait(3500 * time.Millisecond)
		}),
		fine("S8", "unannounced-where-it-was-lost-in-a-moment", func(s *story) {
			s.publish("web", vip1, "n1")
			s.say(event.Carrier{Node: "n1", Segment: "lan1", Up: true})
			s.leases(vip1, "n1", false)
			s.wait(time.Second)
			s.say(event.Carrier{Node: "n1", Segment: "lan1", Up: true, Passes: true})
			s.told("n1")
			s.claims("n1", vip1, true)
			s.wait(3500 * time.Millisecond)
		}),
		fine("S8", "announced-when-the-carrier-came-back", func(s *story) {
			owned(s, false)
			s.say(event.Carrier{Node: "n1", Segment: "lan1"}, event.Carrier{Node: "n1", Segment: "lan1", Up: true, Passes: true})
			s.wait(time.Second)
			s.claims("n1", vip1, false)
			s.wait(2 * time.Second)
		}),
	}
}
