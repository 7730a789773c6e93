// SPDX-License-Identifier: Apache-2.0

package fsm

// LoadBalancer is an outside load balancer that a driver looks after.
type LoadBalancer struct {
	seal
	ID         BalancerID `pb:"1" json:"id"`
	Driver     string     `pb:"2" json:"driver"`
	Info       []KV       `pb:"3" json:"info"` // canonical lbInfo
	Attributes []KV       `pb:"4" json:"attributes"`
	// Ensured tells that the driver confirmed it with the present attributes.
	Ensured bool  `pb:"5" json:"ensured"`
	History Trail `pb:"6" json:"history"`
	// Generation rises with every change; a success for an older one ensures nothing.
	Generation uint64 `pb:"7" json:"generation"`
}

// Table is TableBalancers.
func (*LoadBalancer) Table() Table { return TableBalancers }

// Key is the canonical identity.
func (l *LoadBalancer) Key() string { return string(l.ID) }

// Subject is what calls about the balancer itself are in flight for.
func (l *LoadBalancer) Subject() Subject { return Subject("balancer " + string(l.ID)) }

// PutLoadBalancer adds a balancer, or changes what is asked of it.
type PutLoadBalancer struct {
	ID         BalancerID `pb:"1"`
	Driver     string     `pb:"2"`
	Info       []KV       `pb:"3"`
	Attributes []KV       `pb:"4"`
}

// Kind is KindPutLoadBalancer.
func (*PutLoadBalancer) Kind() Kind { return KindPutLoadBalancer }

func (c *PutLoadBalancer) apply(tx *txn) Outcome {
	if c.ID == "" || c.Driver == "" {
		return refuse(RejectInvalid, "load balancer "+string(c.ID), "", "an identity and a driver")
	}
	next := &LoadBalancer{ID: c.ID, Driver: c.Driver, Info: c.Info, Attributes: c.Attributes, Generation: 1}
	what := "added"
	if old, ok := find[*LoadBalancer](tx.rows, TableBalancers, string(c.ID)); ok {
		next.History, next.Generation, what = old.History, old.Generation+1, "changed"
	}
	next.History = tx.step(next.History, what)
	tx.put(next)
	return tx.ok()
}

// DeleteLoadBalancer removes a balancer without bindings; deregistration comes first (DESIGN §11).
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
	if b, used := firstRef[*Binding](tx.rows, TableBindings, refPrefix(refBalancer, string(c.ID))); used {
		return refuse(RejectInUse, subject, "binding "+string(b.ID), "none")
	}
	if out, open := tx.operationOpen(l.Subject()); open {
		return out
	}
	if out, wait := tx.quarantined(subject); wait {
		return out
	}
	tx.bury(l, l.History, "gone")
	return tx.ok()
}
