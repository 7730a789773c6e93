// SPDX-License-Identifier: Apache-2.0

package fsm

import "time"

// FinishOperation says how a call ended. Only the open attempt is heard.
type FinishOperation struct {
	Subject  Subject  `pb:"1"`
	Attempt  Revision `pb:"2"`
	Result   Result   `pb:"3"`
	Message  string   `pb:"4" max:"1024"`
	Address  string   `pb:"5"` // of a successful ActionAddress
	Returned []KV     `pb:"6"` // injectedInfo, or lbInfo of a successful ActionCreateBalancer
	// Settled says that the call was begun at least a settle time after the newest unknown one ended, waited
	// out on the proposer's own clock.
	Settled bool `pb:"7"`
	// Refused says that the driver itself answered with a failure.
	Refused bool `pb:"8"`
	// RetryAfter is the driver's own word on when to ask again, of a call that failed or is under way. Zero if it has none.
	RetryAfter time.Duration `pb:"9"`
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
	case ResultRunning:
		tx.closeLine(c.hinted(tx, op), op.Unsettled)
		tx.unfinished(op, c.Message, attempt{})
	case ResultFailed:
		tx.closeLine(c.hinted(tx, op), op.Unsettled)
		tx.unfinished(op, c.Message, attempt{failed: true, refused: c.Refused})
	case ResultSucceeded:
		switch {
		case op.Action == ActionCreateBalancer:
			c.created(tx, op)
		case c.final(op):
			tx.closeLine(op, Revision{})
			c.succeed(tx, op)
		default:
			c.repeat(tx, op, "an earlier call can no longer take effect")
		}
	default:
		return refuse(RejectInvalid, string(c.Subject), "", "a result")
	}
	return tx.ok()
}

// hinted is an operation with what its driver said of when to ask again.
func (c *FinishOperation) hinted(tx *txn, op *Operation) *Operation {
	if c.RetryAfter <= 0 {
		return op
	}
	next := *op
	next.RetryAfter, next.Answered = c.RetryAfter, tx.item.AtUnixMilli
	return &next
}

// final tells whether nothing that was called before can undo a success any more.
func (c *FinishOperation) final(op *Operation) bool { return op.Unsettled.IsZero() || c.Settled }

// left is the call that may still take effect after a success.
func (c *FinishOperation) left(op *Operation) Revision {
	if c.Settled {
		return Revision{}
	}
	return op.Unsettled
}

// repeat closes a call that succeeded and says nothing for certain yet.
func (c *FinishOperation) repeat(tx *txn, op *Operation, once string) {
	tx.closeLine(op, c.left(op))
	tx.unfinished(op, "done, to be repeated once "+once, attempt{returned: c.Returned})
}

// endUnknown closes a call that may still take effect.
func (tx *txn) endUnknown(op *Operation, why string) {
	tx.closeLine(op, op.Attempt)
	tx.unfinished(op, "outcome unknown: "+why, attempt{failed: true})
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
	_, bindings := firstRef[*Binding](tx.rows, TableBindings, refPrefix(refSubject, string(s)))
	_, balancers := firstRef[*LoadBalancer](tx.rows, TableBalancers, refPrefix(refSubject, string(s)))
	if !bindings && !balancers {
		tx.remove(op)
	}
}

// attempt is how a call went after which there is more to do.
type attempt struct {
	failed   bool // counts as a failure
	refused  bool // the driver itself said so
	returned []KV // with a success that is not final
}

// unfinished keeps the reason of an attempt after which there is more to do, and counts it if it failed.
func (tx *txn) unfinished(op *Operation, why string, a attempt) {
	if op.Binding == "" {
		tx.unfinishedBalancer(op, why, a)
		return
	}
	b, ok := tx.bindingOf(op)
	if !ok {
		tx.endLine(op.Subject)
		return
	}
	next := *b
	if a.failed {
		next.Attempts++
	}
	next.Reason = why
	if op.Action == ActionEnsure {
		next.keep(a.returned)
		if a.refused {
			next.Registered, next.Message = false, why
		}
	}
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
	case op.Action == ActionEnsure && len(c.Returned) > 0: // for what is changed or unwanted by now: it takes that to take it off
		next := *b
		next.keep(c.Returned)
		tx.put(&next)
	case op.Action == ActionDeregister && b.State == BindingDeregistering:
		tx.endBinding(b, "gone, confirmed")
	case op.Action == ActionDeregister && b.Registered: // and wanted again meanwhile
		next := *b
		next.Registered = false
		tx.put(&next)
	}
}

// keep takes what a driver returned with a success, if it is anything.
func (b *Binding) keep(returned []KV) {
	if len(returned) > 0 {
		b.Returned = returned
	}
}

// bound confirms a binding. Others that were to be taken off the same address are settled by that: the
// address is a live binding's now, and removing it would remove that one (S6).
func (c *FinishOperation) bound(tx *txn, b *Binding, line Subject) {
	same := b.State == BindingBound && b.Registered && b.Attempts == 0 && b.Reason == "" && b.Message == c.Message
	if !same || len(c.Returned) > 0 && !equalKVs(b.Returned, c.Returned) {
		next := *b
		next.Registered, next.Message = true, c.Message
		next.keep(c.Returned)
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
