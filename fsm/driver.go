// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"net/url"
	"strings"
	"time"
)

// Driver is a program that looks after outside load balancers, with everything that is needed to call it when
// Kubernetes is gone. Credentials are not in the record: Secret names them.
type Driver struct {
	seal
	Name string `pb:"1" json:"name"` // "namespace/name"
	UID  string `pb:"2" json:"uid,omitempty"`
	// URL may have a user and a password in rows that former releases wrote: show it by WithoutUserinfo.
	URL string `pb:"3" json:"url"`
	// Timeouts are the whole budgets of its webhooks, in order of their names; what is missing has the default.
	Timeouts      []WebhookTimeout `pb:"4" json:"timeouts"`
	AcceptsDryRun bool             `pb:"5" json:"acceptsDryRun"`
	// Draining says that it takes no new objects; what it has goes on.
	Draining bool `pb:"6" json:"draining"`
	// Secret is the name of a Secret beside its object with what it is called with; empty for nothing.
	Secret string `pb:"7" json:"secret,omitempty"`
	// Concurrent is how many calls may be in flight at once, and Settle how long after its end a call of unknown
	// outcome may still take effect; zero for the defaults.
	Concurrent uint32        `pb:"8" json:"concurrent,omitempty"`
	Settle     time.Duration `pb:"9" json:"settle,omitempty"`
	History    Trail         `pb:"10" json:"history"`
}

// WebhookTimeout is the budget of one webhook.
type WebhookTimeout struct {
	Webhook string        `pb:"1" json:"webhook"`
	Timeout time.Duration `pb:"2" json:"timeout"`
}

// Table is TableDrivers.
func (*Driver) Table() Table { return TableDrivers }

// Key is the name.
func (d *Driver) Key() string { return d.Name }

// Timeout gives the budget of a webhook; false if it has none of its own.
func (d *Driver) Timeout(webhook string) (time.Duration, bool) {
	for _, t := range d.Timeouts {
		if t.Webhook == webhook {
			return t.Timeout, true
		}
	}
	return 0, false
}

// WithoutUserinfo is a URL without user and password, for whoever shows it or keeps it. What is no URL loses everything up to
// its last @, since nobody knows what that is.
func WithoutUserinfo(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw[strings.LastIndexByte(raw, '@')+1:]
	}
	if u.User == nil {
		return raw
	}
	scheme, rest, _ := strings.Cut(raw, "//")
	authority := len(rest)
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = i
	}
	return scheme + "//" + rest[strings.LastIndexByte(rest[:authority], '@')+1:]
}

// formatDrivers is the first format with drivers, and so with outside load balancers.
const formatDrivers = 2

// PutDriver adds a driver, or changes how it is called. History of the argument is ignored.
type PutDriver struct {
	Driver Driver `pb:"1"`
}

// Kind is KindPutDriver.
func (*PutDriver) Kind() Kind { return KindPutDriver }

func (c *PutDriver) apply(tx *txn) Outcome {
	subject := "driver " + c.Driver.Name
	if out, old := tx.formatBelow(formatDrivers, subject); old {
		return out
	}
	if c.Driver.Name == "" || c.Driver.URL == "" {
		return refuse(RejectInvalid, subject, "", "a name and a URL")
	}
	next, what := c.Driver, "added"
	next.seal, next.History = seal{}, nil
	if old, ok := find[*Driver](tx.rows, TableDrivers, next.Name); ok {
		next.History, what = old.History, "changed"
	}
	next.History = tx.step(next.History, what)
	tx.put(&next)
	return tx.ok()
}

// DeleteDriver removes a driver that looks after no load balancer any more.
type DeleteDriver struct {
	Name string `pb:"1"`
}

// Kind is KindDeleteDriver.
func (*DeleteDriver) Kind() Kind { return KindDeleteDriver }

func (c *DeleteDriver) apply(tx *txn) Outcome {
	subject := "driver " + c.Name
	d, ok := find[*Driver](tx.rows, TableDrivers, c.Name)
	if !ok {
		return refuse(RejectNotFound, subject, "", "")
	}
	if l, used := firstRef[*LoadBalancer](tx.rows, TableBalancers, refPrefix(refDriver, c.Name)); used {
		return refuse(RejectInUse, subject, "load balancer "+string(l.ID), "none")
	}
	if out, wait := tx.quarantined(subject); wait {
		return out
	}
	tx.bury(d, d.History, "gone")
	return tx.ok()
}
