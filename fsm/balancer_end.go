// SPDX-License-Identifier: Apache-2.0

package fsm

// DeleteLoadBalancer no longer wants a load balancer. One that no driver was asked for is gone at once; the driver is
// asked to delete any other once it has no bindings any more (deregistration comes first, design §11), and to say first what
// it is where a Namesake may mean the same one.
type DeleteLoadBalancer struct {
	ID BalancerID `pb:"1"`
}

// Kind is KindDeleteLoadBalancer.
func (*DeleteLoadBalancer) Kind() Kind { return KindDeleteLoadBalancer }

func (c *DeleteLoadBalancer) apply(tx *txn) Outcome {
	subject := "load balancer " + string(c.ID)
	l, ok := find[*LoadBalancer](tx.rows, TableBalancers, string(c.ID))
	if !ok {
		return refuse(RejectNotFound, subject, "", "")
	}
	if out, wait := tx.quarantined(subject); wait {
		return out
	}
	switch {
	case !l.Asked:
		tx.endBalancer(l, "gone, was never asked for")
	case l.State != BalancerDeleting:
		tx.put(tx.turned(l, BalancerDeleting, "to be deleted"))
	}
	return tx.ok()
}

// ForgetLoadBalancer removes a load balancer without bindings, and without asking its driver: an operator's word, or
// the end of one that another object means as well.
type ForgetLoadBalancer struct {
	ID BalancerID `pb:"1"`
}

// Kind is KindForgetLoadBalancer.
func (*ForgetLoadBalancer) Kind() Kind { return KindForgetLoadBalancer }

func (c *ForgetLoadBalancer) apply(tx *txn) Outcome {
	l, ok := find[*LoadBalancer](tx.rows, TableBalancers, string(c.ID))
	if !ok {
		return refuse(RejectNotFound, "load balancer "+string(c.ID), "", "")
	}
	if out, used := tx.balancerUsed(l); used {
		return out
	}
	tx.endBalancer(l, "forgotten")
	return tx.ok()
}

// balancerUsed refuses what would take a load balancer away from under its bindings.
func (tx *txn) balancerUsed(l *LoadBalancer) (Outcome, bool) {
	b, used := firstRef[*Binding](tx.rows, TableBindings, refPrefix(refBalancer, string(l.ID)))
	if !used {
		return Outcome{}, false
	}
	return refuse(RejectInUse, "load balancer "+string(l.ID), "binding "+string(b.ID), "none"), true
}

// identityUsed refuses to delete a balancer while any object that means it has bindings: those come off first.
func (tx *txn) identityUsed(l *LoadBalancer) (Outcome, bool) {
	for _, o := range listRefs[*LoadBalancer](tx.rows, TableBalancers, refSubject, string(l.Subject())) {
		if out, used := tx.balancerUsed(o); used {
			return out, true
		}
	}
	return Outcome{}, false
}

// twinBusy refuses a creation while a deletion of an object of the same driver and Spec is under way, and the other way
// round. They may mean the same balancer, which is not known before the creation has ended: if both were under way, nobody
// could tell which of them took effect last.
func (tx *txn) twinBusy(l *LoadBalancer, other Action) (Outcome, bool) {
	for _, o := range listRefs[*LoadBalancer](tx.rows, TableBalancers, refSpec, l.wish()) {
		op, known := find[*Operation](tx.rows, TableOperations, string(o.Subject()))
		if known && op.Open && op.Action == other && op.Balancer == o.ID {
			return op.refuse(), true
		}
	}
	return Outcome{}, false
}

// Namesake finds another object that asks the same of the same driver as one that has no identity yet, and that wants it or
// has backends on it. Both may mean one balancer: to delete by its Spec what was asked for here could take it away from that one.
func (v *View) Namesake(l *LoadBalancer) (*LoadBalancer, bool) { return namesake(v.rows, l) }

func namesake(r *rows, l *LoadBalancer) (*LoadBalancer, bool) {
	if l.Identity != "" {
		return nil, false
	}
	for _, o := range listRefs[*LoadBalancer](r, TableBalancers, refSpec, l.wish()) {
		if o.ID == l.ID {
			continue
		}
		if _, used := firstRef[*Binding](r, TableBindings, refPrefix(refBalancer, string(o.ID))); used || o.State != BalancerDeleting {
			return o, true
		}
	}
	return nil, false
}

// wish is driver and Spec in one form.
func (l *LoadBalancer) wish() string { return string(IdentityOf(l.Driver, l.Spec)) }

// alike finds another object that means the same balancer and wants it.
func (tx *txn) alike(l *LoadBalancer) (*LoadBalancer, bool) {
	if l.Identity == "" {
		return nil, false
	}
	for _, o := range listRefs[*LoadBalancer](tx.rows, TableBalancers, refSubject, string(l.Subject())) {
		if o.ID != l.ID && o.State != BalancerDeleting {
			return o, true
		}
	}
	return nil, false
}

// endBalancer removes a load balancer, and its line of operations when nothing is left that could still happen on it.
func (tx *txn) endBalancer(l *LoadBalancer, what string) {
	tx.bury(l, l.History, what)
	tx.endLine(l.Subject())
}
