// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"maps"
	"slices"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
)

// outside is what the drivers and balancers know: which calls are under way, which backends may be on a balancer because
// we asked for them, and which objects' balancers may exist because we did.
type outside struct {
	underWay map[string]mLine
	unknown  map[string]bool // calls that may still take effect
	maybe    map[string]bool
	excused  map[string]bool // an operator said forget
	made     map[fsm.BalancerID]bool
	uids     map[string]int               // which life had which UID
	origins  map[fsm.BindingID]fsm.Origin // the newest object of each name that was taken over
}

func newOutside() *outside {
	return &outside{
		underWay: map[string]mLine{}, unknown: map[string]bool{}, maybe: map[string]bool{}, excused: map[string]bool{},
		made: map[fsm.BalancerID]bool{}, uids: map[string]int{}, origins: map[fsm.BindingID]fsm.Origin{},
	}
}

// saw follows a command that was allowed, with the model as it was before.
func (o *outside) saw(t *rapid.T, before *model, command fsm.Command) {
	switch c := command.(type) {
	case *fsm.BeginOperation:
		o.called(t, before, c)
	case *fsm.FinishOperation:
		o.heard(t, before, c)
	case *fsm.PutLoadBalancer:
		if _, known := before.balancers[c.ID]; !known && len(c.Info) > 0 {
			o.made[c.ID] = true
		}
	case *fsm.AdoptBinding:
		b := mBinding{identity: before.balancers[c.Binding.Balancer].identity, address: c.Binding.Address}
		if at := line(b, c.Binding.ID); b.address != "" {
			o.maybe[at], o.excused[at] = true, false
		}
		if known := c.Origin.UID != "" && (b.address != "" || !c.Leaving); known {
			o.origins[c.Binding.ID] = c.Origin
		}
	case *fsm.NewEpoch:
		for at := range o.underWay {
			o.unknown[at] = true
		}
		clear(o.underWay)
	case *fsm.Forget:
		o.excused[line(before.bindings[c.ID], c.ID)] = true
	case *fsm.ForgetLoadBalancer:
		delete(o.made, c.ID)
	}
}

func (o *outside) called(t *rapid.T, before *model, c *fsm.BeginOperation) {
	l := mLine{action: c.Action, attempt: before.now, balancer: c.Balancer}
	at := lineOfBalancer(before.balancers[c.Balancer], c.Balancer)
	if c.Action <= fsm.ActionDeregister {
		at, l.balancer = line(before.bindings[c.Binding], c.Binding), ""
	}
	if _, busy := o.underWay[at]; busy {
		t.Fatalf("two calls about %s are under way (S7)", at)
	}
	o.underWay[at] = l
	switch c.Action {
	case fsm.ActionEnsure:
		o.maybe[at], o.excused[at] = true, false
	case fsm.ActionDeregister:
		for id, b := range before.bindings {
			if line(b, id) == at && b.state != "deregistering" {
				t.Fatalf("%s is taken off %s, where %s lives (S6)", c.Binding, at, id)
			}
		}
	case fsm.ActionCreateBalancer, fsm.ActionEnsureBalancer:
		o.made[c.Balancer] = true
	case fsm.ActionDeleteBalancer:
		o.made[c.Balancer] = true
		for id, b := range before.bindings {
			if b.identity == before.balancers[c.Balancer].identity {
				t.Fatalf("%s is deleted from under %s", c.Balancer, id)
			}
		}
	}
}

func (o *outside) heard(t *rapid.T, before *model, c *fsm.FinishOperation) {
	at := string(c.Subject)
	call, busy := o.underWay[at]
	if !busy || call.attempt != c.Attempt {
		t.Fatalf("%s: heard of attempt %v, under way is %v", at, c.Attempt, call.attempt)
	}
	delete(o.underWay, at)
	if c.Result == fsm.ResultUnknown {
		o.unknown[at] = true
	}
	if c.Result != fsm.ResultSucceeded || o.unknown[at] && !c.Settled {
		return
	}
	delete(o.unknown, at)
	switch call.action {
	case fsm.ActionDeregister:
		delete(o.maybe, at)
	case fsm.ActionDeleteBalancer:
		delete(o.made, call.balancer)
	case fsm.ActionEnsureBalancer: // what others wanted to be rid of is this one's now
		for id, b := range before.balancers {
			if id != call.balancer && b.state == "deleting" && lineOfBalancer(b, id) == at {
				delete(o.made, id)
			}
		}
	}
}

// covered checks S4 and S5: whatever may be on a balancer because of us has a binding in the record, and whatever balancer
// may be there because of us an object.
func (o *outside) covered(t *rapid.T, v *fsm.View) {
	have := map[string]bool{}
	for _, b := range fsm.List[*fsm.Binding](v, fsm.TableBindings) {
		have["backend "+string(b.Identity)+" "+b.Address] = true
	}
	for _, at := range slices.Sorted(maps.Keys(o.maybe)) {
		if !have[at] && !o.excused[at] {
			t.Fatalf("%s may be on the balancer, and no binding in the record knows of it (S4, S5)", at)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(o.made)) {
		if _, ok := fsm.Get[*fsm.LoadBalancer](v, fsm.TableBalancers, string(id)); !ok {
			t.Fatalf("what %s asked for may be there, and the record knows nothing of it (S4, S5)", id)
		}
	}
}

// named checks that no two bindings ever had one UID, but what others gave them.
func (o *outside) named(t *rapid.T, v *fsm.View, m *model) {
	for _, b := range fsm.List[*fsm.Binding](v, fsm.TableBindings) {
		life := m.bindings[b.ID].life
		if had, known := o.uids[b.UID]; b.UID == "" || known && had != life && b.UID != theirs {
			t.Fatalf("binding %s has the UID %q, which another one had", b.ID, b.UID)
		}
		o.uids[b.UID] = life
	}
}

// traced checks that whatever became of a binding, and of its grave, nobody takes what it was taken over from for news; and
// that what is younger than all that is news.
func (o *outside) traced(t *rapid.T, v *fsm.View) {
	for id, origin := range o.origins {
		trace := v.TraceOf(id, origin)
		b, lives := fsm.Get[*fsm.Binding](v, fsm.TableBindings, string(id))
		if trace == fsm.TraceNone || lives && b.UID == theirs && b.Origin != (fsm.Origin{}) && (trace != fsm.TraceTaken || b.Origin != origin) {
			t.Fatalf("%s was taken over from %v: trace %d", id, origin, trace)
		}
	}
	for _, id := range bindings {
		g, buried := fsm.Get[*fsm.Grave](v, fsm.TableGraves, "bindings/"+string(id))
		if trace := v.TraceOf(id, fsm.Origin{UID: "never", Made: oldest + 9}); trace != fsm.TraceNone && !(buried && g.UID == "") {
			t.Fatalf("%s was never taken over: trace %d", id, trace)
		}
	}
}

// nothingUnderDeletion checks that nothing lives on a balancer while a call is under way that deletes it, and that nothing
// is created that may turn out to be the same.
func nothingUnderDeletion(t *rapid.T, v *fsm.View) {
	calls := map[fsm.BalancerID]fsm.Action{}
	for _, op := range fsm.List[*fsm.Operation](v, fsm.TableOperations) {
		if !op.Open || op.Binding != "" {
			continue
		}
		if l, known := fsm.Get[*fsm.LoadBalancer](v, fsm.TableBalancers, string(op.Balancer)); known && op.Subject == l.Subject() {
			calls[op.Balancer] = op.Action // else it is of a life before, which an operator had forgotten
		}
		for _, l := range v.BalancersOn(op.Subject) {
			if op.Action == fsm.ActionDeleteBalancer && (l.State != fsm.BalancerDeleting || len(v.BindingsOf(l.ID)) > 0) {
				t.Fatalf("%s is being deleted, and %s uses it", op.Subject, l.ID)
			}
		}
		nobodyElsesSpec(t, v, op)
	}
	for id, a := range calls {
		for other, b := range calls {
			l, known := fsm.Get[*fsm.LoadBalancer](v, fsm.TableBalancers, string(id))
			o, both := fsm.Get[*fsm.LoadBalancer](v, fsm.TableBalancers, string(other))
			if known && both && a == fsm.ActionCreateBalancer && b == fsm.ActionDeleteBalancer && l.Driver == o.Driver && slices.Equal(l.Spec, o.Spec) {
				t.Fatalf("%s is being created and %s deleted, which ask for the same", id, other)
			}
		}
	}
}

// nobodyElsesSpec checks that nothing is deleted by its Spec which may be what another object means: that one would lose it.
func nobodyElsesSpec(t *rapid.T, v *fsm.View, op *fsm.Operation) {
	gone, known := fsm.Get[*fsm.LoadBalancer](v, fsm.TableBalancers, string(op.Balancer))
	if !known || op.Action != fsm.ActionDeleteBalancer || gone.Identity != "" || op.Subject != gone.Subject() {
		return // the last is of a life before, which was forgotten
	}
	for _, l := range fsm.List[*fsm.LoadBalancer](v, fsm.TableBalancers) {
		same := l.ID != gone.ID && identityOf(l.Driver, l.Spec) == identityOf(gone.Driver, gone.Spec)
		if same && (l.State == fsm.BalancerReady || len(v.BindingsOf(l.ID)) > 0) {
			t.Fatalf("%s is being deleted by its Spec, and %s, of the same Spec, is in use", gone.ID, l.ID)
		}
	}
}
