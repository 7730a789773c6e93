// SPDX-License-Identifier: Apache-2.0

package fsm

// balancerOf finds the balancer that a call was about, unless that is gone or has another identity now.
func (tx *txn) balancerOf(op *Operation) (*LoadBalancer, bool) {
	l, ok := find[*LoadBalancer](tx.rows, TableBalancers, string(op.Balancer))
	return l, ok && l.Subject() == op.Subject
}

func (tx *txn) unfinishedBalancer(op *Operation, why string, a attempt) {
	l, ok := tx.balancerOf(op)
	if !ok {
		tx.endLine(op.Subject)
		return
	}
	next := *l
	if a.failed {
		next.Attempts++
	}
	next.Reason = why
	if a.refused && op.Action == ActionEnsureBalancer {
		next.Ensured, next.Message = false, why
	}
	if l.Reason != why {
		next.History = tx.step(l.History, op.Action.String()+": "+why)
	}
	tx.put(&next)
}

func (c *FinishOperation) succeedBalancer(tx *txn, op *Operation) {
	l, ok := tx.balancerOf(op)
	if !ok {
		tx.endLine(op.Subject)
		return
	}
	switch {
	case op.Action == ActionDeleteBalancer && l.State == BalancerDeleting:
		tx.endBalancer(l, "gone, confirmed")
	case op.Action == ActionEnsureBalancer && l.State == BalancerReady && l.Generation == op.Generation:
		c.ensured(tx, l)
	}
}

// created gives a balancer its identity: what the driver answered, or else what was asked for. One that is to be deleted
// by now gets it as well, since without it nobody knows what to delete. An earlier creation that may still take effect
// stays so on the line of the identity: there it takes a later call to be sure of the attributes, or of the end.
func (c *FinishOperation) created(tx *txn, op *Operation) {
	l, ok := tx.balancerOf(op)
	if !ok {
		tx.closeLine(op, c.left(op))
		tx.endLine(op.Subject)
		return
	}
	next := *l
	next.Info, next.Message = c.Returned, c.Message
	if len(next.Info) == 0 {
		next.Info = l.Spec
	}
	next.Identity = IdentityOf(l.Driver, next.Info)
	if line, known := find[*Operation](tx.rows, TableOperations, string(next.Subject())); known && line.Open {
		if line.Action == ActionDeleteBalancer || !c.final(op) {
			c.repeat(tx, op, string(line.Subject)+" is not being called any more")
			return
		}
	}
	tx.closeLine(op, Revision{})
	if !c.final(op) {
		tx.carryUnsettled(op, next.Subject())
	}
	state := l.State
	if state == BalancerCreating {
		state = BalancerReady
		if l.Generation == op.Generation {
			next.Ensured, next.Synced = tx.quiet(next.Subject()), l.Attributes
		}
	}
	next.Generation = max(next.Generation, tx.generationOn(next.Subject())+1)
	tx.put(tx.turned(&next, state, stepCreated))
	tx.endLine(op.Subject)
}

// carryUnsettled leaves on another line, which is closed, what may still happen of the earlier calls of op's.
func (tx *txn) carryUnsettled(op *Operation, to Subject) {
	next := *op
	if line, known := find[*Operation](tx.rows, TableOperations, string(to)); known {
		next = *line
	}
	next.Subject, next.Open = to, false
	if next.Unsettled.Before(op.Unsettled) {
		next.Unsettled = op.Unsettled
	}
	tx.put(&next)
}

// ensured confirms a balancer. Other objects that mean it and were to be deleted are settled by that: to delete it
// would take it away from this one.
func (c *FinishOperation) ensured(tx *txn, l *LoadBalancer) {
	if !l.Ensured || l.Attempts != 0 || l.Reason != "" || l.Message != c.Message {
		next := *l
		next.Ensured, next.Synced, next.Message = true, l.Attributes, c.Message
		tx.put(tx.turned(&next, BalancerReady, "ensured"))
	}
	for _, o := range listRefs[*LoadBalancer](tx.rows, TableBalancers, refSubject, string(l.Subject())) {
		if _, used := tx.balancerUsed(o); o.State == BalancerDeleting && !used {
			tx.endBalancer(o, "gone, the balancer is "+string(l.ID)+"'s now")
		}
	}
}
