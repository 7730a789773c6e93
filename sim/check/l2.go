// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// l2 holds against the group each binding that is to be deregistered, and each load balancer that is to be deleted and has
// no bindings any more, for as long as driver, balancer and a majority of members are undisturbed, no LBCF controller is in
// the cluster, and the driver does not answer that it failed or is at it still.
type l2 struct {
	idle
	*judge
	waiting overdue
	looked  time.Duration // at objects
}

func newL2(j *judge) rule { return &l2{judge: j, waiting: newOverdue()} }

func (r *l2) hear(e event.Stamped) {
	x, ok := e.Event.(event.Drive)
	if ok && x.Phase == "answered" && x.Action == fsm.ActionDeregister.String() && x.Result != "succeeded" {
		r.waiting.note(bindingKey(x.Binding), false, 0, "", 0)
	}
	if ok && x.Phase == "answered" && x.Action == deleteBalancer && x.Result != "succeeded" {
		for _, l := range meaning(r.record.View(), r.balancerOf(x.Balancer)) {
			r.waiting.note(balancerKey(l.ID), false, 0, "", 0)
		}
	}
}

func bindingKey(id string) string { return "binding " + id }

func balancerKey(id fsm.BalancerID) string { return "load balancer " + string(id) }

func (r *l2) step(s *step) {
	changedBindings(s, func(was, is *fsm.Binding) {
		switch {
		case is == nil:
			r.waiting.note(bindingKey(string(was.ID)), false, 0, "", 0)
		case !wants(is):
			r.checked()
		}
		if was != nil && !wants(was) && wants(is) {
			r.waiting.note(bindingKey(string(was.ID)), false, 0, "", 0)
		}
	})
	removedBalancers(s, func(*fsm.LoadBalancer) { r.checked() })
}

func (r *l2) tick() {
	v := r.record.View()
	r.goes(v)
	if v.Count(fsm.TableBindings)+v.Count(fsm.TableBalancers) == 0 {
		return
	}
	used := usage{map[fsm.Identity]bool{}, map[fsm.BalancerID]bool{}}
	for _, b := range fsm.List[*fsm.Binding](v, fsm.TableBindings) {
		used.balancers[b.Identity], used.objects[b.Balancer] = true, true
		if !wants(b) {
			r.waiting.note(bindingKey(string(b.ID)), r.acts(v, b.Identity), r.scene.now, "it is to be deregistered", 0)
		}
	}
	r.deletions(v, used)
	for _, id := range r.waiting.over(r.scene.now, r.bounds.L2) {
		w := r.waiting.since[id]
		r.broken(id, fmt.Sprintf("%s since %s", w.why, w.at), w.event)
	}
}

// usage is what has bindings.
type usage struct {
	balancers map[fsm.Identity]bool
	objects   map[fsm.BalancerID]bool
}

// deletions looks at load balancers that are to be deleted. An object waits for its own backends, and for those of others
// unless one of them wants the balancer still: then nothing is deleted.
func (r *l2) deletions(v *fsm.View, used usage) {
	listed := map[string]bool{}
	for _, l := range fsm.List[*fsm.LoadBalancer](v, fsm.TableBalancers) {
		key, id := balancerKey(l.ID), identityOf(l)
		listed[key] = l.State == fsm.BalancerDeleting
		kept := slices.ContainsFunc(meaning(v, id), func(o *fsm.LoadBalancer) bool { return o.State == fsm.BalancerReady })
		late := listed[key] && !used.objects[l.ID] && (kept || !used.balancers[id]) && r.acts(v, id)
		r.waiting.note(key, late, r.scene.now, "it is to be deleted", 0)
	}
	for key := range r.waiting.since {
		if strings.HasPrefix(key, balancerKey("")) && !listed[key] {
			r.waiting.note(key, false, 0, "", 0)
		}
	}
}
