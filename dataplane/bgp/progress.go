// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"fmt"
	"time"
)

// change is how much was applied, and the revision of that.
type change struct {
	number   uint64
	revision Revision
}

// lookWritten asks whether what was applied has left.
func (a *Announcer) lookWritten(ctx context.Context, now time.Duration) {
	if !a.pending {
		return
	}
	ok, err := a.Speaker.Written(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		a.noteErr(err, now)
	case ok:
		a.pending = false
		a.written = a.applied.Revision
		a.metrics.written.Observe((now - a.appliedAt).Seconds())
	}
}

// slowReceipt is after what time it is worth telling that a receipt waits.
const slowReceipt = 10 * time.Second

// lookReceived asks for a receipt of what has been written, one at a time, and whether it has been given.
func (a *Announcer) lookReceived(ctx context.Context, now time.Duration) {
	if a.applied == nil || a.receipt == nil && (a.pending || a.received.number == a.changes) {
		return
	}
	links, err := a.Speaker.Links(ctx)
	if err != nil {
		if ctx.Err() == nil {
			a.noteErr(err, now)
		}
		return
	}
	if a.receipt == nil {
		a.written = a.applied.Revision
		a.receipt, a.asked, a.askedAt = askReceipt(links), change{a.changes, a.applied.Revision}, now
	}
	if a.receipt.given(links) {
		a.receipt, a.received = nil, a.asked
		return
	}
	if now-a.askedAt >= slowReceipt && a.slow != a.asked {
		a.slow = a.asked
		a.Logger.Warn("withdrawals wait for peers that may hold what was withdrawn", "peers", a.receipt.peers(),
			"remedy", "bring the sessions back, or wait until the peers drop the paths")
	}
}

// mendTurn is for how long the restart of a session is left to each speaker that goes before: one is back within two seconds. Longer
// turns would have withdrawals of the last one wait for all the others'.
const mendTurn = 3 * time.Second

// mend has the speaker do something for a receipt that waits.
func (a *Announcer) mend(ctx context.Context, now time.Duration) {
	if a.receipt == nil {
		return
	}
	if err := a.Speaker.Mend(ctx, time.Duration(a.Turn())*mendTurn); err != nil && ctx.Err() == nil {
		a.noteErr(err, now)
	}
}

// advance reports how far things got: what has left, what has arrived, and of both what is kept. A revision that
// changed nothing counts with the one before it.
func (a *Announcer) advance() {
	if a.applied == nil {
		return
	}
	kept, all, err := a.keeper.kept()
	if all {
		kept = a.applied.Revision
	}
	if err != nil {
		a.note(func(s *Status) { s.Err = fmt.Errorf("keep what was announced: %w", err) })
	}
	written := a.written
	if !a.pending {
		written = a.applied.Revision
	}
	if done := older(written, kept); done.Compare(a.announced) > 0 {
		a.announced = done
		a.note(func(s *Status) { s.Announced = done })
		a.Announced(done)
	}
	withdrawn := a.received.revision
	if a.changes > 0 && a.received.number == a.changes {
		withdrawn = a.applied.Revision
	}
	if done := older(withdrawn, kept); done.Compare(a.withdrawn) > 0 {
		a.withdrawn = done
		a.note(func(s *Status) { s.Withdrawn = done })
		a.Withdrawn(done)
	}
}

func older(a, b Revision) Revision {
	if a.Compare(b) < 0 {
		return a
	}
	return b
}
