// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"fairlead.io/fairlead/cluster/pki"
)

// Budget is what one certificate, by role and name, may ask of one member. It bounds who has a certificate and floods, and is far from what
// agents, people and their scripts do.
type Budget struct {
	// Changes are calls a second that may come into the log, ChangesAtOnce how many there may be at once after a pause. A stream that may
	// have its agent registered anew counts as streamChanges, and each KiB of a message as one more.
	Changes       rate.Limit
	ChangesAtOnce int
	// Messages are those a second that come on its streams, all together, and MessagesAtOnce those after a pause.
	Messages       rate.Limit
	MessagesAtOnce int
	// Calls are those under way at once, streams among them.
	Calls int
}

// budgets is the one place that says what each role may ask. Members are not in it: they vote, and hand on what others ask, which counts as
// theirs. Nor is who has no certificate: what he may do is bounded where he may do it (cluster/enrol).
func budgets() map[pki.Role]Budget {
	agent := Budget{Changes: 200, ChangesAtOnce: 1000, Messages: 200, MessagesAtOnce: 1000, Calls: 64}
	person := Budget{Changes: 200, ChangesAtOnce: 5000, Messages: 2000, MessagesAtOnce: 10_000, Calls: 256}
	return map[pki.Role]Budget{pki.Agent: agent, pki.Host: agent, pki.Operator: person, pki.Viewer: person}
}

const (
	// streamChanges is what a stream counts that may have its agent registered anew, which goes before all that can wait.
	streamChanges = 10
	// budgetPatience is how long a call waits for its turn rather than being refused.
	budgetPatience = 2 * time.Second
	// forgetCallers is how long somebody is remembered who asks for nothing; his budget is whole again by then.
	forgetCallers = time.Minute
)

// budgeted is whose budget it is.
type budgeted struct {
	role pki.Role
	name string
}

// callers keep count of what each caller asks for.
type callers struct {
	budgets map[pki.Role]Budget
	now     func() time.Time

	mu    sync.Mutex
	known map[budgeted]*usage
	swept time.Time
}

// usage is what one caller has of his budget.
type usage struct {
	budget            Budget
	changes, messages *rate.Limiter

	// Below is under callers.mu.
	calls int
	of    map[string]int // calls under way, by procedure
	seen  time.Time
}

func newCallers(now func() time.Time) *callers {
	return &callers{budgets: budgets(), now: now, known: map[budgeted]*usage{}}
}

// usage finds what a caller uses, nil for one without a budget.
func (c *callers) usage(caller Caller) *usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.usageLocked(caller)
}

func (c *callers) usageLocked(caller Caller) *usage {
	b, limited := c.budgets[caller.Identity.Role]
	if !limited {
		return nil
	}
	now := c.now()
	c.sweep(now)
	key := budgeted{caller.Identity.Role, caller.Identity.Name}
	u := c.known[key]
	if u == nil {
		u = &usage{
			budget: b, changes: rate.NewLimiter(b.Changes, b.ChangesAtOnce), messages: rate.NewLimiter(b.Messages, b.MessagesAtOnce), of: map[string]int{},
		}
		c.known[key] = u
	}
	u.seen = now
	return u
}

// sweep forgets those who ask for nothing.
func (c *callers) sweep(now time.Time) {
	if now.Sub(c.swept) < forgetCallers {
		return
	}
	c.swept = now
	for key, u := range c.known {
		if u.calls == 0 && now.Sub(u.seen) >= forgetCallers {
			delete(c.known, key)
		}
	}
}

// enter counts a call as under way until leave is called, or refuses it.
func (c *callers) enter(caller Caller, procedure string, rule access) (leave func(), refusal *Refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.usageLocked(caller)
	switch {
	case u == nil:
		return func() {}, nil
	case u.calls >= u.budget.Calls:
		return nil, overBudget(caller, procedure, fmt.Sprintf("%d of its calls and streams are under way on this member already", u.calls))
	case rule.atOnce > 0 && u.of[procedure] >= rule.atOnce:
		return nil, overBudget(caller, procedure, fmt.Sprintf("%d such calls of it are under way on this member already", u.of[procedure]))
	}
	u.calls++
	u.of[procedure]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		u.calls--
		if u.of[procedure]--; u.of[procedure] == 0 {
			delete(u.of, procedure)
		}
		u.seen = c.now()
	}, nil
}

// change waits until a caller may make a change that counts so much, or refuses it.
func (c *callers) change(ctx context.Context, caller Caller, procedure string, n int) error {
	u := c.usage(caller)
	if u == nil || n == 0 {
		return nil
	}
	return c.wait(ctx, u.changes, n, overBudget(caller, procedure, fmt.Sprintf("it makes more than %v changes a second", u.budget.Changes)))
}

// message waits until a caller's next message may be taken in, or refuses it.
func (c *callers) message(ctx context.Context, caller Caller, procedure string) error {
	u := c.usage(caller)
	if u == nil {
		return nil
	}
	return c.wait(ctx, u.messages, 1, overBudget(caller, procedure, fmt.Sprintf("more than %v messages a second come on its streams", u.budget.Messages)))
}

func (c *callers) wait(ctx context.Context, l *rate.Limiter, n int, refusal *Refusal) error {
	now := c.now()
	turn := l.ReserveN(now, min(n, l.Burst()))
	delay := turn.DelayFrom(now)
	if delay == 0 {
		return nil
	}
	if delay > budgetPatience {
		turn.CancelAt(now)
		return refusal
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func overBudget(caller Caller, procedure, why string) *Refusal {
	return &Refusal{
		Code: Busy, What: "call " + procedure + " as " + caller.Actor(), Why: why,
		Remedy: "ask for less at a time; if nobody does, somebody else has this certificate: revoke it (`fairlead pki revoke`)",
	}
}

// visit is one request, from before its first byte is read.
type visit struct{ leave func() }

type visitKey struct{}

// counted has a request leave whatever it entered.
func counted(ctx context.Context) (context.Context, func()) {
	v := &visit{leave: func() {}}
	return context.WithValue(ctx, visitKey{}, v), func() { v.leave() }
}
