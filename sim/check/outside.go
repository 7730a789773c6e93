// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// place is where a backend is: a balancer as the record knows it, whatever object means it, and an address on it.
type place struct {
	balancer fsm.Identity
	address  string
}

func (p place) String() string { return string(p.balancer) + " " + p.address }

// balancerOf finds what the record knows a balancer of events by.
func (s *Set) balancerOf(name string) fsm.Identity {
	for _, b := range s.topology.Balancers {
		if b.Name == name && b.Identity != "" {
			return b.Identity
		}
	}
	return fsm.Identity(name)
}

func (s *Set) placeOf(balancer, address string) place { return place{s.balancerOf(balancer), address} }

// answers tells whether no fault excuses the driver of a balancer, or the balancer.
func (s *Set) answers(v *fsm.View, id fsm.Identity) bool {
	names := []string{string(id)}
	for _, b := range s.topology.Balancers {
		if s.balancerOf(b.Name) == id {
			names = append(names, b.Name, b.Driver, "driver-"+b.Driver)
		}
	}
	for _, l := range v.BalancersOn((&fsm.LoadBalancer{Identity: id}).Subject()) {
		names = append(names, l.Driver, "driver-"+l.Driver)
	}
	return !slices.ContainsFunc(names, func(n string) bool { return !s.scene.unexcused(n) })
}

// acts tells whether somebody has to act on a balancer now: members, driver and balancer work, and no LBCF controller is in
// the cluster, beside which nobody may (S11).
func (s *Set) acts(v *fsm.View, id fsm.Identity) bool {
	return s.answers(v, id) && s.scene.sound != never && s.wishes.rival == never
}

// wants tells whether a binding wants its backend to be there.
func wants(b *fsm.Binding) bool { return b != nil && b.State != fsm.BindingDeregistering }

// changedBindings visits the bindings that a step changed, in order of their ids.
func changedBindings(s *step, visit func(was, is *fsm.Binding)) {
	type change struct{ was, is *fsm.Binding }
	changes := map[fsm.BindingID]change{}
	before := s.before
	if s.replaced {
		before = nil
	}
	fsm.Changes(before, s.after, fsm.TableBindings, func(was, is *fsm.Binding) {
		if was != nil {
			c := changes[was.ID]
			c.was = was
			changes[was.ID] = c
		}
		if is != nil {
			c := changes[is.ID]
			c.is = is
			changes[is.ID] = c
		}
	})
	for _, id := range sortedKeys(changes) {
		visit(changes[id].was, changes[id].is)
	}
}

// forgets tells whether an operator said in a step that a binding needs no deregistration.
func forgets(s *step, id fsm.BindingID) bool {
	return slices.ContainsFunc(s.proposals, func(p fsm.Proposal) bool {
		c, ok := p.Command.(*fsm.Forget)
		return ok && c.ID == id
	})
}

// entries is what balancers hold.
type entries map[place]entryAt

type entryAt struct {
	owner  string
	number uint64
}

func (e entries) hear(s *Set, x event.Entry, number uint64) place {
	at := s.placeOf(x.Balancer, x.Address)
	if x.Present {
		e[at] = entryAt{x.Owner, number}
	} else {
		delete(e, at)
	}
	return at
}

const ours = "fairlead"

// callID tells calls to drivers apart by what both ends know of them: the attempt, or else a number.
type callID struct {
	attempt fsm.Revision
	subject fsm.Subject
	call    int
}

func (s *Set) callOf(x event.Drive) callID {
	if x.Attempt.IsZero() {
		return callID{call: x.Call}
	}
	return callID{attempt: x.Attempt, subject: s.subjectOf(x)}
}

// subjectOf is what a call is about, as the record names lines of operations.
func (s *Set) subjectOf(x event.Drive) fsm.Subject {
	switch x.Action {
	case fsm.ActionCreateBalancer.String(), fsm.ActionEnsureBalancer.String(), fsm.ActionDeleteBalancer.String():
		l := fsm.LoadBalancer{ID: fsm.BalancerID(x.Binding)}
		if x.Binding == "" {
			l.Identity = s.balancerOf(x.Balancer)
		}
		return l.Subject()
	}
	return fsm.SubjectOf(s.balancerOf(x.Balancer), x.Address, fsm.BindingID(x.Binding))
}
