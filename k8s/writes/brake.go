// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Brake holds all writes back while the API server fails, so that thousands of them do not each find out alone. Its
// zero value is off.
type Brake struct {
	pulled int
	until  time.Time
}

// Pull notes a failure; it tells whether it is the first. One that concerns a single object holds nobody else back.
func (b *Brake) Pull(kind string, err error, now time.Time) (first bool) {
	if kind == Invalid {
		return true
	}
	if now.Before(b.until) {
		return false // one more that had begun before
	}
	d := Backoff(b.pulled + 1)
	if seconds, told := apierrors.SuggestsClientDelay(err); told {
		d = max(d, time.Duration(seconds)*time.Second)
	}
	b.pulled++
	b.until = now.Add(d)
	return b.pulled == 1
}

// Release notes a success; it tells whether there were failures before it.
func (b *Brake) Release() (before bool) {
	before = b.pulled > 0
	*b = Brake{}
	return before
}

// Wait is how long writes are held back.
func (b *Brake) Wait(now time.Time) time.Duration { return max(0, b.until.Sub(now)) }

// Concurrent is how many writes may be under way: one to try, after a failure.
func (b *Brake) Concurrent(most int) int {
	if b.pulled > 0 {
		return 1
	}
	return most
}
