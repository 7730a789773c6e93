// SPDX-License-Identifier: Apache-2.0

package fsm

// AdoptBinding takes over a backend that somebody else looked after: nothing is asked of the driver unless it was to be
// registered, or to be deregistered, still.
type AdoptBinding struct {
	Binding PutBinding `pb:"1"`
	// UID is what the driver knows the calls about it by.
	UID      string `pb:"2"`
	Returned []KV   `pb:"3"`
	// Registered says that the driver confirmed it, and Leaving that it is to be deregistered.
	Registered bool `pb:"4"`
	Leaving    bool `pb:"5"`
	// Origin is the BackendRecord that says so, unless it says that it is ours.
	Origin Origin `pb:"6"`
}

// Kind is KindAdoptBinding.
func (*AdoptBinding) Kind() Kind { return KindAdoptBinding }

func (c *AdoptBinding) apply(tx *txn) Outcome {
	w := &c.Binding
	subject := "binding " + string(w.ID)
	if out, old := tx.formatBelow(formatDrivers, subject); old {
		return out
	}
	if w.ID == "" || c.UID == "" {
		return refuse(RejectInvalid, subject, "", "an id and a UID")
	}
	l, ok := find[*LoadBalancer](tx.rows, TableBalancers, string(w.Balancer))
	if !ok || l.Identity == "" {
		return refuse(RejectNotFound, "load balancer "+string(w.Balancer), "", "with an identity")
	}
	if _, exists := find[*Binding](tx.rows, TableBindings, string(w.ID)); exists {
		return refuse(RejectExists, subject, "", "")
	}
	if out, deleting := tx.deletionOpen(l.Subject()); deleting {
		return out
	}
	if out, deleting := tx.twinBusy(l, ActionDeleteBalancer); deleting {
		return out
	}
	b := &Binding{
		ID: w.ID, Balancer: l.ID, Identity: l.Identity, Owner: w.Owner, Address: w.Address, Parameters: w.Parameters,
		Backend: w.Backend, Attributes: w.Attributes, Ensure: w.Ensure,
		UID: c.UID, Origin: c.Origin, Returned: c.Returned, Registered: c.Registered && w.Address != "", Asked: w.Address != "",
	}
	if b.Origin == (Origin{}) {
		b.Origin = tx.originOf(b.ID)
	}
	b.Generation = tx.generationOn(b.Subject()) + 1
	state := entryState(w.Address)
	switch {
	case c.Leaving && w.Address == "":
		return tx.ok() // its driver was never asked, and is not now
	case c.Leaving:
		state = BindingDeregistering
	case b.Registered && tx.quiet(b.Subject()):
		state = BindingBound // nothing of ours can have changed that
	}
	tx.put(tx.moved(b, state, "taken over"))
	return tx.ok()
}
