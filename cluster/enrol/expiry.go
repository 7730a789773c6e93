// SPDX-License-Identifier: Apache-2.0

package enrol

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/fsm"
)

// Expiry ends one-time tokens whose time is over. The leader waits it out on its own monotonic clock, all of it after
// it took over.
type Expiry struct {
	Record   fsm.Reader
	Proposer Proposer // that does not leave this member
	Member   string
	Log      *slog.Logger
}

// expiryRetry is the pause after something failed.
const expiryRetry = time.Second

// Run works until ctx ends, which is when the term does.
func (e *Expiry) Run(ctx context.Context) {
	ends := map[fsm.EnrolmentID]time.Time{}
	for ctx.Err() == nil {
		view, now := e.Record.Read(), time.Now()
		var over []fsm.EnrolmentID
		var next time.Time
		seen := map[fsm.EnrolmentID]time.Time{}
		for _, offered := range fsm.List[*fsm.Enrolment](view, fsm.TableEnrolments) {
			end, known := ends[offered.ID]
			if !known {
				end = now.Add(offered.TTL)
			}
			seen[offered.ID] = end
			if !now.Before(end) {
				over = append(over, offered.ID)
			} else if next.IsZero() || end.Before(next) {
				next = end
			}
		}
		ends = seen
		if len(over) > 0 && !e.end(ctx, over) {
			next = now.Add(expiryRetry)
		}
		e.wait(ctx, view, next)
	}
}

// end proposes the end of tokens, and tells whether it was taken.
func (e *Expiry) end(ctx context.Context, over []fsm.EnrolmentID) bool {
	for len(over) > 0 {
		batch := over[:min(len(over), cluster.MaxProposals)]
		over = over[len(batch):]
		proposals := make([]fsm.Proposal, len(batch))
		for i, id := range batch {
			proposals[i] = fsm.Proposal{
				Actor: "member/" + e.Member, Reason: "its time is over", AtUnixMilli: time.Now().UnixMilli(),
				Command: &fsm.DeleteEnrolment{ID: id},
			}
		}
		if _, err := e.Proposer.Propose(ctx, cluster.Bulk, proposals...); err != nil {
			if ctx.Err() == nil {
				e.Log.Warn("one-time tokens not ended", "err", err)
			}
			return false
		}
	}
	return true
}

// wait returns when tokens changed, or at a time; the zero time is never.
func (e *Expiry) wait(ctx context.Context, view *fsm.View, until time.Time) {
	if !until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, until)
		defer cancel()
	}
	if err := e.Record.Wait(ctx, view, fsm.TableEnrolments); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		e.Log.Error("tokens not watched", "err", err)
	}
}
