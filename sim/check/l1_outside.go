// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// l1Outside is the part of L1 that compares outside balancers with the record: once nobody has changed what is wanted
// there for L1, or for L2 where that is longer, each backend that is wanted is bound and there. Left out is what a hand
// took off, or put in its place: nobody looks for that. What is there and not wanted is S4's. Load balancers that are wanted
// are confirmed by then, and there.
type l1Outside struct {
	*judge
	there entries
	taken map[place]bool // off, by hand
	asked time.Duration  // since when the same is wanted
	whole *balancers
}

func newL1Outside(j *judge) *l1Outside {
	return &l1Outside{judge: j, there: entries{}, taken: map[place]bool{}, whole: newBalancers(j)}
}

func (r *l1Outside) hear(e event.Stamped) {
	r.whole.hear(e)
	x, ok := e.Event.(event.Entry)
	if !ok {
		return
	}
	at := r.there.hear(r.Set, x, e.Number)
	delete(r.taken, at)
	if x.By == "hand" {
		r.taken[at] = !x.Present && x.Owner == ours
		r.asked = e.At
	}
}

func (r *l1Outside) step(s *step) {
	before := s.before
	if s.replaced {
		before = nil
	}
	fsm.Changes(before, s.after, fsm.TableBalancers, func(was, is *fsm.LoadBalancer) {
		if was == nil || is == nil || was.Generation != is.Generation || was.State != is.State {
			r.asked = s.At
		}
	})
	changedBindings(s, func(was, is *fsm.Binding) {
		if was == nil || is == nil || was.Generation != is.Generation || wants(was) != wants(is) {
			r.asked = s.At
		}
	})
}

// compare is called once everything else must agree.
func (r *l1Outside) compare(v *fsm.View) {
	if r.scene.now-max(r.asked, r.scene.calm) < max(r.bounds.L1, r.bounds.L2) {
		return
	}
	for _, l := range fsm.List[*fsm.LoadBalancer](v, fsm.TableBalancers) {
		if l.State == fsm.BalancerDeleting {
			continue
		}
		r.checked()
		if !l.Ensured {
			r.broken(balancerKey(l.ID), fmt.Sprintf("it is still %s, and not confirmed: %s", l.State, l.Reason))
		} else if life := r.whole.life(l.Identity); life.asked != 0 && life.there == 0 {
			r.broken(balancerKey(l.ID), "it is confirmed, and not there")
		}
	}
	for _, b := range fsm.List[*fsm.Binding](v, fsm.TableBindings) {
		at := place{b.Identity, b.Address}
		is := r.there[at]
		if !wants(b) || r.taken[at] || is.owner != "" && is.owner != ours {
			continue
		}
		r.checked()
		if b.State < fsm.BindingBound {
			r.broken("binding "+string(b.ID), fmt.Sprintf("it is still %s: %s", b.State, b.Reason))
		} else if is.owner == "" {
			r.broken(fmt.Sprintf("binding %s (%s)", b.ID, at), "it is "+b.State.String()+", and not on the balancer")
		}
	}
}
