// SPDX-License-Identifier: Apache-2.0

package writes

import "time"

// What we wrote may be overwritten: by hand, then it is written back at once, or by another controller that takes the
// object for its own. With that one nobody wins: after a few rewrites the pace slows down until people settle it.
const (
	// QuickRewrites are how many there are before the pace slows down.
	QuickRewrites = 3
	slowestPace   = time.Hour
	slowPace      = time.Minute
	forgetAfter   = 10 * time.Minute // without a rewrite
)

// Pace is how often what was written to one object was overwritten. Its zero value is of an object that nothing was written to.
type Pace struct {
	written  uint64 // digest of what was written last
	at       time.Time
	rewrites int
}

// Wait tells how long to put off writing something, and whether it was written before: then somebody overwrote it.
func (p *Pace) Wait(digest uint64, now time.Time) (d time.Duration, overwritten bool) {
	if digest != p.written {
		return 0, false
	}
	if now.Sub(p.at) > max(forgetAfter, 2*p.delay()) {
		p.rewrites = 0
	}
	return max(0, p.at.Add(p.delay()).Sub(now)), true
}

func (p *Pace) delay() time.Duration {
	if p.rewrites < QuickRewrites {
		return 0
	}
	return min(slowPace<<min(p.rewrites-QuickRewrites, 10), slowestPace)
}

// Wrote notes a write. It tells whether the pace slows down with it for the first time.
func (p *Pace) Wrote(digest uint64, now time.Time) (slowed bool) {
	if digest == p.written {
		p.rewrites++
	} else {
		p.rewrites = 0
	}
	p.written, p.at = digest, now
	return p.rewrites == QuickRewrites
}
