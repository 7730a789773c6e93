// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/fsm"
)

// maxFailed is how many addresses of a state may fail while the others count as carried out; members take no more.
const maxFailed = 1024

// ack is what was carried out.
type ack struct {
	revision fsm.Revision
	failed   []Failure
}

// apply keeps and carries out the newest state that was told, and tries again what failed. kept is what the
// store holds.
func (a *Agent) apply(ctx context.Context, kept desired.State) {
	retry := a.o.Tuning.backoff()
	want, ok := wait(ctx, a.told, nil)
	again := false
	var began time.Time
	for ok {
		if left := a.o.Tuning.Between - time.Since(began); left > 0 {
			if !sleep(ctx, left) {
				return
			}
			select {
			case want = <-a.told.c:
				again = false
			default:
			}
		}
		began = time.Now()
		if a.keep(want, &kept) && a.carryOut(ctx, want, again) {
			retry.reset()
			again = false
			want, ok = wait(ctx, a.told, nil)
			continue
		}
		newer, overtaken := wait(ctx, a.told, retry)
		if overtaken {
			retry.reset()
			want = newer
		}
		again, ok = !overtaken, ctx.Err() == nil
	}
}

// wait takes the next value from a mailbox. With a backoff it waits no longer than that; ok is then false, as
// when ctx ends.
func wait[T any](ctx context.Context, m mailbox[T], retry *backoff) (value T, ok bool) {
	var late <-chan time.Time
	if retry != nil {
		timer := time.NewTimer(retry.pause())
		defer timer.Stop()
		late = timer.C
	}
	select {
	case value = <-m.c:
		return value, true
	case <-late:
	case <-ctx.Done():
	}
	return value, false
}

// keep saves a state. What could not be kept is not carried out: after a restart the node would run back (S13).
func (a *Agent) keep(want desired.State, kept *desired.State) bool {
	if want.Revision == kept.Revision && want.Digest == kept.Digest {
		return true
	}
	data, err := want.Marshal()
	if err == nil {
		err = a.o.Store.Save(data)
	}
	if err != nil {
		a.metrics.failed("store")
		a.log.Error("state not kept, so not carried out", "revision", want.Revision.String(), "err", err)
		return false
	}
	*kept = want
	return true
}

// carryOut has a state carried out and acknowledged; when that is tried again, only if other addresses failed.
// It tells whether nothing is left to do.
func (a *Agent) carryOut(ctx context.Context, want desired.State, again bool) bool {
	begin := time.Now()
	a.mu.Lock()
	a.wanted = want
	a.mu.Unlock()
	failed, err := a.o.Applier.Apply(ctx, want)
	if err == nil && len(failed) > maxFailed {
		err = fmt.Errorf("%d addresses failed, the first is %s: %s", len(failed), failed[0].Prefix, failed[0].Why)
	}
	if err != nil {
		if ctx.Err() == nil {
			a.metrics.failed("apply")
			a.log.Error("state not carried out", "revision", want.Revision.String(), "err", err)
		}
		return false
	}
	before := a.Status()
	a.metrics.applied(time.Since(begin), want.AddressCount(), len(failed))
	if !before.Behind.IsZero() {
		a.metrics.lag.Observe(time.Since(before.Behind).Seconds())
	}
	a.note(func(s *Status) {
		s.Applied, s.Failed, s.Behind, s.Synced = want.Revision, failed, time.Time{}, time.Now()
		if s.Told != s.Applied {
			s.Behind = s.Synced
		}
	})
	if !again || before.Applied != want.Revision || !slices.Equal(before.Failed, failed) {
		a.done.put(ack{want.Revision, failed})
	}
	return len(failed) == 0
}

// acknowledge tells the member that is followed what was carried out, until it or a newer one is committed.
// Every step of a member leads to an acknowledgement, also when it changed nothing: the member asks for it.
func (a *Agent) acknowledge(ctx context.Context) {
	retry := a.o.Tuning.backoff()
	next, ok := wait(ctx, a.done, nil)
	for ok {
		err := a.tell(ctx, next)
		if err == nil {
			retry.reset()
			next, ok = wait(ctx, a.done, nil)
			continue
		}
		if ctx.Err() != nil {
			return
		}
		if !errors.Is(err, errNobody) {
			a.metrics.failed("acknowledge")
			a.log.Warn("acknowledgement not taken", "revision", next.revision.String(), "err", err)
		}
		if newer, overtaken := wait(ctx, a.done, retry); overtaken {
			retry.reset()
			next = newer
		}
		ok = ctx.Err() == nil
	}
}

// tell makes one acknowledgement, to the member that is followed and for as long as it is.
func (a *Agent) tell(ctx context.Context, done ack) error {
	to := a.following()
	if to == nil {
		return errNobody
	}
	req := &fairleadv1.AcknowledgeRequest{Node: a.o.Node, Boot: a.o.Boot, Revision: desired.RevisionMessage(done.revision)}
	for _, f := range done.failed {
		req.Failed = append(req.Failed, &fairleadv1.FailedAddress{Address: f.Prefix.String(), Why: f.Why})
	}
	ctx, cancel := context.WithTimeout(ctx, a.o.Tuning.FirstStep)
	defer cancel()
	defer context.AfterFunc(to.ctx, cancel)()
	if _, err := to.conn().Acknowledge(ctx, req); err != nil {
		return err
	}
	a.note(func(s *Status) { s.Acknowledged = done.revision })
	return nil
}
