// SPDX-License-Identifier: Apache-2.0

package fsm

import "time"

// Action is what an operation does outside.
type Action uint8

// Actions on backends, then on balancers.
const (
	// ActionAddress asks the driver for a backend's address. That changes nothing outside; only format 1 had operations of it.
	ActionAddress Action = iota + 1
	ActionEnsure
	ActionDeregister
	ActionEnsureBalancer
	ActionDeleteBalancer
	ActionCreateBalancer
)

var actionNames = [...]string{"", "address", "ensure", "deregister", "ensure-balancer", "delete-balancer", "create-balancer"}

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
	// RetryAfter is how long after its end the driver wants to hear nothing of what the newest call was: its action about this
	// generation of that binding or balancer. Answered is when that was said, by the wall clock of the leader. Zero if it said nothing.
	RetryAfter time.Duration `pb:"10" json:"retryAfter,omitempty"`
	Answered   int64         `pb:"11" json:"answered,omitempty"` // Unix time, in milliseconds
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
	if c.Action >= ActionEnsureBalancer && c.Action <= ActionCreateBalancer {
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
	if out, old := tx.formatBelow(formatDrivers, subject); old {
		return out, false
	}
	l, ok := find[*LoadBalancer](tx.rows, TableBalancers, string(c.Balancer))
	if !ok {
		return refuse(RejectNotFound, subject, "", ""), false
	}
	op.Balancer, op.Subject, op.Generation = l.ID, l.Subject(), l.Generation
	if !asksFor(tx.rows, l, c.Action) {
		return refuse(RejectWrongState, subject, l.State.String(), c.Action.String()), false
	}
	var out Outcome
	var wait bool
	switch c.Action {
	case ActionCreateBalancer:
		out, wait = tx.twinBusy(l, ActionDeleteBalancer)
	case ActionDeleteBalancer:
		out, wait = tx.keepsBalancer(l, subject)
	}
	return out, !wait
}

// AsksFor tells whether the state of a balancer asks for a call about it. One that is to be deleted, and may or may not be
// what a Namesake means, is created once more: drivers expect that, and say then what it is.
func (v *View) AsksFor(l *LoadBalancer, a Action) bool { return asksFor(v.rows, l, a) }

func asksFor(r *rows, l *LoadBalancer, a Action) bool {
	switch l.State {
	case BalancerCreating:
		return a == ActionCreateBalancer
	case BalancerReady:
		return a == ActionEnsureBalancer
	}
	if a != ActionCreateBalancer {
		return a == ActionDeleteBalancer
	}
	_, shared := namesake(r, l)
	return shared
}

// keepsBalancer refuses to delete a balancer that something still needs, or may need.
func (tx *txn) keepsBalancer(l *LoadBalancer, subject string) (Outcome, bool) {
	if o, shared := namesake(tx.rows, l); shared {
		return refuse(RejectLiveHolder, subject, string(o.ID), "its identity"), true
	}
	if out, used := tx.identityUsed(l); used {
		return out, true
	}
	if holder, held := tx.alike(l); held {
		return refuse(RejectLiveHolder, subject, string(holder.ID), ""), true
	}
	if out, busy := tx.twinBusy(l, ActionCreateBalancer); busy {
		return out, true
	}
	return tx.quarantined(subject)
}

// asked notes on the binding or balancer that a call about it is about to go out.
func (tx *txn) asked(op *Operation) {
	if op.Binding == "" {
		tx.askedOfBalancer(op)
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

func (tx *txn) askedOfBalancer(op *Operation) {
	l, ok := find[*LoadBalancer](tx.rows, TableBalancers, string(op.Balancer))
	if !ok || l.Asked && !(l.Ensured && op.Action == ActionDeleteBalancer) {
		return
	}
	next := *l
	next.Asked = true
	next.Ensured = l.Ensured && op.Action != ActionDeleteBalancer
	tx.put(&next)
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
