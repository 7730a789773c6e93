// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"maps"
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// l1Wishes is the part of L1 that compares outside balancers with what LBCF's objects ask for, and those with what is shown
// in them: once nobody has changed anything for L1, or for L2 where that is longer, each backend that is asked for is on its
// balancer and nothing else of ours, it has a BackendRecord which says so, and there are no others.
//
// Left out is what a hand took off or put in its place, what somebody said needs no deregistration, what is asked for of a driver that
// is not there, and as long as an operator is asked about absences, what is there and not asked for.
type l1Wishes struct {
	*judge
	there entries
	taken map[place]bool // off, by hand
	// forgotten is what is there since somebody said that it needs no deregistration.
	forgotten map[place]bool
}

func newL1Wishes(j *judge) *l1Wishes {
	return &l1Wishes{judge: j, there: entries{}, taken: map[place]bool{}, forgotten: map[place]bool{}}
}

func (r *l1Wishes) hear(e event.Stamped) {
	x, ok := e.Event.(event.Entry)
	if !ok {
		return
	}
	at := r.there.hear(r.Set, x, e.Number)
	delete(r.taken, at)
	delete(r.forgotten, at)
	if x.By == "hand" {
		r.taken[at] = !x.Present && x.Owner == ours
	}
}

func (r *l1Wishes) step(s *step) {
	changedBindings(s, func(was, is *fsm.Binding) {
		if was != nil && is == nil && forgets(s, was.ID) {
			r.forgotten[place{was.Identity, was.Address}] = true
		}
	})
}

// compare is called once everything else must agree.
func (r *l1Wishes) compare(v *fsm.View) {
	if !r.settled(v) {
		return
	}
	held := slices.ContainsFunc(fsm.List[*fsm.Hold](v, fsm.TableHolds), func(h *fsm.Hold) bool { return !h.Released })
	asked, records := map[place]bool{}, map[string]bool{}
	for _, b := range r.wishes.backends() {
		at := r.placeOf(b.balancer, b.address)
		asked[at], records[b.record] = true, true
		if !b.kept && !b.driverless {
			r.checked()
			r.registered(b, at)
		}
	}
	if held {
		return
	}
	for at, e := range r.there {
		if e.owner == ours && !asked[at] && !r.forgotten[at] && r.known(at) {
			r.broken(at.String(), "it is on the balancer, and no object asks for it", e.number)
		}
	}
	for _, o := range r.wishes.of("BackendRecord") {
		r.checked()
		if _, ok := fsm.Get[*fsm.Binding](v, fsm.TableBindings, o.id()); !ok {
			r.broken("BackendRecord "+o.id(), "there is no binding of it", o.number)
		} else if len(o.Metadata.Owners) > 0 && !records[o.id()] {
			r.broken("BackendRecord "+o.id(), "no object asks for its backend", o.number)
		}
	}
	r.balancers()
}

// known tells whether a balancer is one that users know by objects.
func (r *l1Wishes) known(at place) bool {
	return slices.ContainsFunc(r.topology.Balancers, func(b Balancer) bool { return b.Driver != "" && b.Identity == at.balancer })
}

// registered judges one backend that is asked for: it is there, and its BackendRecord says so.
func (r *l1Wishes) registered(b backend, at place) {
	is := r.there[at]
	if r.taken[at] || is.owner != "" && is.owner != ours {
		return
	}
	who := fmt.Sprintf("%s %s, %s", b.ownerKind, b.owner.id(), at)
	if is.owner == "" {
		r.broken(who, "it is asked for, and not on the balancer", b.owner.number)
		return
	}
	o := r.wishes.objects["BackendRecord"][b.record]
	if o == nil {
		r.broken(who, "its BackendRecord "+b.record+" is not there", b.owner.number)
		return
	}
	spec, status := read[recordSpec](o.Spec), read[recordStatus](o.Status)
	owned := len(o.Metadata.Owners) == 1 && o.Metadata.Owners[0].UID == b.owner.Metadata.UID && o.Metadata.Owners[0].Kind == b.ownerKind
	what := ""
	switch {
	case o.Metadata.Deletion != nil:
		what = "is being deleted"
	case !slices.Contains(o.Metadata.Finalizers, recordFinalizer):
		what = "has no finalizer"
	case !owned:
		what = "has not its owner"
	case spec.Info[balancerKeyInSpec] != b.balancer:
		what = fmt.Sprintf("is of %v", spec.Info)
	case !maps.Equal(spec.Parameters, b.parameters):
		what = fmt.Sprintf("has parameters %v, not %v", spec.Parameters, b.parameters)
	case status.Address != b.address:
		what = fmt.Sprintf("says that its address is %q", status.Address)
	case !isTrue(status.Conditions, "Registered"):
		what = "does not say that it is registered"
	}
	if what != "" {
		r.broken(who, "its BackendRecord "+b.record+" "+what, o.number)
	}
}

// Finalizers of LBCF's objects (lbcf §2).
const (
	recordFinalizer   = "lbcf.tkestack.io/deregister-backend"
	balancerFinalizer = "lbcf.tkestack.io/delete-load-loadbalancer"
)

// balancers judges what LoadBalancers and BackendGroups say of themselves.
func (r *l1Wishes) balancers() {
	for _, o := range r.wishes.of("LoadBalancer") {
		spec, status := read[balancerSpec](o.Spec), read[balancerStatus](o.Status)
		if o.Metadata.Deletion != nil || !r.wishes.driven(o.Metadata.Namespace, spec.Driver) {
			continue // L2's, or nobody's
		}
		r.checked()
		if !maps.Equal(status.Info, spec.Spec) || !isTrue(status.Conditions, "Created") || !isTrue(status.Conditions, "AttributesSynced") {
			r.broken("LoadBalancer "+o.id(), fmt.Sprintf("it does not say that it is created and in sync: %s", o.Status), o.number)
		}
	}
	expected, driverless := map[*wish]int{}, map[*wish]bool{}
	for _, b := range r.wishes.backends() {
		if !b.kept {
			expected[b.owner]++
		}
		driverless[b.owner] = driverless[b.owner] || b.driverless
	}
	for _, o := range r.wishes.of("BackendGroup") {
		if driverless[o] {
			continue
		}
		r.checked()
		if status := read[groupStatus](o.Status); status.Backends != expected[o] {
			r.broken("BackendGroup "+o.id(), fmt.Sprintf("it says that it has %d backends, and %d are asked for", status.Backends, expected[o]), o.number)
		}
	}
}
