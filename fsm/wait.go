// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"context"
	"sync"
)

// waiters wakes those who wait for a change of some tables. It counts what was published, not log indexes: a
// restored record may be older than the one before it, and differs all the same.
type waiters struct {
	mu      sync.Mutex
	changed map[Table]uint64 // when a table last changed
	next    chan struct{}    // closed when anything changes
}

func newWaiters() *waiters {
	return &waiters{changed: map[Table]uint64{}, next: make(chan struct{})}
}

// publish has a view shown, and wakes those who wait for the tables that it touched. Whoever reads that view finds them told as changed: were it
// shown before, one could read it, ask whether anything changed, be told that nothing did, and overlook the change for ever.
func (w *waiters) publish(at uint64, touched map[Table]bool, show func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	show()
	if len(touched) == 0 {
		return
	}
	for t := range touched {
		w.changed[t] = at
	}
	close(w.next)
	w.next = make(chan struct{})
}

// since tells whether any of the tables changed after a publication; if not, what to wait on before asking again.
func (w *waiters) since(published uint64, tables []Table) (bool, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range tables {
		if w.changed[t] > published {
			return true, nil
		}
	}
	return false, w.next
}

// Wait returns once any of the tables differs from what v shows, or with ctx's error.
func (s *State) Wait(ctx context.Context, v *View, tables ...Table) error {
	at := v.published // who waits for long would hold what the record has no more
	for {
		changed, next := s.waiters.since(at, tables)
		if changed {
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Changed tells whether any of the tables differs from what v shows.
func (s *State) Changed(v *View, tables ...Table) bool {
	changed, _ := s.waiters.since(v.published, tables)
	return changed
}
