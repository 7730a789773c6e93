// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// balancers is the account of outside load balancers themselves that rules about them share: what drivers were asked to
// make and to delete, and what is there. Those of one identity are one, whatever objects mean it.
type balancers struct {
	*judge
	lives map[fsm.Identity]*balancerLife
	calls map[callID]*balancerCall
}

// balancerLife is what was done about a balancer, as numbers of events; 0 for never.
type balancerLife struct {
	asked     uint64 // to make or to ensure it
	confirmed uint64 // when the deletion was sent that succeeded last
	there     uint64 // since when it is there
}

// balancerCall is one about a balancer.
type balancerCall struct {
	number uint64
	over   bool // for its caller
	from   string
}

func newBalancers(j *judge) *balancers {
	return &balancers{judge: j, lives: map[fsm.Identity]*balancerLife{}, calls: map[callID]*balancerCall{}}
}

// Actions on balancers, as events have them.
var (
	createBalancer = fsm.ActionCreateBalancer.String()
	ensureBalancer = fsm.ActionEnsureBalancer.String()
	deleteBalancer = fsm.ActionDeleteBalancer.String()
)

func (b *balancers) life(id fsm.Identity) *balancerLife {
	l := b.lives[id]
	if l == nil {
		l = &balancerLife{}
		b.lives[id] = l
	}
	return l
}

// hear takes in an event, and tells which balancer it is about, if it is about one.
func (b *balancers) hear(e event.Stamped) (id fsm.Identity, x event.Drive) {
	if ended, ok := e.Event.(event.Ended); ok {
		for _, c := range b.calls {
			c.over = c.over || c.from == ended.Process
		}
	}
	x, ok := e.Event.(event.Drive)
	if !ok || x.Action != createBalancer && x.Action != ensureBalancer && x.Action != deleteBalancer {
		return "", x
	}
	id = b.balancerOf(x.Balancer)
	l, key := b.life(id), b.callOf(x)
	switch x.Phase {
	case "sent":
		b.calls[key] = &balancerCall{number: e.Number, from: x.Process}
		if x.Action != deleteBalancer {
			l.asked = e.Number
		}
	case "effect":
		if l.there = e.Number; x.Action == deleteBalancer {
			l.there = 0
		}
	case "answered", "heard":
		if c := b.calls[key]; c != nil {
			if x.Action == deleteBalancer && x.Result == "succeeded" {
				l.confirmed = max(l.confirmed, c.number)
			}
			c.over = c.over || x.Phase == "heard"
		}
	}
	return id, x
}

// identityOf is what the driver will say that an object means, or has said.
func identityOf(l *fsm.LoadBalancer) fsm.Identity {
	if l.Identity != "" {
		return l.Identity
	}
	return fsm.IdentityOf(l.Driver, l.Spec)
}

// meaning lists the objects of the record that mean a balancer, or will.
func meaning(v *fsm.View, id fsm.Identity) []*fsm.LoadBalancer {
	return slices.DeleteFunc(fsm.List[*fsm.LoadBalancer](v, fsm.TableBalancers), func(l *fsm.LoadBalancer) bool { return identityOf(l) != id })
}

// removedBalancers visits the objects that a step took out of the record, but for those that an operator had it forget.
func removedBalancers(s *step, visit func(*fsm.LoadBalancer)) {
	if s.replaced {
		return
	}
	fsm.Changes(s.before, s.after, fsm.TableBalancers, func(was, is *fsm.LoadBalancer) {
		if was == nil || is != nil {
			return
		}
		if _, there := fsm.Get[*fsm.LoadBalancer](s.after, fsm.TableBalancers, string(was.ID)); there {
			return
		}
		if !slices.ContainsFunc(s.proposals, func(p fsm.Proposal) bool {
			c, ok := p.Command.(*fsm.ForgetLoadBalancer)
			return ok && c.ID == was.ID
		}) {
			visit(was)
		}
	})
}

// gone judges that an object went (S5): nobody was ever asked to make its balancer, or another object means it, or its
// deletion was sent after all that and confirmed, and it is there no more.
func (b *balancers) gone(s *step, was *fsm.LoadBalancer) {
	b.checked()
	id := identityOf(was)
	l := b.life(id)
	if l.asked == 0 || !was.Asked || len(meaning(s.after, id)) > 0 {
		return
	}
	subject := "load balancer " + string(was.ID)
	switch {
	case l.confirmed < l.asked:
		b.broken(subject, "its record went, and no deletion was confirmed", l.asked, l.confirmed, s.Number)
	case l.there != 0:
		b.broken(subject, "its record went, and the balancer is still there", l.there, l.confirmed, s.Number)
	}
}

// took judges what a call did (S6). What nobody means is not made any more, and what somebody means is not deleted; what
// took effect only after its caller had given up may be, and is made anew.
func (b *balancers) took(v *fsm.View, number uint64, id fsm.Identity, x event.Drive) {
	b.checked()
	c, means := b.calls[b.callOf(x)], meaning(v, id)
	sent := uint64(0)
	if c != nil {
		sent = c.number
	}
	subject := fmt.Sprintf("balancer %s", id)
	if x.Action != deleteBalancer {
		if len(means) == 0 {
			b.broken(subject, "it was made after the last object that means it went", sent, number)
		}
		return
	}
	if c != nil && c.over {
		return
	}
	for _, l := range means {
		if l.Identity == id && l.State != fsm.BalancerDeleting {
			b.broken(subject, "it was deleted, and "+string(l.ID)+" means it", sent, number)
		}
		for _, o := range fsm.List[*fsm.Binding](v, fsm.TableBindings) {
			if o.Balancer == l.ID && o.Asked {
				b.broken(subject, "it was deleted before binding "+string(o.ID)+" was off", sent, number)
			}
		}
	}
}

// again judges a creation that is sent (S6): what the record knows already is not made once more.
func (b *balancers) again(v *fsm.View, number uint64, x event.Drive) {
	if l, ok := fsm.Get[*fsm.LoadBalancer](v, fsm.TableBalancers, x.Binding); ok && l.Identity != "" {
		b.broken("load balancer "+x.Binding, "it is created anew, and the record knows what it is", number)
	}
}
