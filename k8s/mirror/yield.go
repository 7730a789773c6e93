// SPDX-License-Identifier: Apache-2.0

package mirror

import "time"

// How the mirror makes way: how often it asks whether it still has to, and how much more rarely it looks at the record.
const (
	yieldAgain   = 50 * time.Millisecond
	yieldSpacing = 10
)

// yields tells whether BackendRecords and Events wait for what Config.Yield speaks of: writing them costs the machines
// about as much as all the rest. They do not wait again before all of them are written.
func (r *run) yields(now time.Time) bool {
	if r.c.Yield == nil || !r.c.Yield() {
		return false
	}
	if r.yielded.IsZero() {
		r.yielded = now
	}
	return now.Sub(r.yielded) < r.c.Timing.Yield
}

// spacing is the least time between two looks at the record.
func (r *run) spacing() time.Duration {
	if r.yielding {
		return yieldSpacing * r.c.Timing.Spacing
	}
	return r.c.Timing.Spacing
}
