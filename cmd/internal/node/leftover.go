// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"
)

// Pauses of takeTunnelBack.
const (
	// lookEvery is between two looks whether the group knows of this agent.
	lookEvery = 100 * time.Millisecond
	// retakePause is between attempts to remove what could not be removed.
	retakePause = time.Minute
)

// takeTunnelBack removes what an agent of this host left of tunnels that its configuration still had, until ctx ends; it returns ctx's error.
// The address may be another host's before long. First the group has heard that there is no tunnel, and others had the drain delay to do
// without it; while no member can be asked, they are led here.
func (p *Process) takeTunnelBack(ctx context.Context) error {
	for p.Status().Acknowledged.IsZero() {
		if !pause(ctx, lookEvery) {
			return ctx.Err()
		}
	}
	said := ""
	for wait := p.config.DrainDelay; pause(ctx, wait); wait = retakePause {
		err := p.edges.CleanTunnel(ctx, p.config)
		if err == nil {
			<-ctx.Done()
			break
		}
		if said != err.Error() && ctx.Err() == nil {
			said = err.Error()
			p.log.Warn("what an earlier configuration left of tunnels is not removed", "err", err)
		}
	}
	return ctx.Err()
}

// pause waits, and tells whether ctx still goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
