// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

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
	// Identity is its balancer's.
	Identity Identity `pb:"13" json:"identity"`
	// UID is what the driver knows the calls about it by: drawn anew whenever it begins to exist.
	UID     string  `pb:"14" json:"uid"`
	Backend Backend `pb:"15" json:"backend"`
	// Attributes are those of the balancer that it was ensured under.
	Attributes []KV         `pb:"16" json:"attributes"`
	Ensure     EnsurePolicy `pb:"17" json:"ensure"`
	// Registered is what the driver's last answer to an ensure said: confirmed, or refused.
	Registered bool   `pb:"18" json:"registered"`
	Message    string `pb:"19" json:"message,omitempty"` // of the driver, with that answer
	// Origin is the newest BackendRecord that a binding of this id, this one or one before it, was taken over from.
	Origin Origin `pb:"20" json:"origin,omitzero"`
}

// Backend is what a binding binds, in the words of Kubernetes.
type Backend struct {
	// Kind is "Pod", "Service" or "Static".
	Kind string `pb:"1" json:"kind"`
	// Name is that of the pod or the Service, in the namespace of the binding; UID that of the pod.
	Name     string `pb:"2" json:"name,omitempty"`
	UID      string `pb:"3" json:"uid,omitempty"`
	Port     uint32 `pb:"4" json:"port,omitempty"` // of the pod, or the Service's own
	Protocol string `pb:"5" json:"protocol,omitempty"`
	NodePort uint32 `pb:"6" json:"nodePort,omitempty"`
	Node     string `pb:"7" json:"node,omitempty"` // of a Service
	// Target is what its address was made from beside all that: the pod's IP, or the node's addresses. With another
	// one it is another backend.
	Target string `pb:"8" json:"target,omitempty"`
}

// Table is TableBindings.
func (*Binding) Table() Table { return TableBindings }

// Key is the binding's id.
func (b *Binding) Key() string { return string(b.ID) }

// Subject is what operations on the binding are in flight for: the address on the balancer, so that bindings
// which share one are one line of operations; before an address exists, the binding.
func (b *Binding) Subject() Subject { return SubjectOf(b.Identity, b.Address, b.ID) }

// What subjects of bindings begin with, before and after an address exists.
const (
	bindingSubject = "binding "
	backendSubject = "backend "
)

// SubjectOf names the line of operations that a binding belongs to.
func SubjectOf(balancer Identity, address string, binding BindingID) Subject {
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
		rest, ok = strings.CutPrefix(rest, string(b.Identity))
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
	ID         BindingID    `pb:"1"`
	Balancer   BalancerID   `pb:"2"`
	Owner      string       `pb:"3"`
	Address    string       `pb:"4"`
	Parameters []KV         `pb:"5"`
	Backend    Backend      `pb:"6"`
	Attributes []KV         `pb:"7"`
	Ensure     EnsurePolicy `pb:"8"`
}

// Kind is KindPutBinding.
func (*PutBinding) Kind() Kind { return KindPutBinding }

func (c *PutBinding) apply(tx *txn) Outcome {
	subject := "binding " + string(c.ID)
	if c.ID == "" {
		return refuse(RejectInvalid, subject, "", "an id")
	}
	l, out := tx.balancerFor(c.Balancer)
	if l == nil {
		return out
	}
	old, ok := find[*Binding](tx.rows, TableBindings, string(c.ID))
	if !ok {
		b := &Binding{
			ID: c.ID, Balancer: l.ID, Identity: l.Identity, Owner: c.Owner, Address: c.Address, Parameters: c.Parameters,
			Backend: c.Backend, Attributes: c.Attributes, Ensure: c.Ensure, UID: tx.drawUID("binding " + string(c.ID)),
			Origin: tx.originOf(c.ID),
		}
		b.Generation = tx.generationOn(b.Subject()) + 1
		tx.put(tx.moved(b, entryState(c.Address), ""))
		return tx.ok()
	}
	if old.Balancer != c.Balancer || c.Address != "" && old.Address != "" && old.Address != c.Address || old.Backend != c.Backend {
		return refuse(RejectWrongState, subject, old.Address, c.Address) // another backend is another binding
	}
	next := *old
	next.Owner = c.Owner
	same := equalKVs(old.Parameters, c.Parameters) && equalKVs(old.Attributes, c.Attributes) && old.Ensure == c.Ensure
	if same && old.State < BindingDraining {
		if old.Owner != c.Owner {
			tx.put(tx.owned(&next))
		}
		return tx.ok()
	}
	next.Parameters, next.Attributes, next.Ensure = c.Parameters, c.Attributes, c.Ensure
	if !same {
		next.Generation++
	}
	tx.put(tx.moved(&next, entryState(old.Address), "parameters changed or wanted again"))
	return tx.ok()
}

// owned is a copy of a binding that another object owns by now: a group that was deleted and made anew wants the same
// backends. Nothing changes outside.
func (tx *txn) owned(b *Binding) *Binding {
	next := *b
	next.History = tx.step(b.History, "owned by "+b.Owner)
	return &next
}

// balancerFor finds the balancer that a new or changed binding is for; nil with the reason if it can have none.
func (tx *txn) balancerFor(id BalancerID) (*LoadBalancer, Outcome) {
	subject := "load balancer " + string(id)
	l, ok := find[*LoadBalancer](tx.rows, TableBalancers, string(id))
	if !ok {
		return nil, refuse(RejectNotFound, subject, "", "")
	}
	if l.State != BalancerReady {
		return nil, refuse(RejectWrongState, subject, l.State.String(), BalancerReady.String())
	}
	if out, deleting := tx.deletionOpen(l.Subject()); deleting {
		return nil, out
	}
	return l, Outcome{}
}

// drawUID makes an id in the form of a UUID that nothing had before: from the group, the revision, and how many were
// drawn in this entry.
func (tx *txn) drawUID(subject string) string {
	r := tx.revision()
	tx.drawn++
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %d %s", tx.group().ID, r.Epoch, r.Index, tx.drawn, subject))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // version 8, RFC 9562 section 5.8
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
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

// SetBindingAddress gives a binding the address of its backend, or says why there is none yet. A driver that is asked for
// one changes nothing by that: no attempt is committed before, and whoever asks may ask in vain.
type SetBindingAddress struct {
	ID      BindingID `pb:"1"`
	Address string    `pb:"2"` // empty for none
	// UID is the binding's when it was asked about: under its id there may be another backend by now. Format 1 had none.
	UID     string `pb:"3"`
	Message string `pb:"4" max:"1024"` // why there is none
	Failed  bool   `pb:"5"`            // counts as a failure; otherwise the driver is at it
}

// Kind is KindSetBindingAddress.
func (*SetBindingAddress) Kind() Kind { return KindSetBindingAddress }

func (c *SetBindingAddress) apply(tx *txn) Outcome {
	subject := "binding " + string(c.ID)
	b, ok := find[*Binding](tx.rows, TableBindings, string(c.ID))
	if !ok {
		return refuse(RejectNotFound, subject, "", "")
	}
	if b.Address != "" || b.State > BindingAddressing || c.UID != b.UID && c.UID != "" || c.UID+c.Address == "" {
		return refuse(RejectWrongState, subject, b.State.String()+" "+b.Address+" "+b.UID, c.Address+" "+c.UID)
	}
	if out, open := tx.operationOpen(b.Subject()); open {
		return out
	}
	if c.Address == "" {
		tx.unaddressed(b, c)
		return tx.ok()
	}
	tx.address(b, c.Address)
	tx.endLine(b.Subject())
	return tx.ok()
}

// unaddressed keeps why a binding has no address yet.
func (tx *txn) unaddressed(b *Binding, c *SetBindingAddress) {
	if b.State == BindingPending {
		b = tx.moved(b, BindingAddressing, "")
	}
	next := *b
	if c.Failed {
		next.Attempts++
	}
	next.Reason = c.Message
	if b.Reason != c.Message {
		next.History = tx.step(b.History, ActionAddress.String()+": "+c.Message)
	}
	tx.put(&next)
}

// address moves a binding on once its address is known.
func (tx *txn) address(b *Binding, address string) {
	next := *b
	next.Address = address
	next.Generation = max(next.Generation, tx.generationOn(next.Subject())+1)
	tx.put(tx.moved(&next, BindingEnsuring, "address "+address))
}
