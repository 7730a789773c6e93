// SPDX-License-Identifier: Apache-2.0

package fsm

import "time"

// Action is what an operation does outside.
type Action uint8

// Actions on backends, then on balancers.
const (
	ActionAddress Action = iota + 1 // ask the driver for a backend's address
	ActionEnsure
	ActionDeregister
	ActionEnsureBalancer
	ActionDeleteBalancer
)

var actionNames = [...]string{"", "address", "ensure", "deregister", "ensure-balancer", "delete-balancer"}

// String is the name that tables and JSON show.
func (a Action) String() string {
	if int(a) < len(actionNames) && a > 0 {
		return actionNames[a]
	}
	return "unknown"
}

// MarshalText makes JSON show the name.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Result is how a call outside ended.
type Result uint8

// A call that timed out or broke off is ResultUnknown: it may still take effect (S6).
const (
	ResultSucceeded Result = iota + 1
	ResultFailed           // the outside said no, or could not be asked: nothing will happen
	ResultRunning          // the outside is at it: ask again
	ResultUnknown
)

// Operation is the line of calls about one subject: at most one is open (S7).
type Operation struct {
	seal
	Subject    Subject       `pb:"1" json:"subject"`
	Action     Action        `pb:"2" json:"action"`
	Binding    BindingID     `pb:"3" json:"binding,omitempty"`
	Balancer   BalancerID    `pb:"4" json:"balancer"`
	Attempt    Revision      `pb:"5" json:"attempt"` // of the newest call; its fence
	Open       bool          `pb:"6" json:"open"`
	Deadline   time.Duration `pb:"7" json:"deadline"` // on the proposer's clock, from before it proposed
	Generation uint64        `pb:"8" json:"generation"`
	// Unsettled is the newest call of unknown outcome on this subject. While it is set a success is final only
	// when it was begun a settle time after that call ended.
	Unsettled Revision `pb:"9" json:"unsettled"`
}

// Table is TableOperations.
func (*Operation) Table() Table { return TableOperations }

// Key is the subject.
func (o *Operation) Key() string { return string(o.Subject) }

func (tx *txn) operationOpen(s Subject) (Outcome, bool) {
	if op, ok := find[*Operation](tx.rows, TableOperations, string(s)); ok && op.Open {
		return op.refuse(), true
	}
	return Outcome{}, false
}

// refuse answers what must wait until an open operation has ended.
func (o *Operation) refuse() Outcome {
	return refuse(RejectOperationOpen, string(o.Subject), o.Attempt.String(), "")
}

// BeginOperation is committed before an effect. Its Outcome's Revision is the attempt that the effect carries
// and that FinishOperation names.
type BeginOperation struct {
	Action   Action        `pb:"1"`
	Binding  BindingID     `pb:"2"` // for actions on a backend
	Balancer BalancerID    `pb:"3"` // for actions on a balancer
	Deadline time.Duration `pb:"4"`
}

// Kind is KindBeginOperation.
func (*BeginOperation) Kind() Kind { return KindBeginOperation }

func (c *BeginOperation) apply(tx *txn) Outcome {
	if c.Deadline <= 0 {
		return refuse(RejectInvalid, c.Action.String(), "", "a deadline")
	}
	next := &Operation{Action: c.Action, Open: true, Deadline: c.Deadline}
	if out, ok := c.aim(tx, next); !ok {
		return out
	}
	if old, ok := find[*Operation](tx.rows, TableOperations, string(next.Subject)); ok {
		if old.Open {
			return old.refuse()
		}
		next.Unsettled = old.Unsettled
	}
	attempt, ok := tx.fence(string(next.Subject))
	if !ok {
		return refuse(RejectOperationOpen, string(next.Subject), tx.revision().String(), "")
	}
	next.Attempt = attempt
	tx.put(next)
	tx.asked(next)
	return tx.ok()
}

// aim fills in the subject and refuses an action that the record does not ask for.
func (c *BeginOperation) aim(tx *txn, op *Operation) (Outcome, bool) {
	if c.Action == ActionEnsureBalancer || c.Action == ActionDeleteBalancer {
		return c.aimAtBalancer(tx, op)
	}
	subject := "binding " + string(c.Binding)
	b, ok := find[*Binding](tx.rows, TableBindings, string(c.Binding))
	if !ok {
		return refuse(RejectNotFound, subject, "", ""), false
	}
	op.Binding, op.Balancer, op.Subject, op.Generation = b.ID, b.Balancer, b.Subject(), b.Generation
	switch c.Action {
	case ActionAddress:
		ok = b.Address == "" && b.State <= BindingAddressing
	case ActionEnsure:
		ok = b.Address != "" && (b.State == BindingEnsuring || b.State == BindingBound)
	case ActionDeregister:
		ok = b.State == BindingDeregistering && b.Address != ""
		if holder, held := tx.liveHolder(b); ok && held {
			return refuse(RejectLiveHolder, subject, string(holder.ID), ""), false
		}
		if out, wait := tx.quarantined(subject); ok && wait {
			return out, false
		}
	default:
		return refuse(RejectInvalid, subject, "", c.Action.String()), false
	}
	if !ok {
		return refuse(RejectWrongState, subject, b.State.String(), c.Action.String()), false
	}
	return Outcome{}, true
}

func (c *BeginOperation) aimAtBalancer(tx *txn, op *Operation) (Outcome, bool) {
	subject := "load balancer " + string(c.Balancer)
	l, ok := find[*LoadBalancer](tx.rows, TableBalancers, string(c.Balancer))
	if !ok {
		return refuse(RejectNotFound, subject, "", ""), false
	}
	op.Balancer, op.Subject, op.Generation = l.ID, l.Subject(), l.Generation
	if c.Action == ActionDeleteBalancer {
		if b, used := firstRef[*Binding](tx.rows, TableBindings, refPrefix(refBalancer, string(l.ID))); used {
			return refuse(RejectInUse, subject, "binding "+string(b.ID), "none"), false
		}
		if out, wait := tx.quarantined(subject); wait {
			return out, false
		}
	}
	return Outcome{}, true
}

// asked notes on the binding or balancer that a call about it is about to go out.
func (tx *txn) asked(op *Operation) {
	if op.Action == ActionDeleteBalancer {
		if l, ok := find[*LoadBalancer](tx.rows, TableBalancers, string(op.Balancer)); ok && l.Ensured {
			next := *l
			next.Ensured = false
			tx.put(&next)
		}
		return
	}
	b, ok := find[*Binding](tx.rows, TableBindings, string(op.Binding))
	switch {
	case !ok:
	case op.Action == ActionAddress && b.State == BindingPending:
		tx.put(tx.moved(b, BindingAddressing, ""))
	case op.Action == ActionEnsure && !b.Asked:
		next := *b
		next.Asked = true
		tx.put(&next)
	}
}

// liveHolder finds another binding that wants the same address on the same balancer.
func (tx *txn) liveHolder(b *Binding) (*Binding, bool) {
	for _, o := range listRefs[*Binding](tx.rows, TableBindings, refSubject, string(b.Subject())) {
		if o.ID != b.ID && o.State.live() {
			return o, true
		}
	}
	return nil, false
}

// FinishOperation says how a call ended. Only the open attempt is heard.
type FinishOperation struct {
	Subject  Subject  `pb:"1"`
	Attempt  Revision `pb:"2"`
	Result   Result   `pb:"3"`
	Message  string   `pb:"4"`
	Address  string   `pb:"5"` // of a successful ActionAddress
	Returned []KV     `pb:"6"`
	// Settled says that the call was begun at least a settle time after the newest unknown one ended, waited
	// out on the proposer's own clock.
	Settled bool `pb:"7"`
}

// Kind is KindFinishOperation.
func (*FinishOperation) Kind() Kind { return KindFinishOperation }

func (c *FinishOperation) apply(tx *txn) Outcome {
	op, ok := find[*Operation](tx.rows, TableOperations, string(c.Subject))
	if !ok {
		return refuse(RejectNoOperation, string(c.Subject), "", c.Attempt.String())
	}
	if !op.Open || op.Attempt != c.Attempt {
		return refuse(RejectStaleAttempt, string(c.Subject), op.Attempt.String(), c.Attempt.String())
	}
	switch c.Result {
	case ResultUnknown:
		tx.endUnknown(op, c.Message)
	case ResultFailed, ResultRunning:
		tx.closeLine(op, op.Unsettled)
		tx.failed(op, c.Message)
	case ResultSucceeded:
		if !op.Unsettled.IsZero() && !c.Settled {
			tx.closeLine(op, op.Unsettled)
			tx.failed(op, "done, to be repeated once an earlier call can no longer take effect")
			break
		}
		tx.closeLine(op, Revision{})
		c.succeed(tx, op)
	default:
		return refuse(RejectInvalid, string(c.Subject), "", "a result")
	}
	return tx.ok()
}

// endUnknown closes a call that may still take effect.
func (tx *txn) endUnknown(op *Operation, why string) {
	tx.closeLine(op, op.Attempt)
	tx.failed(op, "outcome unknown: "+why)
}

// bindingOf finds the binding that a call was about, unless that is gone and its id means another backend now.
func (tx *txn) bindingOf(op *Operation) (*Binding, bool) {
	b, ok := find[*Binding](tx.rows, TableBindings, string(op.Binding))
	return b, ok && b.on(op.Subject)
}

func (tx *txn) closeLine(op *Operation, unsettled Revision) {
	next := *op
	next.Open, next.Unsettled = false, unsettled
	tx.put(&next)
}

// endLine drops a line of operations that no binding uses and on which nothing can happen any more. To be asked for an
// address changes nothing outside, however late.
func (tx *txn) endLine(s Subject) {
	op, ok := find[*Operation](tx.rows, TableOperations, string(s))
	if !ok || op.Open || !op.Unsettled.IsZero() && op.Action != ActionAddress {
		return
	}
	if _, used := firstRef[*Binding](tx.rows, TableBindings, refPrefix(refSubject, string(s))); !used {
		tx.remove(op)
	}
}

// failed keeps the reason of an attempt that changed nothing for certain.
func (tx *txn) failed(op *Operation, why string) {
	b, ok := tx.bindingOf(op)
	if !ok {
		tx.endLine(op.Subject)
		return
	}
	next := *b
	next.Attempts++
	next.Reason = why
	if b.Reason != why {
		next.History = tx.step(b.History, op.Action.String()+": "+why)
	}
	tx.put(&next)
}

func (c *FinishOperation) succeed(tx *txn, op *Operation) {
	if op.Binding == "" {
		c.succeedBalancer(tx, op)
		return
	}
	b, ok := tx.bindingOf(op)
	if !ok {
		tx.endLine(op.Subject)
		return
	}
	switch {
	case op.Action == ActionAddress && b.State == BindingAddressing && c.Address != "":
		tx.address(b, c.Address)
		tx.endLine(op.Subject)
	case op.Action == ActionEnsure && b.State < BindingDraining && b.Generation == op.Generation:
		c.bound(tx, b, op.Subject)
	case op.Action == ActionDeregister && b.State == BindingDeregistering:
		tx.endBinding(b, "gone, confirmed")
	}
}

// bound confirms a binding. Others that were to be taken off the same address are settled by that: the
// address is a live binding's now, and removing it would remove that one (S6).
func (c *FinishOperation) bound(tx *txn, b *Binding, line Subject) {
	if b.State != BindingBound || len(c.Returned) > 0 && !equalKVs(b.Returned, c.Returned) || b.Reason != "" {
		next := *b
		if len(c.Returned) > 0 {
			next.Returned = c.Returned
		}
		tx.put(tx.moved(&next, BindingBound, ""))
	}
	if tx.rows.tables[TableBindings].single(refSubject, string(line)) {
		return
	}
	for _, o := range listRefs[*Binding](tx.rows, TableBindings, refSubject, string(line)) {
		if o.State == BindingDeregistering {
			tx.endBinding(o, "gone, its address is "+string(b.ID)+"'s now")
		}
	}
}

func (c *FinishOperation) succeedBalancer(tx *txn, op *Operation) {
	l, ok := find[*LoadBalancer](tx.rows, TableBalancers, string(op.Balancer))
	if !ok {
		return
	}
	if op.Action == ActionDeleteBalancer {
		tx.bury(l, l.History, "gone, confirmed")
		tx.endLine(op.Subject)
		return
	}
	if l.Generation != op.Generation {
		return
	}
	next := *l
	next.Ensured = true
	next.History = tx.step(l.History, "ensured")
	tx.put(&next)
}
