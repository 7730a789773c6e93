// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"sync"
	"time"
)

const (
	// Who is refused tries again several times a second; one line in this time is enough to be seen.
	repeatAfter = 10 * time.Second
	// Bounds what strangers can make us remember.
	maxRemembered = 1024
)

// Repeats keeps log lines about the same thing apart by ten seconds.
type Repeats struct {
	now  func() time.Time
	mu   sync.Mutex
	seen map[string]*repeated
}

type repeated struct {
	logged     time.Time
	suppressed int
}

// NewRepeats begins with nothing said; now may be nil.
func NewRepeats(now func() time.Time) *Repeats {
	return &Repeats{now: clock(now), seen: map[string]*repeated{}}
}

// Due tells whether it is time for a line about what, and how many were left out since the last one.
func (r *Repeats) Due(what string) (suppressed int, due bool) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.seen[what]
	if known && now.Sub(last.logged) < repeatAfter {
		last.suppressed++
		return 0, false
	}
	if !known {
		r.forget(now)
		last = &repeated{}
		r.seen[what] = last
	}
	suppressed, last.suppressed, last.logged = last.suppressed, 0, now
	return suppressed, true
}

// forget makes room once too much is remembered: first what is old, and if nothing is, everything.
func (r *Repeats) forget(now time.Time) {
	if len(r.seen) < maxRemembered {
		return
	}
	for what, entry := range r.seen {
		if now.Sub(entry.logged) >= repeatAfter {
			delete(r.seen, what)
		}
	}
	if len(r.seen) >= maxRemembered {
		clear(r.seen)
	}
}
