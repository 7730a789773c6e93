// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"errors"
	"fmt"
)

// ErrHeld says that a peer may still hold paths of a speaker that leaves.
var ErrHeld = errors.New("peers may hold paths until the time for which they keep those of a lost session is over")

// Leave withdraws every path, and returns once no peer holds one: what a speaker owes that announces for the last time.
// It is called after Run has returned. The speaker is left with its peers: its owner drains it.
//
// Errors: ErrHeld, also for peers that only an earlier run announced to; the speaker's own; all with ctx's when that
// ended first.
func (a *Announcer) Leave(ctx context.Context) error {
	if a.applied == nil {
		return fmt.Errorf("leave: nothing was announced in this run: %w", ErrHeld)
	}
	if err := a.Speaker.Apply(ctx, Desired{Peers: a.applied.Peers, Demoted: a.demoted}); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	var asked *receipt
	for look := firstLook; ; look = min(2*look, lookEvery) {
		given, err := a.leaving(ctx, &asked)
		if err != nil {
			return fmt.Errorf("leave: %w", err)
		}
		if given {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("leave: %w: %w", ErrHeld, ctx.Err())
		case <-a.Clock.After(look):
		}
	}
}

// leaving asks for a receipt once everything has been written, and tells whether it has been given.
func (a *Announcer) leaving(ctx context.Context, asked **receipt) (given bool, err error) {
	if *asked == nil {
		if written, err := a.Speaker.Written(ctx); err != nil || !written {
			return false, err
		}
	}
	links, err := a.Speaker.Links(ctx)
	if err != nil {
		return false, err
	}
	if *asked == nil {
		*asked = askReceipt(links)
	}
	if given = (*asked).given(links); given {
		return true, nil
	}
	return false, a.Speaker.Mend(ctx, 0)
}
