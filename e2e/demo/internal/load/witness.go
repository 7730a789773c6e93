// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"sync"
	"time"
)

// A witness looks at the clock this often, and being late by less than that much is usual on a busy machine.
const (
	glance = 5 * time.Millisecond
	usual  = 25 * time.Millisecond
)

// pause is a while in which this machine did not run the witness, and so perhaps neither clients nor what they asked:
// clocks go on while a machine stands still.
type pause struct{ from, to time.Time }

// witness tells when this machine stood still.
type witness struct {
	mu     sync.Mutex
	due    time.Time // when it means to look next
	pauses []pause   // in order; they do not overlap
}

func newWitness(now time.Time) *witness { return &witness{due: now.Add(glance)} }

// watch looks at the clock until ctx ends.
func (w *witness) watch(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-timer.C:
			w.look(time.Now())
			timer.Reset(glance)
		}
	}
}

// look notes a pause if it is later than it should be.
func (w *witness) look(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.due) >= usual {
		w.pauses = append(w.pauses, pause{from: w.due, to: now})
	}
	w.due = now.Add(glance)
}

// paused is how much of the time from a moment until now the machine stood still.
func (w *witness) paused(from, now time.Time) time.Duration {
	w.look(now) // the one who asks may be the first to run again
	w.mu.Lock()
	defer w.mu.Unlock()
	var sum time.Duration
	for i := len(w.pauses) - 1; i >= 0 && w.pauses[i].to.After(from); i-- {
		one := w.pauses[i]
		if one.from.Before(from) {
			one.from = from
		}
		sum += one.to.Sub(one.from)
	}
	return sum
}
