// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"context"
	"time"
)

// How repairs are paced. Each comes after a pause in which further changes are waited for. Once there were some without
// any quiet between them, somebody else insists on his view: each takes twice as long then as the one before.
const (
	repairPause    = 20 * time.Millisecond
	repairPauseMax = 30 * time.Second
	repairQuiet    = 10 * time.Second
	repairBurst    = 20
	// retryLeast is between repairs while the kernel refuses.
	retryLeast = time.Second
)

// retryPause is how long to wait after a repair that was refused: to try does not take more than a tenth of the time.
func retryPause(took time.Duration) time.Duration {
	return min(max(retryLeast, 10*took), repairPauseMax)
}

// pace tells how long to wait before the next repair.
type pace struct {
	last  time.Time
	pause time.Duration
	soon  int // repairs since there was quiet
}

func (p *pace) next(now time.Time) time.Duration {
	if now.Sub(p.last) > repairQuiet+p.pause {
		*p = pace{}
	}
	p.last = now
	if p.soon++; p.soon <= repairBurst {
		p.pause = repairPause
	} else {
		p.pause = min(p.pause*2, repairPauseMax)
	}
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
