// SPDX-License-Identifier: Apache-2.0

package fsm

import "strings"

// BindingState is where a binding stands between the decision to register a backend and the confirmation
// that it is gone. Failed attempts stay in their state, with a reason.
type BindingState uint8

// The life of a binding; its end is the removal of the record.
const (
	BindingPending       BindingState = iota // wanted, nothing asked yet
	BindingAddressing                        // the driver is asked for its address
	BindingEnsuring                          // the driver is to add or change it
	BindingBound                             // confirmed
	BindingDraining                          // unwanted, established flows may end
	BindingDeregistering                     // the driver is to remove it
)

var bindingStateNames = [...]string{"pending", "addressing", "ensuring", "bound", "draining", "deregistering"}

// String is the name that tables and JSON show.
func (s BindingState) String() string {
	if int(s) < len(bindingStateNames) {
		return bindingStateNames[s]
	}
	return "unknown"
}

// MarshalText makes JSON show the name.
func (s BindingState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// live tells whether the binding still wants its backend on the balancer.
func (s BindingState) live() bool { return s != BindingDeregistering }

// Binding is one backend on one load balancer, with everything that is needed to take it off again when pod,
// group, service and Kubernetes itself are gone.
type Binding struct {
	seal
	ID       BindingID  `pb:"1" json:"id"`
	Balancer BalancerID `pb:"2" json:"balancer"`
	// Owner is the Kubernetes object that it is for, as "kind/namespace/name/uid"; kept for people and for the
	// mirror object.
	Owner   string `pb:"3" json:"owner,omitempty"`
	Address string `pb:"4" json:"address,omitempty"` // as the driver knows the backend; empty until addressed
	// Parameters go with every call about the backend.
	Parameters []KV         `pb:"5" json:"parameters"`
	State      BindingState `pb:"6" json:"state"`
	// Generation rises whenever the parameters change; a success for an older one does not make it bound.
	Generation uint64 `pb:"7" json:"generation"`
	// Asked is set before the first ensure goes out: from then on only a confirmation or an operator ends it.
	Asked    bool   `pb:"8" json:"asked"`
	Attempts uint32 `pb:"9" json:"attempts"` // that failed in the present state
	Reason   string `pb:"10" json:"reason,omitempty"`
	Returned []KV   `pb:"11" json:"returned"` // injected info, kept for the calls to come
	History  Trail  `pb:"12" json:"history"`
}

// Table is TableBindings.
func (*Binding) Table() Table { return TableBindings }

// Key is the binding's id.
func (b *Binding) Key() string { return string(b.ID) }

// Subject is what operations on the binding are in flight for: the address on the balancer, so that bindings
// which share one are one line of operations; before an address exists, the binding.
func (b *Binding) Subject() Subject { return SubjectOf(b.Balancer, b.Address, b.ID) }

// What subjects of bindings begin with, before and after an address exists.
const (
	bindingSubject = "binding "
	backendSubject = "backend "
)

// SubjectOf names the line of operations that a binding belongs to.
func SubjectOf(balancer BalancerID, address string, binding BindingID) Subject {
	if address == "" {
		return Subject(bindingSubject + string(binding))
	}
	return Subject(backendSubject + string(balancer) + " " + address)
}

// on tells whether s is b's subject, without making that.
func (b *Binding) on(s Subject) bool {
	if b.Address == "" {
		id, ok := strings.CutPrefix(string(s), bindingSubject)
		return ok && id == string(b.ID)
	}
	rest, ok := strings.CutPrefix(string(s), backendSubject)
	if ok {
		rest, ok = strings.CutPrefix(rest, string(b.Balancer))
	}
	return ok && len(rest) == len(b.Address)+1 && rest[0] == ' ' && rest[1:] == b.Address
}

// moved is a copy of b in another state, with a step in its history.
func (tx *txn) moved(b *Binding, s BindingState, why string) *Binding {
	next := *b
	next.State, next.Attempts, next.Reason = s, 0, ""
	what := s.String()
	if why != "" {
		what += ": " + why
	}
	next.History = tx.step(b.History, what)
	return &next
}

// PutBinding wants a backend on a balancer, changes its parameters, or wants one again that was on its way
// out. Address may be empty when the driver is to be asked for it.
type PutBinding struct {
	ID         BindingID  `pb:"1"`
	Balancer   BalancerID `pb:"2"`
	Owner      string     `pb:"3"`
	Address    string     `pb:"4"`
	Parameters []KV       `pb:"5"`
}

// Kind is KindPutBinding.
func (*PutBinding) Kind() Kind { return KindPutBinding }

func (c *PutBinding) apply(tx *txn) Outcome {
	subject := "binding " + string(c.ID)
	if c.ID == "" {
		return refuse(RejectInvalid, subject, "", "an id")
	}
	l, ok := find[*LoadBalancer](tx.rows, TableBalancers, string(c.Balancer))
	if !ok {
		return refuse(RejectNotFound, "load balancer "+string(c.Balancer), "", "")
	}
	old, ok := find[*Binding](tx.rows, TableBindings, string(c.ID))
	if !ok {
		if op, known := find[*Operation](tx.rows, TableOperations, string(l.Subject())); known && op.Open && op.Action == ActionDeleteBalancer {
			return refuse(RejectOperationOpen, string(op.Subject), op.Attempt.String(), "") // it may be gone before this is on it
		}
		b := &Binding{ID: c.ID, Balancer: l.ID, Owner: c.Owner, Address: c.Address, Parameters: c.Parameters}
		b.Generation = tx.generationOn(b.Subject()) + 1
		tx.put(tx.moved(b, entryState(c.Address), ""))
		return tx.ok()
	}
	if old.Balancer != c.Balancer || c.Address != "" && old.Address != "" && old.Address != c.Address {
		return refuse(RejectWrongState, subject, old.Address, c.Address) // another backend is another binding
	}
	same := equalKVs(old.Parameters, c.Parameters)
	if same && old.State < BindingDraining {
		return tx.ok()
	}
	next := *old
	next.Parameters, next.Owner = c.Parameters, c.Owner
	if !same {
		next.Generation++
	}
	tx.put(tx.moved(&next, entryState(old.Address), "parameters changed or wanted again"))
	return tx.ok()
}

// generationOn is that of the newest call on a line: a binding that was forgotten and wanted anew must not be
// confirmed by a call that is still under way for the old one.
func (tx *txn) generationOn(s Subject) uint64 {
	if op, ok := find[*Operation](tx.rows, TableOperations, string(s)); ok {
		return op.Generation
	}
	return 0
}

func entryState(address string) BindingState {
	if address == "" {
		return BindingPending
	}
	return BindingEnsuring
}

func equalKVs(a, b []KV) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// SetBindingAddress gives a binding its backend address where the planner knows it without asking a driver.
type SetBindingAddress struct {
	ID      BindingID `pb:"1"`
	Address string    `pb:"2"`
}

// Kind is KindSetBindingAddress.
func (*SetBindingAddress) Kind() Kind { return KindSetBindingAddress }

func (c *SetBindingAddress) apply(tx *txn) Outcome {
	subject := "binding " + string(c.ID)
	b, ok := find[*Binding](tx.rows, TableBindings, string(c.ID))
	if !ok {
		return refuse(RejectNotFound, subject, "", "")
	}
	if b.Address != "" || c.Address == "" || b.State > BindingAddressing {
		return refuse(RejectWrongState, subject, b.State.String()+" "+b.Address, c.Address)
	}
	if out, open := tx.operationOpen(b.Subject()); open {
		return out
	}
	tx.address(b, c.Address)
	tx.endLine(b.Subject())
	return tx.ok()
}

// address moves a binding on once its address is known.
func (tx *txn) address(b *Binding, address string) {
	next := *b
	next.Address = address
	next.Generation = max(next.Generation, tx.generationOn(next.Subject())+1)
	tx.put(tx.moved(&next, BindingEnsuring, "address "+address))
}

// RemoveBinding no longer wants a backend. One that was never asked for is gone at once; any other is
// deregistered, after draining where Drain says so.
type RemoveBinding struct {
	ID    BindingID `pb:"1"`
	Drain bool      `pb:"2"`
}

// Kind is KindRemoveBinding.
func (*RemoveBinding) Kind() Kind { return KindRemoveBinding }

func (c *RemoveBinding) apply(tx *txn) Outcome {
	subject := "binding " + string(c.ID)
	b, ok := find[*Binding](tx.rows, TableBindings, string(c.ID))
	if !ok {
		return refuse(RejectNotFound, subject, "", "")
	}
	if out, wait := tx.quarantined(subject); wait {
		return out
	}
	switch {
	case !b.Asked:
		tx.endBinding(b, "gone, was never asked for")
	case b.State == BindingBound && c.Drain:
		tx.put(tx.moved(b, BindingDraining, ""))
	case b.State < BindingDraining:
		tx.put(tx.moved(b, BindingDeregistering, ""))
	}
	return tx.ok()
}

// Drained says that a draining binding has waited long enough.
type Drained struct {
	ID BindingID `pb:"1"`
}

// Kind is KindDrained.
func (*Drained) Kind() Kind { return KindDrained }

func (c *Drained) apply(tx *txn) Outcome {
	b, ok := find[*Binding](tx.rows, TableBindings, string(c.ID))
	if !ok {
		return refuse(RejectNotFound, "binding "+string(c.ID), "", "")
	}
	if b.State != BindingDraining {
		return refuse(RejectWrongState, "binding "+string(c.ID), b.State.String(), BindingDraining.String())
	}
	tx.put(tx.moved(b, BindingDeregistering, "drained"))
	return tx.ok()
}

// Forget is an operator's word that a binding needs no deregistration: somebody removed the finalizer of its
// mirror by hand, or the balancer no longer exists. The actor is in the command's envelope.
type Forget struct {
	ID BindingID `pb:"1"`
}

// Kind is KindForget.
func (*Forget) Kind() Kind { return KindForget }

func (c *Forget) apply(tx *txn) Outcome {
	b, ok := find[*Binding](tx.rows, TableBindings, string(c.ID))
	if !ok {
		return refuse(RejectNotFound, "binding "+string(c.ID), "", "")
	}
	tx.endBinding(b, "forgotten")
	return tx.ok()
}

// endBinding removes a binding, and its line of operations when nothing is left that could still happen on it.
func (tx *txn) endBinding(b *Binding, what string) {
	tx.bury(b, b.History, what)
	tx.endLine(b.Subject())
}
