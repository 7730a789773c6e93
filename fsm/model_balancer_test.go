// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"fmt"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
)

// mBalancer is one object that means an outside balancer.
type mBalancer struct {
	driver     string
	spec       string
	wanted     []fsm.KV // the spec itself
	uid        string
	attributes string
	ensure     fsm.EnsurePolicy
	state      string
	identity   string // "" until it is known what it means
	asked      bool
	ensured    bool
	synced     string
	attempts   int
	message    string
	life       int // an id may come back as another object
	changed    int // how often its attributes changed
}

// identityOf: the driver, and lbInfo in the order of its keys.
func identityOf(driver string, info []fsm.KV) string {
	var words []string
	for _, kv := range info {
		words = append(words, kv.Key+"="+kv.Value)
	}
	slices.Sort(words)
	return driver + "?" + strings.Join(words, "&")
}

// lineOfBalancer: objects that are known to mean one balancer share a line.
func lineOfBalancer(b mBalancer, id fsm.BalancerID) string {
	if b.identity == "" {
		return "object " + string(id)
	}
	return "balancer " + b.identity
}

func (l mLine) quiet() bool { return !l.open && l.unsettled == rev{} }

func (l mLine) calls(a fsm.Action) bool { return l.open && l.action == a }

// applyBalancer has the rules of drivers and balancers.
func (m *model) applyBalancer(command fsm.Command) (ok, known bool) {
	switch c := command.(type) {
	case *fsm.PutDriver:
		ok := m.format >= 2 && c.Driver.Name != "" && c.Driver.URL != ""
		if ok {
			m.drivers[c.Driver.Name] = c.Driver.URL
		}
		return ok, true
	case *fsm.DeleteDriver:
		for _, b := range m.balancers {
			if b.driver == c.Name {
				return false, true
			}
		}
		return !m.quarantined() && drop(m.drivers, c.Name), true
	case *fsm.PutLoadBalancer:
		if m.format < 2 || c.ID == "" || c.Driver == "" {
			return false, true
		}
		if old, exists := m.balancers[c.ID]; exists {
			return m.changeBalancer(c, old), true
		}
		return m.addBalancer(c), true
	case *fsm.DeleteLoadBalancer:
		b, exists := m.balancers[c.ID]
		switch {
		case !exists || m.quarantined():
			return false, true
		case !b.asked:
			delete(m.balancers, c.ID) // nobody outside has heard of it
		case b.state != "deleting":
			b.state, b.attempts = "deleting", 0
			m.balancers[c.ID] = b
		}
		return true, true
	case *fsm.ForgetLoadBalancer:
		return !m.used(c.ID) && drop(m.balancers, c.ID), true
	}
	return false, false
}

// changeBalancer: what it is stays, and one that is to go does not come back.
func (m *model) changeBalancer(c *fsm.PutLoadBalancer, b mBalancer) bool {
	if b.driver != c.Driver || b.spec != fmt.Sprint(c.Spec) || b.state == "deleting" {
		return false
	}
	attributes := fmt.Sprint(c.Attributes)
	if attributes == b.attributes && b.uid == c.UID && b.ensure == c.Ensure {
		return true
	}
	if attributes != b.attributes {
		b.changed++
		b.ensured = false
	}
	b.attributes, b.uid, b.ensure, b.attempts = attributes, c.UID, c.Ensure, 0
	m.balancers[c.ID] = b
	return true
}

func (m *model) addBalancer(c *fsm.PutLoadBalancer) bool {
	m.lives++
	b := mBalancer{
		driver: c.Driver, spec: fmt.Sprint(c.Spec), wanted: c.Spec, uid: c.UID, attributes: fmt.Sprint(c.Attributes), ensure: c.Ensure,
		state: "creating", synced: "[]", life: m.lives,
	}
	if len(c.Info) > 0 {
		b.state, b.identity, b.asked = "ready", identityOf(c.Driver, c.Info), true
	}
	l := m.lines[lineOfBalancer(b, c.ID)]
	if l.open && (b.identity == "" || l.action == fsm.ActionDeleteBalancer) {
		return false // it would end as this one's; or it may be gone at once
	}
	if b.identity != "" && m.twinCalled(b, fsm.ActionDeleteBalancer) {
		return false // which may be this one
	}
	if b.identity != "" && c.Synced {
		b.synced, b.ensured = b.attributes, l.quiet()
	}
	m.balancers[c.ID] = b
	return true
}

// used: an object has backends.
func (m *model) used(id fsm.BalancerID) bool {
	for _, b := range m.bindings {
		if b.balancer == id {
			return true
		}
	}
	return false
}

// needed: somebody has backends on a balancer, or wants it.
func (m *model) needed(id fsm.BalancerID, l mBalancer) bool {
	for other, o := range m.balancers {
		same := other == id || o.identity != "" && o.identity == l.identity
		if same && (m.used(other) || o.state != "deleting") {
			return true
		}
	}
	return false
}

// asksForBalancer: the record wants that call about it.
func (m *model) asksForBalancer(id fsm.BalancerID, b mBalancer, a fsm.Action) bool {
	switch a {
	case fsm.ActionEnsureBalancer:
		return b.state == "ready"
	case fsm.ActionCreateBalancer:
		asks := b.state == "creating" || b.state == "deleting" && m.mayBeAnothers(id, b)
		return asks && !m.twinCalled(b, fsm.ActionDeleteBalancer)
	case fsm.ActionDeleteBalancer:
		return b.state == "deleting" && !m.needed(id, b) && !m.mayBeAnothers(id, b) && !m.twinCalled(b, fsm.ActionCreateBalancer) &&
			!m.quarantined()
	}
	return false
}

// asksForTheSame: of one driver, in whatever order.
func asksForTheSame(a, b mBalancer) bool {
	return identityOf(a.driver, a.wanted) == identityOf(b.driver, b.wanted)
}

// mayBeAnothers: nobody knows what it means, and somebody asks for the same who needs it.
func (m *model) mayBeAnothers(id fsm.BalancerID, b mBalancer) bool {
	for other, o := range m.balancers {
		if other != id && b.identity == "" && asksForTheSame(o, b) && (m.used(other) || o.state != "deleting") {
			return true
		}
	}
	return false
}

// twinCalled: a call is under way for an object that asks the same of the same driver.
func (m *model) twinCalled(b mBalancer, a fsm.Action) bool {
	for other, o := range m.balancers {
		l := m.lines[lineOfBalancer(o, other)]
		if asksForTheSame(o, b) && l.calls(a) && l.balancer == other {
			return true
		}
	}
	return false
}

// balancerCalled finds the object that a call was about, if it is still that.
func (m *model) balancerCalled(at string, l mLine) (mBalancer, bool) {
	b, exists := m.balancers[l.balancer]
	return b, exists && lineOfBalancer(b, l.balancer) == at
}

// balancerFinished takes in how a call about a balancer ended.
func (m *model) balancerFinished(c *fsm.FinishOperation, l mLine, final bool) {
	b, exists := m.balancerCalled(string(c.Subject), l)
	if !exists {
		return
	}
	was := l.about.(mBalancer)
	switch {
	case c.Result == fsm.ResultFailed || c.Result == fsm.ResultUnknown:
		b.attempts++
		if c.Result == fsm.ResultFailed && c.Refused && l.action == fsm.ActionEnsureBalancer {
			b.ensured, b.message = false, c.Message
		}
	case c.Result != fsm.ResultSucceeded || b.life != was.life:
		return
	case l.action == fsm.ActionCreateBalancer:
		m.created(c, l, b, final)
		return
	case !final:
		return
	case l.action == fsm.ActionDeleteBalancer && b.state == "deleting":
		delete(m.balancers, l.balancer)
		return
	case l.action == fsm.ActionEnsureBalancer && b.state == "ready" && b.changed == was.changed:
		b.ensured, b.synced, b.attempts, b.message = true, b.attributes, 0, c.Message
		for id, o := range m.balancers {
			if o.identity == b.identity && o.state == "deleting" && !m.used(id) {
				delete(m.balancers, id) // it is b's now
			}
		}
	}
	m.balancers[l.balancer] = b
}

// created: it is known now what the object means. What may still come of earlier calls may come to that.
func (m *model) created(c *fsm.FinishOperation, l mLine, b mBalancer, final bool) {
	info := c.Returned
	if len(info) == 0 {
		info = b.wanted
	}
	identity := identityOf(b.driver, info)
	other := m.lines["balancer "+identity]
	if other.calls(fsm.ActionDeleteBalancer) || other.open && !final {
		return // nobody can tell whether it is there
	}
	at := m.lines[string(c.Subject)]
	if older(other.unsettled, at.unsettled) {
		other.unsettled = at.unsettled
		m.lines["balancer "+identity] = other
	}
	at.unsettled = rev{}
	m.lines[string(c.Subject)] = at
	b.identity, b.message, b.attempts = identity, c.Message, 0
	if b.state == "creating" {
		b.state = "ready"
		if b.changed == l.about.(mBalancer).changed {
			b.synced, b.ensured = b.attributes, other.quiet()
		}
	}
	m.balancers[l.balancer] = b
}
