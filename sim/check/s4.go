// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// s4 keeps what is on each balancer and which bindings the record has for it. What a driver put there must have one,
// but where an operator said forget; a driver must not take off what others put there. What was forgotten stays so
// until it goes or is put there for another binding: one that only wants the address has nothing to do with it.
type s4 struct {
	idle
	*judge
	there     entries
	bindings  map[place]map[fsm.BindingID]bool
	forgotten map[place]bool
}

func newS4(j *judge) rule {
	return &s4{judge: j, there: entries{}, bindings: map[place]map[fsm.BindingID]bool{}, forgotten: map[place]bool{}}
}

func (r *s4) hear(e event.Stamped) {
	if x, ok := e.Event.(event.Drive); ok && x.Phase == "effect" && x.Action == fsm.ActionEnsure.String() {
		if at := r.placeOf(x.Balancer, x.Address); r.bindings[at][fsm.BindingID(x.Binding)] {
			delete(r.forgotten, at)
		}
	}
	x, ok := e.Event.(event.Entry)
	if !ok {
		return
	}
	at := r.placeOf(x.Balancer, x.Address)
	had := r.there[at]
	if r.there.hear(r.Set, x, e.Number); !x.Present {
		delete(r.forgotten, at)
	}
	if x.By != "driver" {
		return
	}
	r.checked()
	if x.Owner != ours {
		r.broken(at.String(), "a driver changed what somebody else put there", had.number, e.Number)
		return
	}
	if had.owner != "" && had.owner != ours {
		r.broken(at.String(), "a driver took over what somebody else put there", had.number, e.Number)
	}
	if x.Present {
		r.covered(at, e.Number)
	}
}

func (r *s4) covered(at place, number uint64) {
	if r.there[at].owner == ours && len(r.bindings[at]) == 0 && !r.forgotten[at] {
		r.broken(at.String(), "it is on the balancer, and the record has no binding for it", r.there[at].number, number)
	}
}

func (r *s4) step(s *step) {
	if s.replaced {
		r.bindings = map[place]map[fsm.BindingID]bool{}
	}
	changedBindings(s, func(was, is *fsm.Binding) {
		if was != nil && (is == nil || is.Address != was.Address) {
			at := place{was.Identity, was.Address}
			delete(r.bindings[at], was.ID)
			if forgets(s, was.ID) {
				r.forgotten[at] = true
			}
			r.checked()
			defer r.covered(at, s.Number)
		}
		if is != nil {
			at := place{is.Identity, is.Address}
			if r.bindings[at] == nil {
				r.bindings[at] = map[fsm.BindingID]bool{}
			}
			r.bindings[at][is.ID] = true
		}
	})
}
