// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"context"
	"slices"
	"sync"
	"time"

	"fairlead.io/fairlead/fsm"
)

// asking is what members are asked, and how often.
type asking struct {
	mu    sync.Mutex
	about []fsm.NodeID
	every time.Duration
	// changed is closed when that is to be asked at once.
	changed chan struct{}
}

func (a *asking) get() (about []fsm.NodeID, every time.Duration, changed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.changed == nil {
		a.changed = make(chan struct{})
	}
	return a.about, a.every, a.changed
}

// set changes it; what is new is asked at once.
func (a *asking) set(about []fsm.NodeID, every time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	news := every < a.every || slices.ContainsFunc(about, func(id fsm.NodeID) bool { return !slices.Contains(a.about, id) })
	a.about, a.every = about, every
	if news && a.changed != nil {
		close(a.changed)
		a.changed = nil
	}
}

// ask has the members asked what a decision wants to know.
func (t *term) ask(d Decision) {
	every := t.o.Timing.Poll
	if d.Hurry {
		every = t.o.Timing.Hurry
	}
	t.wanted.set(d.About, every)
}

// poll sees to it that each voter is asked, and nobody else.
func (t *term) poll(voters []string) {
	for name, end := range t.pollers {
		if !slices.Contains(voters, name) {
			end()
			delete(t.pollers, name)
		}
	}
	for _, name := range voters {
		if t.pollers[name] == nil {
			ctx, end := context.WithCancel(t.ctx)
			t.pollers[name] = end
			t.running.Go(func() { t.follow(ctx, name) })
		}
	}
}

// follow asks one member until ctx ends, once at a time. It waits for an answer no longer than that would count.
func (t *term) follow(ctx context.Context, member string) {
	for ctx.Err() == nil {
		about, every, changed := t.wanted.get()
		next := t.o.Clock.After(every)
		call, cancel := context.WithTimeout(ctx, t.o.Timing.Contact)
		r, err := t.o.Group.Colleague(member).Silences(call, about)
		cancel()
		if at := t.o.Clock.Now(); err == nil {
			t.tell(func() { t.judge.Heard(at, member, r) })
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-next:
		}
	}
}
