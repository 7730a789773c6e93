// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// s6 keeps who put each entry on a balancer last, and which bindings are gone. No call may put on what a binding that is
// gone wanted, unless another one wants the same. No call may take off what a live binding put there, if that was live
// when the call was sent. A call that took effect only after its caller had given it up may have done so; then the entry
// must be there again within a call's deadline (taken to be Settle as well, as by default), Settle and repairTime, while
// driver and group are undisturbed: a new leader waits for both. Load balancers themselves are neither made once nothing
// means them any more, nor deleted while something does.
type s6 struct {
	idle
	*judge
	there  entries
	holder map[place]fsm.BindingID // who put what is there
	gone   map[fsm.BindingID]uint64
	calls  map[callID]*outsideCall
	missed overdue
	places map[string]place
	whole  *balancers
}

// repairTime is what a repeated call may take: DESIGN's "plus 10 s".
const repairTime = 10 * time.Second

// outsideCall is one to a driver.
type outsideCall struct {
	event.Drive
	number  uint64
	over    bool          // for its caller
	harmful fsm.BindingID // the live binding that held the place when it was sent
}

func newS6(j *judge) rule {
	return &s6{
		judge: j, there: entries{}, holder: map[place]fsm.BindingID{}, gone: map[fsm.BindingID]uint64{},
		calls: map[callID]*outsideCall{}, missed: newOverdue(), places: map[string]place{}, whole: newBalancers(j),
	}
}

func (r *s6) hear(e event.Stamped) {
	switch id, x := r.whole.hear(e); {
	case id == "":
	case x.Phase == "effect":
		r.whole.took(r.record.View(), e.Number, id, x)
	case x.Phase == "sent" && x.Action == createBalancer:
		r.whole.again(r.record.View(), e.Number, x)
	}
	switch x := e.Event.(type) {
	case event.Entry:
		at := r.there.hear(r.Set, x, e.Number)
		if x.By == "hand" {
			delete(r.holder, at) // nobody has to put that right
		}
	case event.Ended:
		for _, c := range r.calls {
			c.over = c.over || c.Process == x.Process
		}
	case event.Drive:
		r.drive(e.Number, x)
	}
}

func (r *s6) drive(number uint64, x event.Drive) {
	at := r.placeOf(x.Balancer, x.Address)
	switch x.Phase {
	case "sent":
		c := &outsideCall{Drive: x, number: number}
		if h := r.holder[at]; r.lives(h, at) {
			c.harmful = h
		}
		r.calls[r.callOf(x)] = c
	case "heard":
		if c := r.calls[r.callOf(x)]; c != nil {
			c.over = true
		}
	case "effect":
		r.checked()
		switch x.Action {
		case fsm.ActionEnsure.String():
			r.ensured(number, x, at)
		case fsm.ActionDeregister.String():
			r.deregistered(number, x, at)
		}
	}
}

// lives tells whether the record wants a binding at a place.
func (r *s6) lives(id fsm.BindingID, at place) bool {
	b, ok := fsm.Get[*fsm.Binding](r.record.View(), fsm.TableBindings, string(id))
	return ok && wants(b) && b.Identity == at.balancer && b.Address == at.address
}

func (r *s6) ensured(number uint64, x event.Drive, at place) {
	r.holder[at] = fsm.BindingID(x.Binding)
	went, ok := r.gone[fsm.BindingID(x.Binding)]
	if !ok {
		return
	}
	for _, b := range r.record.View().OnSubject(fsm.SubjectOf(at.balancer, at.address, "")) {
		if wants(b) {
			r.holder[at] = b.ID // it is wanted by another one
			return
		}
	}
	r.broken(fmt.Sprintf("binding %s (%s)", x.Binding, at), "it was put on the balancer after its record went", went, r.sentAt(x), number)
}

func (r *s6) deregistered(number uint64, x event.Drive, at place) {
	h := r.holder[at]
	c := r.calls[r.callOf(x)]
	if h == "" || !r.lives(h, at) {
		delete(r.holder, at)
		return
	}
	if c == nil || !c.over && c.harmful == h {
		r.broken(fmt.Sprintf("binding %s (%s)", h, at), "a deregistration of "+x.Binding+" took it off, and it is live", r.sentAt(x), number)
		return
	}
	r.places[at.String()] = at
	r.missed.note(at.String(), true, r.scene.now, "a call that its caller had given up took it off", number)
}

func (r *s6) sentAt(x event.Drive) uint64 {
	if c := r.calls[r.callOf(x)]; c != nil {
		return c.number
	}
	return 0
}

func (r *s6) step(s *step) {
	changedBindings(s, func(was, is *fsm.Binding) {
		switch {
		case is != nil:
			delete(r.gone, is.ID)
		case !forgets(s, was.ID) && !s.replaced:
			r.gone[was.ID] = s.Number
		}
	})
}

// tick looks whether what was taken off is there again. While somebody is disturbed the time begins anew.
func (r *s6) tick() {
	for _, key := range sortedKeys(r.missed.since) {
		at, w := r.places[key], r.missed.since[key]
		missing := r.there[at].owner != ours && r.lives(r.holder[at], at)
		if !missing {
			r.missed.note(key, false, 0, "", 0)
			continue
		}
		if !r.acts(r.record.View(), at.balancer) {
			w.at = r.scene.now
			r.missed.since[key] = w
		}
	}
	for _, key := range r.missed.over(r.scene.now, 2*r.bounds.Settle+repairTime) {
		w := r.missed.since[key]
		r.broken(key, fmt.Sprintf("%s at %s, and it was not put right", w.why, w.at), w.event)
	}
}
