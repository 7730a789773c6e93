// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"fmt"

	"fairlead.io/fairlead/fsm"
)

type (
	mBalancer struct {
		generation int // rises with every change
		ensured    bool
	}
	mBinding struct {
		balancer fsm.BalancerID
		address  string
		state    string
		params   string
		asked    bool
		life     rev // when it was put: an id may come back as another binding
		changed  int // how often its parameters changed
	}
	// mLine is the calls about one thing outside.
	mLine struct {
		open       bool
		action     fsm.Action
		binding    fsm.BindingID
		about      any // the mBinding or mBalancer that the call was begun for, as it was then
		attempt    rev
		unsettled  rev
		inThisTurn bool
	}
)

// line is what one call at a time may be in flight for (S7): an address on a balancer, a balancer, or a binding
// that has no address yet.
func line(b mBinding, id fsm.BindingID) string {
	if b.address == "" {
		return "binding " + string(id)
	}
	return "backend " + string(b.balancer) + " " + b.address
}

func lineOfBalancer(id fsm.BalancerID) string { return "balancer " + string(id) }

// dropQuestions: a question for an address changes nothing outside. Whoever asked may be gone, or know it by now.
func (m *model) dropQuestions() {
	for at, l := range m.lines {
		if b, exists := m.bindings[l.binding]; l.action == fsm.ActionAddress && !l.open && !(exists && line(b, l.binding) == at) {
			l.unsettled = rev{}
			m.lines[at] = l
		}
	}
}

// applyBinding has the rules of balancers and bindings (S5, S6, S7).
func (m *model) applyBinding(command fsm.Command) (ok, known bool) {
	switch c := command.(type) {
	case *fsm.PutLoadBalancer:
		if c.ID == "" || c.Driver == "" {
			return false, true
		}
		m.balancers[c.ID] = mBalancer{generation: m.balancers[c.ID].generation + 1}
		return true, true
	case *fsm.DeleteLoadBalancer:
		_, exists := m.balancers[c.ID]
		ok := exists && !m.used(c.ID) && !m.lines[lineOfBalancer(c.ID)].open && !m.quarantined()
		if ok {
			delete(m.balancers, c.ID)
		}
		return ok, true
	case *fsm.PutBinding:
		return m.putBinding(c), true
	case *fsm.SetBindingAddress:
		b, exists := m.bindings[c.ID]
		ok := exists && b.address == "" && c.Address != "" && (b.state == "pending" || b.state == "addressing") &&
			!m.lines[line(b, c.ID)].open
		if ok {
			b.address, b.state = c.Address, "ensuring"
			m.bindings[c.ID] = b
		}
		return ok, true
	case *fsm.RemoveBinding:
		return m.removeBinding(c), true
	case *fsm.Drained:
		b, exists := m.bindings[c.ID]
		ok := exists && b.state == "draining"
		if ok {
			b.state = "deregistering"
			m.bindings[c.ID] = b
		}
		return ok, true
	case *fsm.Forget:
		return drop(m.bindings, c.ID), true
	case *fsm.BeginOperation:
		return m.begin(c), true
	case *fsm.FinishOperation:
		return m.finish(c), true
	}
	return false, false
}

func (m *model) used(balancer fsm.BalancerID) bool {
	for _, b := range m.bindings {
		if b.balancer == balancer {
			return true
		}
	}
	return false
}

func (m *model) putBinding(c *fsm.PutBinding) bool {
	if _, exists := m.balancers[c.Balancer]; c.ID == "" || !exists {
		return false
	}
	params := fmt.Sprint(c.Parameters)
	b, exists := m.bindings[c.ID]
	switch {
	case !exists:
		if l := m.lines[lineOfBalancer(c.Balancer)]; l.open && l.action == fsm.ActionDeleteBalancer {
			return false // it may be gone before this is on it
		}
		b = mBinding{balancer: c.Balancer, address: c.Address, life: m.now}
	case b.balancer != c.Balancer || c.Address != "" && b.address != "" && c.Address != b.address:
		return false
	case b.params == params && b.state != "draining" && b.state != "deregistering":
		return true
	case b.params != params:
		b.changed++
	}
	b.params, b.state = params, "pending"
	if b.address != "" {
		b.state = "ensuring"
	}
	m.bindings[c.ID] = b
	return true
}

// removeBinding is S5: what was asked for stays in the record until it is confirmed to be gone.
func (m *model) removeBinding(c *fsm.RemoveBinding) bool {
	b, exists := m.bindings[c.ID]
	if !exists || m.quarantined() {
		return false
	}
	switch {
	case !b.asked:
		delete(m.bindings, c.ID)
		return true
	case b.state == "draining" || b.state == "deregistering":
	case b.state == "bound" && c.Drain:
		b.state = "draining"
	default:
		b.state = "deregistering"
	}
	m.bindings[c.ID] = b
	return true
}

func (m *model) begin(c *fsm.BeginOperation) bool {
	next := mLine{open: true, action: c.Action, attempt: m.now, inThisTurn: true}
	var at string
	switch c.Action {
	case fsm.ActionEnsureBalancer, fsm.ActionDeleteBalancer:
		b, exists := m.balancers[c.Balancer]
		if !exists || c.Action == fsm.ActionDeleteBalancer && (m.used(c.Balancer) || m.quarantined()) {
			return false
		}
		at, next.about = lineOfBalancer(c.Balancer), b
	default:
		b, exists := m.bindings[c.Binding]
		if !exists || !m.asksFor(c.Binding, b, c.Action) {
			return false
		}
		at, next.about, next.binding = line(b, c.Binding), b, c.Binding
	}
	have := m.lines[at]
	if c.Deadline <= 0 || have.open || have.inThisTurn {
		return false
	}
	next.unsettled = have.unsettled
	m.lines[at] = next
	m.begun(c)
	return true
}

func (m *model) begun(c *fsm.BeginOperation) {
	b := m.bindings[c.Binding]
	switch c.Action {
	case fsm.ActionAddress:
		b.state = "addressing"
	case fsm.ActionEnsure:
		b.asked = true
	case fsm.ActionDeleteBalancer:
		l := m.balancers[c.Balancer]
		l.ensured = false
		m.balancers[c.Balancer] = l
		return
	case fsm.ActionDeregister, fsm.ActionEnsureBalancer:
		return
	}
	m.bindings[c.Binding] = b
}

// asksFor: the record wants that call about the binding.
func (m *model) asksFor(id fsm.BindingID, b mBinding, a fsm.Action) bool {
	switch a {
	case fsm.ActionAddress:
		return b.state == "pending" || b.state == "addressing"
	case fsm.ActionEnsure:
		return b.state == "ensuring" || b.state == "bound"
	case fsm.ActionDeregister:
		for other, o := range m.bindings {
			if other != id && line(o, other) == line(b, id) && o.state != "deregistering" {
				return false // somebody lives there (S6)
			}
		}
		return b.state == "deregistering" && !m.quarantined()
	}
	return false
}

// finish hears only the open attempt, and takes a success for final only when no earlier call can undo it.
func (m *model) finish(c *fsm.FinishOperation) bool {
	l, exists := m.lines[string(c.Subject)]
	if !exists || !l.open || l.attempt != c.Attempt || c.Result < fsm.ResultSucceeded || c.Result > fsm.ResultUnknown {
		return false
	}
	l.open = false
	final := c.Result == fsm.ResultSucceeded && (l.unsettled == rev{} || c.Settled)
	switch {
	case final:
		l.unsettled = rev{}
	case c.Result == fsm.ResultUnknown:
		l.unsettled = l.attempt
	}
	m.lines[string(c.Subject)] = l
	if final {
		m.succeeded(c, l)
	}
	return true
}

func (m *model) succeeded(c *fsm.FinishOperation, l mLine) {
	if was, ok := l.about.(mBalancer); ok {
		id := fsm.BalancerID(c.Subject[len("balancer "):])
		b, exists := m.balancers[id]
		switch {
		case l.action == fsm.ActionDeleteBalancer:
			delete(m.balancers, id)
		case exists && b.generation == was.generation:
			b.ensured = true
			m.balancers[id] = b
		}
		return
	}
	was := l.about.(mBinding)
	b, exists := m.bindings[l.binding]
	if !exists || b.life != was.life || line(b, l.binding) != string(c.Subject) {
		return // another binding by now
	}
	switch {
	case l.action == fsm.ActionAddress && b.state == "addressing" && c.Address != "":
		b.address, b.state = c.Address, "ensuring"
		m.bindings[l.binding] = b
	case l.action == fsm.ActionDeregister && b.state == "deregistering":
		delete(m.bindings, l.binding)
	case l.action == fsm.ActionEnsure && (b.state == "ensuring" || b.state == "bound") && b.changed == was.changed:
		b.state = "bound"
		m.bindings[l.binding] = b
		for id, o := range m.bindings {
			if line(o, id) == string(c.Subject) && o.state == "deregistering" {
				delete(m.bindings, id) // the address is a live one's now
			}
		}
	}
}
