// SPDX-License-Identifier: Apache-2.0

package fsm

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
