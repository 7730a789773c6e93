// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// bound has binding b1 on the balancer.
func bound(s *story) {
	s.bind("b1")
	s.call(fsm.ActionEnsure, "b1")
}

func outsideTales() []tale {
	cycle := func(s *story) {
		bound(s)
		s.say(event.Entry{Balancer: lb, Address: "198.51.100.9:80", Owner: "foreign", Present: true, By: "hand"})
		s.commit(&fsm.RemoveBinding{ID: "b1"})
		s.call(fsm.ActionDeregister, "b1")
		bound(s)
		s.say(event.Entry{Balancer: lb, Address: "198.51.100.9:80", Owner: "foreign", By: "hand"})
		s.commit(&fsm.Forget{ID: "b1"})
	}
	return append(balancerTales(), []tale{
		fine("S4", "cycle", cycle), fine("S5", "cycle", cycle), fine("S6", "cycle", cycle), fine("S7", "cycle", cycle),
		breaks("S4", "no-binding", func(s *story) {
			s.bind("b1")
			s.say(event.Entry{Balancer: lb, Address: "198.51.100.7:80", Owner: "fairlead", Present: true, By: "driver"})
		}),
		fine("S4", "forgotten-and-address-wanted-for-a-moment", func(s *story) {
			bound(s)
			s.commit(&fsm.Forget{ID: "b1"})
			s.commit(&fsm.PutBinding{ID: "b2", Balancer: lb, Address: backend})
			s.commit(&fsm.RemoveBinding{ID: "b2"}) // it was never asked for
		}),
		breaks("S4", "forgotten-and-put-there-anew", func(s *story) {
			bound(s)
			s.commit(&fsm.Forget{ID: "b1"})
			s.bind("b2")
			s.effect(s.sent(fsm.ActionEnsure, "b2")) // nobody began the operation: the record takes it for never asked
			s.commit(&fsm.RemoveBinding{ID: "b2"})
		}),
		breaks("S4", "foreign-removed", func(s *story) {
			s.say(event.Entry{Balancer: lb, Address: "198.51.100.9:80", Owner: "foreign", Present: true, By: "hand"},
				event.Entry{Balancer: lb, Address: "198.51.100.9:80", Owner: "foreign", By: "driver"})
		}),
		breaks("S4", "record-goes-first", func(s *story) {
			bound(s)
			s.commit(&fsm.RemoveBinding{ID: "b1"})
			s.commit(&fsm.BeginOperation{Action: fsm.ActionDeregister, Binding: "b1", Deadline: time.Second})
			s.heard(s.sent(fsm.ActionDeregister, "b1"), "succeeded") // and there was no effect
		}),
		fine("S5", "never-asked", func(s *story) {
			s.bind("b1")
			s.commit(&fsm.RemoveBinding{ID: "b1"})
		}),
		breaks("S5", "not-confirmed", func(s *story) {
			bound(s)
			s.commit(&fsm.RemoveBinding{ID: "b1"})
			s.commit(&fsm.BeginOperation{Action: fsm.ActionDeregister, Binding: "b1", Deadline: time.Second})
			c := s.sent(fsm.ActionDeregister, "b1")
			s.effect(c)
			s.commit(&fsm.FinishOperation{Subject: fsm.SubjectOf(lbIdentity, backend, ""), Attempt: c.Attempt, Result: fsm.ResultSucceeded})
		}),
		breaks("S5", "still-there", func(s *story) {
			bound(s)
			s.commit(&fsm.RemoveBinding{ID: "b1"})
			s.commit(&fsm.BeginOperation{Action: fsm.ActionDeregister, Binding: "b1", Deadline: time.Second})
			s.heard(s.sent(fsm.ActionDeregister, "b1"), "succeeded")
		}),
		breaks("S6", "orphaned-ensure", func(s *story) {
			s.bind("b1")
			s.commit(&fsm.BeginOperation{Action: fsm.ActionEnsure, Binding: "b1", Deadline: time.Second})
			late := s.sent(fsm.ActionEnsure, "b1")
			s.heard(late, "lost")
			s.commit(&fsm.RemoveBinding{ID: "b1"})
			s.call(fsm.ActionDeregister, "b1")
			s.effect(late)
		}),
		breaks("S6", "live-one-taken-off", func(s *story) {
			bound(s)
			s.commit(&fsm.PutBinding{ID: "b2", Balancer: lb, Address: backend})
			s.effect(s.sent(fsm.ActionDeregister, "b2"))
		}),
		fine("S6", "late-effect-put-right", func(s *story) {
			lateDeregister(s)
			s.wait(8 * time.Second)
			s.call(fsm.ActionEnsure, "b2")
			s.wait(30 * time.Second)
		}),
		fine("S6", "caller-died", func(s *story) {
			bound(s)
			s.commit(&fsm.PutBinding{ID: "b2", Balancer: lb, Address: backend})
			late := s.sent(fsm.ActionDeregister, "b2")
			s.say(event.Ended{Process: "m1", Life: 1, Killed: true})
			s.effect(late)
			s.wait(11 * time.Second)
			s.call(fsm.ActionEnsure, "b1")
			s.wait(30 * time.Second)
		}),
		fine("S6", "late-effect-beside-another-controller", func(s *story) {
			lateDeregister(s)
			s.rival(1)
			s.wait(60 * time.Second)
			s.rival(0)
			s.call(fsm.ActionEnsure, "b2")
			s.wait(30 * time.Second)
		}),
		breaks("S6", "late-effect-stays", func(s *story) {
			lateDeregister(s)
			s.wait(31 * time.Second)
		}),
		fine("S7", "after-the-deadline", func(s *story) {
			bound(s)
			s.commit(&fsm.BeginOperation{Action: fsm.ActionEnsure, Binding: "b1", Deadline: time.Second})
			s.sent(fsm.ActionEnsure, "b1")
			s.say(event.Ended{Process: "m1", Life: 1, Killed: true})
			s.wait(1100 * time.Millisecond)
			s.sent(fsm.ActionEnsure, "b1")
		}),
		breaks("S7", "sent-before-it-was-committed", func(s *story) {
			bound(s)
			s.calls++
			s.say(event.Drive{
				Driver: "d", Call: s.calls, Process: "m1", Phase: "sent", Action: "ensure", Balancer: lb, Address: backend, Binding: "b1",
				Attempt: fsm.Revision{Epoch: 1, Index: 1_000_000},
			})
		}),
		breaks("S7", "two-at-once", func(s *story) {
			bound(s)
			s.commit(&fsm.BeginOperation{Action: fsm.ActionEnsure, Binding: "b1", Deadline: time.Second})
			s.sent(fsm.ActionEnsure, "b1")
			s.say(event.Ended{Process: "m1", Life: 1, Killed: true})
			s.wait(900 * time.Millisecond)
			s.sent(fsm.ActionEnsure, "b1")
		}),
		fine("L2", "driver-away-for-long", func(s *story) {
			bound(s)
			s.say(event.FaultBegan{ID: 1, Fault: "driver-hangs", On: []string{"driver-d"}})
			s.commit(&fsm.RemoveBinding{ID: "b1"})
			s.wait(100 * time.Second)
			s.say(event.FaultEnded{ID: 1})
			s.wait(30 * time.Second)
			s.call(fsm.ActionDeregister, "b1")
		}),
		fine("L2", "left-to-another-controller-for-long", func(s *story) {
			bound(s)
			s.commit(&fsm.RemoveBinding{ID: "b1"})
			s.rival(1)
			s.wait(100 * time.Second)
			s.rival(0)
			s.wait(10 * time.Second)
			s.call(fsm.ActionDeregister, "b1")
		}),
		breaks("L2", "never-tried-after-another-controller", func(s *story) {
			bound(s)
			s.commit(&fsm.RemoveBinding{ID: "b1"})
			s.rival(1)
			s.rival(0)
			s.wait(80 * time.Second)
		}),
		breaks("L2", "never-tried-again", func(s *story) {
			bound(s)
			s.commit(&fsm.RemoveBinding{ID: "b1"})
			s.wait(80 * time.Second)
		}),
	}...)
}

// lateDeregister has a deregistration that was given up take effect after another binding took the address over.
func lateDeregister(s *story) {
	bound(s)
	s.commit(&fsm.RemoveBinding{ID: "b1"})
	s.commit(&fsm.BeginOperation{Action: fsm.ActionDeregister, Binding: "b1", Deadline: time.Second})
	late := s.sent(fsm.ActionDeregister, "b1")
	s.heard(late, "lost")
	s.commit(&fsm.PutBinding{ID: "b2", Balancer: lb, Address: backend})
	s.call(fsm.ActionEnsure, "b2")
	s.effect(late)
}
