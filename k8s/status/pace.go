// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"hash/fnv"
	"time"
)

// What we wrote may be overwritten: by hand, then it is written back at once, or by another controller that takes the
// Service for its own. With that one nobody wins: after a few rewrites the pace slows down until people settle it.
const (
	quickRewrites = 3
	slowestPace   = time.Hour
	slowPace      = time.Minute
	forgetAfter   = 10 * time.Minute // without a rewrite
)

// pace is how often one Service's status was overwritten.
type pace struct {
	written  uint64 // digest of what was written last
	at       time.Time
	rewrites int
}

// wait tells how long to put off writing something, and whether it was written before: then somebody overwrote it.
func (p *pace) wait(digest uint64, now time.Time) (d time.Duration, overwritten bool) {
	if digest != p.written {
		return 0, false
	}
	if now.Sub(p.at) > max(forgetAfter, 2*p.delay()) {
		p.rewrites = 0
	}
	return max(0, p.at.Add(p.delay()).Sub(now)), true
}

func (p *pace) delay() time.Duration {
	if p.rewrites < quickRewrites {
		return 0
	}
	return min(slowPace<<min(p.rewrites-quickRewrites, 10), slowestPace)
}

// wrote notes a write. It tells whether the pace slows down with it for the first time.
func (p *pace) wrote(digest uint64, now time.Time) (slowed bool) {
	if digest == p.written {
		p.rewrites++
	} else {
		p.rewrites = 0
	}
	p.written, p.at = digest, now
	return p.rewrites == quickRewrites
}

// digest is of what people see of a write: not of when.
func (w *Write) digest() uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d", w.Finalizer)
	for _, in := range w.Ingress {
		_, _ = fmt.Fprintf(h, "%q", in.IP)
		for _, p := range in.Ports {
			_, _ = fmt.Fprintf(h, "%d%s", p.Port, p.Protocol)
			if p.Error != nil {
				_, _ = fmt.Fprintf(h, "%q", *p.Error)
			}
		}
	}
	for _, c := range w.Conditions {
		_, _ = fmt.Fprintf(h, "%q%q%q%q", c.Type, c.Status, c.Reason, c.Message)
	}
	return h.Sum64()
}
