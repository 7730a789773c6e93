// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"time"
)

// BalancerState is where an outside load balancer stands.
type BalancerState uint8

// The life of a load balancer; its end is the removal of the record.
const (
	BalancerCreating BalancerState = iota // the driver is to create it, or to say what it is
	BalancerReady                         // it has an identity, and can have backends
	BalancerDeleting                      // unwanted: its backends go first, then the driver is to delete it
)

var balancerStateNames = [...]string{"creating", "ready", "deleting"}

// String is the name that tables and JSON show.
func (s BalancerState) String() string {
	if int(s) < len(balancerStateNames) {
		return balancerStateNames[s]
	}
	return "unknown"
}

// MarshalText makes JSON show the name.
func (s BalancerState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// EnsurePolicy says whether the driver is asked again and again although it confirmed.
type EnsurePolicy struct {
	// Policy is as its object has it: "Always" asks again; anything else, and nothing, does not.
	Policy string `pb:"1" json:"policy,omitempty"`
	// Period is as its object has it; zero for the default.
	Period time.Duration `pb:"2" json:"period,omitempty"`
}

// DefaultEnsurePeriod is the time between two calls of a policy that does not say it.
const DefaultEnsurePeriod = time.Minute

// Every is how often to ask again; zero for never.
func (p EnsurePolicy) Every() time.Duration {
	switch {
	case p.Policy != "Always":
		return 0
	case p.Period > 0:
		return p.Period
	}
	return DefaultEnsurePeriod
}

// LoadBalancer is one object that means an outside load balancer: a LoadBalancer, or an entry of a Bind. Two of them
// may mean the same one; then they have the same Identity.
type LoadBalancer struct {
	seal
	ID     BalancerID `pb:"1" json:"id"`
	Driver string     `pb:"2" json:"driver"` // "namespace/name"
	// Info is lbInfo, what the driver knows it by; empty until it is created.
	Info       []KV `pb:"3" json:"info"`
	Attributes []KV `pb:"4" json:"attributes"`
	// Ensured tells that the driver confirmed it with the present attributes.
	Ensured bool  `pb:"5" json:"ensured"`
	History Trail `pb:"6" json:"history"`
	// Generation rises with every change; a success for an older one ensures nothing.
	Generation uint64        `pb:"7" json:"generation"`
	State      BalancerState `pb:"8" json:"state"`
	// Identity is driver and Info in one canonical form, empty until it is created.
	Identity Identity `pb:"9" json:"identity,omitempty"`
	Spec     []KV     `pb:"10" json:"spec"` // lbSpec: what its author wants
	// UID is that of the object, with the entry's name after it in a Bind. The driver knows its calls by it.
	UID    string       `pb:"11" json:"uid,omitempty"`
	Ensure EnsurePolicy `pb:"12" json:"ensure"`
	// Asked is set before the first call goes out: from then on only a confirmation or an operator ends it.
	Asked    bool   `pb:"13" json:"asked"`
	Attempts uint32 `pb:"14" json:"attempts"` // that failed in a row
	Reason   string `pb:"15" json:"reason,omitempty"`
	Message  string `pb:"16" json:"message,omitempty"` // of the driver, with its last success
	// Synced are the attributes that the driver confirmed last.
	Synced []KV `pb:"17" json:"synced"`
}

// Table is TableBalancers.
func (*LoadBalancer) Table() Table { return TableBalancers }

// Key is the object's id.
func (l *LoadBalancer) Key() string { return string(l.ID) }

// What subjects of load balancers begin with, before and after an identity exists.
const (
	objectSubject   = "object "
	balancerSubject = "balancer "
)

// Subject is what calls about the load balancer itself are in flight for: its identity, so that objects which mean one
// balancer are one line of operations; before an identity exists, the object.
func (l *LoadBalancer) Subject() Subject {
	if l.Identity == "" {
		return Subject(objectSubject + string(l.ID))
	}
	return Subject(balancerSubject + string(l.Identity))
}

// stepCreated is in the history of a load balancer that its driver created.
const stepCreated = "created"

// Created tells whether the driver created it for this object, as far as its history goes back; false for one that was taken over.
func (l *LoadBalancer) Created() bool {
	return slices.ContainsFunc(l.History, func(t Transition) bool { return t.What == stepCreated })
}

// Failing tells whether the last call about it failed.
func (l *LoadBalancer) Failing() bool { return l.Attempts > 0 }

// maxIdentity is how long an identity may be in words.
const maxIdentity = 160

// IdentityOf is driver and lbInfo in one form: "driver?key=value&...", or a hash where that would be long.
func IdentityOf(driver string, info []KV) Identity {
	var words strings.Builder
	sorted := slices.SortedStableFunc(slices.Values(info), func(a, b KV) int { return strings.Compare(a.Key, b.Key) })
	for i, kv := range sorted {
		if i > 0 {
			words.WriteByte('&')
		}
		words.WriteString(url.QueryEscape(kv.Key) + "=" + url.QueryEscape(kv.Value))
	}
	text := words.String()
	if len(text) > maxIdentity {
		sum := sha256.Sum256([]byte(text))
		text = "sha256:" + hex.EncodeToString(sum[:])
	}
	return Identity(driver + "?" + text)
}

// turned is a copy of l in another state, with a step in its history.
func (tx *txn) turned(l *LoadBalancer, s BalancerState, why string) *LoadBalancer {
	next := *l
	next.State, next.Attempts, next.Reason = s, 0, ""
	next.History = tx.step(l.History, why)
	return &next
}

// PutLoadBalancer wants an outside load balancer, or changes what is asked of it. Driver and Spec of one that exists do
// not change; Info and Synced count only when it is added.
type PutLoadBalancer struct {
	ID         BalancerID   `pb:"1"`
	Driver     string       `pb:"2"`
	Info       []KV         `pb:"3"` // of one whose identity is known: nothing is to be created then
	Attributes []KV         `pb:"4"`
	Spec       []KV         `pb:"5"`
	UID        string       `pb:"6"`
	Ensure     EnsurePolicy `pb:"7"`
	// Synced says that somebody else had these attributes confirmed (takeover).
	Synced bool `pb:"8"`
}

// Kind is KindPutLoadBalancer.
func (*PutLoadBalancer) Kind() Kind { return KindPutLoadBalancer }

func (c *PutLoadBalancer) apply(tx *txn) Outcome {
	subject := "load balancer " + string(c.ID)
	if out, old := tx.formatBelow(formatDrivers, subject); old {
		return out
	}
	if c.ID == "" || c.Driver == "" {
		return refuse(RejectInvalid, subject, "", "an identity and a driver")
	}
	old, ok := find[*LoadBalancer](tx.rows, TableBalancers, string(c.ID))
	if !ok {
		return c.add(tx)
	}
	if old.Driver != c.Driver || !equalKVs(old.Spec, c.Spec) {
		return refuse(RejectWrongState, subject, old.Driver, c.Driver) // another balancer is another object
	}
	if old.State == BalancerDeleting {
		return refuse(RejectWrongState, subject, old.State.String(), BalancerReady.String())
	}
	same := equalKVs(old.Attributes, c.Attributes)
	if same && old.Ensure == c.Ensure && old.UID == c.UID {
		return tx.ok()
	}
	next := *old
	next.Attributes, next.Ensure, next.UID = c.Attributes, c.Ensure, c.UID
	if !same {
		next.Generation++
		next.Ensured = false
	}
	tx.put(tx.turned(&next, old.State, "changed"))
	return tx.ok()
}

func (c *PutLoadBalancer) add(tx *txn) Outcome {
	l := &LoadBalancer{
		ID: c.ID, Driver: c.Driver, Info: c.Info, Attributes: c.Attributes, Spec: c.Spec, UID: c.UID, Ensure: c.Ensure,
	}
	if len(c.Info) == 0 {
		if out, open := tx.operationOpen(l.Subject()); open {
			return out // it would end as this one's, and is that of another one of its name, which was forgotten
		}
		l.Generation = tx.generationOn(l.Subject()) + 1
		tx.put(tx.turned(l, BalancerCreating, "added"))
		return tx.ok()
	}
	l.Identity, l.Asked = IdentityOf(c.Driver, c.Info), true
	if out, deleting := tx.deletionOpen(l.Subject()); deleting {
		return out
	}
	if out, deleting := tx.twinBusy(l, ActionDeleteBalancer); deleting {
		return out // by its Spec, which may mean this one
	}
	if c.Synced {
		l.Ensured, l.Synced = tx.quiet(l.Subject()), c.Attributes
	}
	l.Generation = tx.generationOn(l.Subject()) + 1
	tx.put(tx.turned(l, BalancerReady, "taken over"))
	return tx.ok()
}

// deletionOpen refuses what would begin to use a balancer while a call is under way that deletes it.
func (tx *txn) deletionOpen(s Subject) (Outcome, bool) {
	if op, known := find[*Operation](tx.rows, TableOperations, string(s)); known && op.Open && op.Action == ActionDeleteBalancer {
		return op.refuse(), true
	}
	return Outcome{}, false
}

// quiet tells that no call of a line is under way, or may still take effect.
func (tx *txn) quiet(s Subject) bool {
	op, known := find[*Operation](tx.rows, TableOperations, string(s))
	return !known || !op.Open && op.Unsettled.IsZero()
}
