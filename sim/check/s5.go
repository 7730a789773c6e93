// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// s5 keeps of each binding whether anybody was ever asked to add it, and whether a deregistration that was sent after
// the last such call succeeded. A record may go if nobody was, or one did and the balancer really has it no more; if
// another live binding has its address by now; or if an operator said forget. The same goes for load balancers themselves.
type s5 struct {
	idle
	*judge
	there entries
	lives map[fsm.BindingID]*life
	calls map[callID]uint64 // deregistrations, and when they were sent
	whole *balancers
	shown *s5Wishes
}

// life is what was done about a binding, as numbers of events; 0 for never.
type life struct{ asked, confirmed uint64 }

func newS5(j *judge) rule {
	return &s5{judge: j, there: entries{}, lives: map[fsm.BindingID]*life{}, calls: map[callID]uint64{}, whole: newBalancers(j), shown: newS5Wishes(j)}
}

func (r *s5) hear(e event.Stamped) {
	r.whole.hear(e)
	r.shown.hear(e)
	switch x := e.Event.(type) {
	case event.Entry:
		r.there.hear(r.Set, x, e.Number)
	case event.Drive:
		r.drive(e.Number, x)
	}
}

func (r *s5) drive(number uint64, x event.Drive) {
	l := r.lives[fsm.BindingID(x.Binding)]
	if l == nil {
		l = &life{}
		r.lives[fsm.BindingID(x.Binding)] = l
	}
	deregister := x.Action == fsm.ActionDeregister.String()
	switch {
	case x.Phase == "sent" && x.Action == fsm.ActionEnsure.String():
		l.asked = number
	case x.Phase == "sent" && deregister:
		r.calls[r.callOf(x)] = number
	case (x.Phase == "answered" || x.Phase == "heard") && deregister && x.Result == "succeeded":
		l.confirmed = max(l.confirmed, r.calls[r.callOf(x)])
	}
}

func (r *s5) step(s *step) {
	removedBalancers(s, func(was *fsm.LoadBalancer) { r.whole.gone(s, was) })
	changedBindings(s, func(was, is *fsm.Binding) {
		switch {
		case was == nil:
			r.lives[is.ID] = &life{}
		case is == nil && !s.replaced:
			r.gone(s, was)
		}
	})
}

func (r *s5) gone(s *step, b *fsm.Binding) {
	r.checked()
	l := r.lives[b.ID]
	delete(r.lives, b.ID)
	at := place{b.Identity, b.Address}
	heir := slices.ContainsFunc(s.after.OnSubject(b.Subject()), func(o *fsm.Binding) bool { return wants(o) })
	if l == nil || l.asked == 0 || heir || forgets(s, b.ID) {
		return
	}
	subject := fmt.Sprintf("binding %s (%s)", b.ID, at)
	switch there := r.there[at]; {
	case l.confirmed < l.asked:
		r.broken(subject, "its record went, and no removal was confirmed", l.asked, l.confirmed, s.Number)
	case there.owner == ours:
		r.broken(subject, "its record went, and the balancer still has it", there.number, l.confirmed, s.Number)
	}
}
