// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"fmt"

	"fairlead.io/fairlead/fsm"
)

type (
	mBinding struct {
		balancer   fsm.BalancerID
		identity   string // of the balancer
		address    string
		state      string
		params     string // what goes with every call
		owner      string
		backend    fsm.Backend
		ensure     fsm.EnsurePolicy
		asked      bool
		registered bool
		returned   string
		message    string
		attempts   int
		life       int // an id may come back as another binding
		changed    int // how often what is asked changed
	}
	// mLine is the calls about one thing outside.
	mLine struct {
		open       bool
		action     fsm.Action
		binding    fsm.BindingID
		balancer   fsm.BalancerID
		about      any // the mBinding or mBalancer that the call was begun for, as it was then
		attempt    rev
		unsettled  rev
		inThisTurn bool
	}
)

// line is what one call at a time may be in flight for (S7): an address on a balancer, or a binding that has no address
// yet. lineOfBalancer has the others.
func line(b mBinding, id fsm.BindingID) string {
	if b.address == "" {
		return "binding " + string(id)
	}
	return "backend " + b.identity + " " + b.address
}

// dropQuestions: a question for an address changes nothing outside. Whoever asked may be gone, or know it by now.
func (m *model) dropQuestions() {
	for at, l := range m.lines {
		if b, exists := m.bindings[l.binding]; l.action == fsm.ActionAddress && !l.open && !(exists && line(b, l.binding) == at) {
			l.unsettled = rev{}
			m.lines[at] = l
		}
	}
}

// applyBinding has the rules of bindings and of calls (S5, S6, S7).
func (m *model) applyBinding(command fsm.Command) (ok, known bool) {
	switch c := command.(type) {
	case *fsm.PutBinding:
		return m.putBinding(c), true
	case *fsm.AdoptBinding:
		return m.adoptBinding(c), true
	case *fsm.SetBindingAddress:
		b, exists := m.bindings[c.ID]
		ok := exists && b.address == "" && (b.state == "pending" || b.state == "addressing") && c.UID != stranger &&
			!m.lines[line(b, c.ID)].open
		switch {
		case ok && c.Address != "":
			b.address, b.state, b.attempts = c.Address, "ensuring", 0
		case ok && c.UID != "":
			if b.state == "pending" {
				b.state, b.attempts = "addressing", 0
			}
			if c.Failed {
				b.attempts++
			}
		default:
			return false, true
		}
		m.bindings[c.ID] = b
		return true, true
	case *fsm.RemoveBinding:
		return m.removeBinding(c), true
	case *fsm.Drained:
		b, exists := m.bindings[c.ID]
		ok := exists && b.state == "draining"
		if ok {
			b.state, b.attempts = "deregistering", 0
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

// newBinding is one that is only wanted so far.
func (m *model) newBinding(c *fsm.PutBinding, l mBalancer) mBinding {
	m.lives++
	b := mBinding{
		balancer: c.Balancer, identity: l.identity, address: c.Address, state: "pending", owner: c.Owner, backend: c.Backend,
		params: told(c), ensure: c.Ensure, returned: "[]", life: m.lives,
	}
	if b.address != "" {
		b.state = "ensuring"
	}
	return b
}

func told(c *fsm.PutBinding) string { return fmt.Sprint(c.Parameters, c.Attributes) }

func (m *model) putBinding(c *fsm.PutBinding) bool {
	l, exists := m.balancers[c.Balancer]
	if c.ID == "" || !exists || l.state != "ready" || m.lines[lineOfBalancer(l, c.Balancer)].calls(fsm.ActionDeleteBalancer) {
		return false
	}
	b, exists := m.bindings[c.ID]
	same := b.params == told(c) && b.ensure == c.Ensure
	switch {
	case !exists:
		m.bindings[c.ID] = m.newBinding(c, l)
		return true
	case b.balancer != c.Balancer || b.backend != c.Backend || c.Address != "" && b.address != "" && c.Address != b.address:
		return false
	case same && b.state != "draining" && b.state != "deregistering":
		b.owner = c.Owner // which is nobody's concern outside
		m.bindings[c.ID] = b
		return true
	case !same:
		b.changed++
	}
	b.params, b.ensure, b.owner, b.attempts, b.state = told(c), c.Ensure, c.Owner, 0, "pending"
	if b.address != "" {
		b.state = "ensuring"
	}
	m.bindings[c.ID] = b
	return true
}

// adoptBinding believes what was done by others, unless a call of ours may still undo it.
func (m *model) adoptBinding(c *fsm.AdoptBinding) bool {
	l, exists := m.balancers[c.Binding.Balancer]
	if m.format < 2 || c.Binding.ID == "" || c.UID == "" || !exists || l.identity == "" {
		return false
	}
	if _, known := m.bindings[c.Binding.ID]; known || m.lines[lineOfBalancer(l, c.Binding.Balancer)].calls(fsm.ActionDeleteBalancer) {
		return false
	}
	if m.twinCalled(l, fsm.ActionDeleteBalancer) {
		return false
	}
	b := m.newBinding(&c.Binding, l)
	b.returned = fmt.Sprint(c.Returned)
	if b.address != "" {
		b.asked, b.registered = true, c.Registered
		switch {
		case c.Leaving:
			b.state = "deregistering"
		case c.Registered && m.lines[line(b, c.Binding.ID)].quiet():
			b.state = "bound"
		}
	} else if c.Leaving {
		return true // it never was anywhere
	}
	m.bindings[c.Binding.ID] = b
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
		b.state, b.attempts = "draining", 0
	default:
		b.state, b.attempts = "deregistering", 0
	}
	m.bindings[c.ID] = b
	return true
}

func (m *model) begin(c *fsm.BeginOperation) bool {
	next := mLine{open: true, action: c.Action, attempt: m.now, inThisTurn: true}
	var at string
	switch c.Action {
	case fsm.ActionCreateBalancer, fsm.ActionEnsureBalancer, fsm.ActionDeleteBalancer:
		b, exists := m.balancers[c.Balancer]
		if !exists || m.format < 2 || !m.asksForBalancer(c.Balancer, b, c.Action) {
			return false
		}
		at, next.about, next.balancer = lineOfBalancer(b, c.Balancer), b, c.Balancer
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

// begun: what a call is about is noted before it goes out (S4).
func (m *model) begun(c *fsm.BeginOperation) {
	if c.Action >= fsm.ActionEnsureBalancer {
		l := m.balancers[c.Balancer]
		l.asked = true
		l.ensured = l.ensured && c.Action == fsm.ActionEnsureBalancer
		m.balancers[c.Balancer] = l
		return
	}
	b := m.bindings[c.Binding]
	switch {
	case c.Action == fsm.ActionAddress && b.state == "pending":
		b.state, b.attempts = "addressing", 0
	case c.Action == fsm.ActionEnsure:
		b.asked = true
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
	if l.binding == "" {
		m.balancerFinished(c, l, final)
	} else {
		m.bindingFinished(c, l, final)
	}
	return true
}

// countFailure: a call ended, and nobody heard how.
func (m *model) countFailure(at string, l mLine) {
	if b, exists := m.balancerCalled(at, l); exists {
		b.attempts++
		m.balancers[l.balancer] = b
	}
	if b, exists := m.bindings[l.binding]; exists && line(b, l.binding) == at {
		b.attempts++
		m.bindings[l.binding] = b
	}
}

// bindingFinished takes in how a call about a backend ended.
func (m *model) bindingFinished(c *fsm.FinishOperation, l mLine, final bool) {
	was := l.about.(mBinding)
	b, exists := m.bindings[l.binding]
	if !exists || line(b, l.binding) != string(c.Subject) {
		return // another backend by now
	}
	ensure := l.action == fsm.ActionEnsure
	switch {
	case c.Result == fsm.ResultFailed || c.Result == fsm.ResultUnknown:
		b.attempts++
		if ensure && c.Refused && c.Result == fsm.ResultFailed {
			b.registered, b.message = false, c.Message
		}
	case c.Result == fsm.ResultSucceeded && ensure && len(c.Returned) > 0:
		b.returned = fmt.Sprint(c.Returned) // it takes that to take it off, whatever is wanted by now
	}
	m.bindings[l.binding] = b
	if final && (b.life == was.life || l.action == fsm.ActionDeregister) { // what is off is off, whoever wanted that
		m.succeeded(c, l, b)
	}
}

func (m *model) succeeded(c *fsm.FinishOperation, l mLine, b mBinding) {
	was := l.about.(mBinding)
	switch {
	case l.action == fsm.ActionAddress && b.state == "addressing" && c.Address != "":
		b.address, b.state, b.attempts = c.Address, "ensuring", 0
	case l.action == fsm.ActionDeregister && b.state == "deregistering":
		delete(m.bindings, l.binding)
		return
	case l.action == fsm.ActionDeregister:
		b.registered = false // and it is wanted again
	case l.action == fsm.ActionEnsure && (b.state == "ensuring" || b.state == "bound") && b.changed == was.changed:
		b.state, b.registered, b.attempts, b.message = "bound", true, 0, c.Message
		for id, o := range m.bindings {
			if line(o, id) == string(c.Subject) && o.state == "deregistering" {
				delete(m.bindings, id) // the address is a live one's now
			}
		}
	}
	m.bindings[l.binding] = b
}
