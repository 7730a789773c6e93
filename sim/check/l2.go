// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// l2 holds against the group each binding that is to be deregistered, for as long as driver, balancer and a majority of
// members are undisturbed and the driver does not answer that it failed or is at it still.
type l2 struct {
	idle
	*judge
	waiting overdue
}

func newL2(j *judge) rule { return &l2{judge: j, waiting: newOverdue()} }

func (r *l2) hear(e event.Stamped) {
	x, ok := e.Event.(event.Drive)
	if ok && x.Phase == "answered" && x.Action == fsm.ActionDeregister.String() && x.Result != "succeeded" {
		r.waiting.note(x.Binding, false, 0, "", 0)
	}
}

func (r *l2) step(s *step) {
	changedBindings(s, func(was, is *fsm.Binding) {
		switch {
		case is == nil:
			r.waiting.note(string(was.ID), false, 0, "", 0)
		case !wants(is):
			r.checked()
		}
		if was != nil && !wants(was) && wants(is) {
			r.waiting.note(string(was.ID), false, 0, "", 0)
		}
	})
}

func (r *l2) tick() {
	v := r.record.View()
	if v.Count(fsm.TableBindings) == 0 {
		return
	}
	for _, b := range fsm.List[*fsm.Binding](v, fsm.TableBindings) {
		if !wants(b) {
			r.waiting.note(string(b.ID), r.answers(v, b.Balancer) && r.scene.sound != never, r.scene.now, "it is to be deregistered", 0)
		}
	}
	for _, id := range r.waiting.over(r.scene.now, r.bounds.L2) {
		w := r.waiting.since[id]
		r.broken("binding "+id, fmt.Sprintf("%s since %s", w.why, w.at), w.event)
	}
}
