// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// object wants the balancer by an object.
func object(s *story, id fsm.BalancerID) {
	s.commit(&fsm.PutLoadBalancer{ID: id, Driver: "d", Spec: []fsm.KV{{Key: "id", Value: lb}}, UID: string(id)})
}

// askOf sends a call about an object's balancer, as far as its caller.
func (s *story) askOf(action fsm.Action, id fsm.BalancerID) event.Drive {
	attempt := s.commit(&fsm.BeginOperation{Action: action, Balancer: id, Deadline: 10 * time.Second})
	s.calls++
	c := event.Drive{Driver: "d", Call: s.calls, Process: "m1", Phase: "sent", Action: action.String(), Balancer: lb, Attempt: attempt}
	if l, _ := fsm.Get[*fsm.LoadBalancer](s.state.Read(), fsm.TableBalancers, string(id)); l.Identity == "" {
		c.Binding = string(id)
	}
	s.say(c)
	return c
}

// tookEffect has a call take effect.
func (s *story) tookEffect(c event.Drive) {
	c.Phase = "effect"
	s.say(c)
}

// ended has a call be answered, or given up, and commits that.
func (s *story) ended(c event.Drive, r fsm.Result) {
	if c.Result = "lost"; r == fsm.ResultSucceeded {
		c.Phase, c.Result = "answered", "succeeded"
		s.say(c)
	}
	c.Phase = "heard"
	s.say(c)
	l := fsm.LoadBalancer{ID: fsm.BalancerID(c.Binding)}
	if c.Binding == "" {
		l.Identity = lbIdentity
	}
	s.commit(&fsm.FinishOperation{Subject: l.Subject(), Attempt: c.Attempt, Result: r, Settled: true})
}

// done makes a call that succeeds.
func (s *story) done(action fsm.Action, id fsm.BalancerID) {
	c := s.askOf(action, id)
	s.tookEffect(c)
	s.ended(c, fsm.ResultSucceeded)
}

func balancerTales() []tale {
	cycle := func(s *story) {
		object(s, "a")
		s.done(fsm.ActionCreateBalancer, "a")
		object(s, "b")
		s.done(fsm.ActionCreateBalancer, "b")
		s.commit(&fsm.DeleteLoadBalancer{ID: "a"})
		s.done(fsm.ActionEnsureBalancer, "b") // which settles the other one
		s.commit(&fsm.DeleteLoadBalancer{ID: "b"})
		s.done(fsm.ActionDeleteBalancer, "b")
		s.wait(80 * time.Second)
	}
	return []tale{
		fine("S5", "balancer-made-and-deleted", cycle), fine("S6", "balancer-made-and-deleted", cycle), fine("L2", "balancer-made-and-deleted", cycle),
		breaks("S5", "deletion-without-effect", func(s *story) {
			object(s, "a")
			s.done(fsm.ActionCreateBalancer, "a")
			s.commit(&fsm.DeleteLoadBalancer{ID: "a"})
			s.ended(s.askOf(fsm.ActionDeleteBalancer, "a"), fsm.ResultSucceeded)
		}),
		breaks("S5", "deletion-not-confirmed", func(s *story) {
			object(s, "a")
			s.done(fsm.ActionCreateBalancer, "a")
			s.commit(&fsm.DeleteLoadBalancer{ID: "a"})
			c := s.askOf(fsm.ActionDeleteBalancer, "a")
			s.tookEffect(c)
			s.commit(&fsm.FinishOperation{Subject: (&fsm.LoadBalancer{Identity: lbIdentity}).Subject(), Attempt: c.Attempt, Result: fsm.ResultSucceeded})
		}),
		breaks("S6", "made-after-it-went", func(s *story) {
			object(s, "a")
			late := s.askOf(fsm.ActionCreateBalancer, "a")
			s.ended(late, fsm.ResultUnknown)
			s.commit(&fsm.DeleteLoadBalancer{ID: "a"})
			s.done(fsm.ActionDeleteBalancer, "a")
			s.tookEffect(late)
		}),
		breaks("S6", "deleted-while-meant", func(s *story) {
			object(s, "a")
			s.done(fsm.ActionCreateBalancer, "a")
			c := s.askOf(fsm.ActionEnsureBalancer, "a")
			c.Action = fsm.ActionDeleteBalancer.String()
			s.tookEffect(c)
		}),
		breaks("S6", "deleted-by-the-spec-of-another", func(s *story) {
			object(s, "a")
			s.done(fsm.ActionCreateBalancer, "a")
			object(s, "b")
			c := s.askOf(fsm.ActionCreateBalancer, "b")
			c.Action = fsm.ActionDeleteBalancer.String()
			s.tookEffect(c)
		}),
		fine("S6", "asked-what-it-is-before-it-goes", func(s *story) {
			object(s, "a")
			s.done(fsm.ActionCreateBalancer, "a")
			object(s, "b")
			s.ended(s.askOf(fsm.ActionCreateBalancer, "b"), fsm.ResultUnknown)
			s.commit(&fsm.DeleteLoadBalancer{ID: "b"})
			s.done(fsm.ActionCreateBalancer, "b")
			s.done(fsm.ActionEnsureBalancer, "a") // which settles the other one
			s.wait(time.Second)
		}),
		breaks("S6", "created-twice", func(s *story) {
			object(s, "a")
			s.done(fsm.ActionCreateBalancer, "a")
			c := s.askOf(fsm.ActionEnsureBalancer, "a")
			c.Action, c.Binding = fsm.ActionCreateBalancer.String(), "a"
			s.say(c)
		}),
		breaks("L2", "balancer-never-deleted", func(s *story) {
			object(s, "a")
			s.done(fsm.ActionCreateBalancer, "a")
			s.commit(&fsm.DeleteLoadBalancer{ID: "a"})
			s.wait(80 * time.Second)
		}),
	}
}
