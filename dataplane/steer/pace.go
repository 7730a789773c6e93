// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"context"
	"time"
)

// How repairs are paced: the first comes after the pause in which further changes are waited for; each soon after
// another takes twice as long, until there was quiet.
const (
	repairPause    = 20 * time.Millisecond
	repairPauseMax = 30 * time.Second
	repairQuiet    = 10 * time.Second
)

// pace tells how long to wait before the next repair.
type pace struct {
	min, max, quiet time.Duration
	last            time.Time
	pause           time.Duration
}

func (p *pace) next(now time.Time) time.Duration {
	if now.Sub(p.last) > p.quiet+p.pause {
		p.pause = 0
	}
	p.pause = min(max(p.pause*2, p.min), p.max)
	p.last = now
	return p.pause
}

// sleep waits, and tells whether ctx still runs.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
