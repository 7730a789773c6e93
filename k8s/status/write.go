// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"fairlead.io/fairlead/fsm"
)

// Bounds of writes.
const (
	callTimeout = 15 * time.Second
	firstRetry  = 100 * time.Millisecond
	lastRetry   = 30 * time.Second
)

// result is how a write ended.
type result struct {
	write Write
	seen  *Seen
	err   error
}

// dispatch starts the writes that are due, as many at once as may be.
func (r *run) dispatch(ctx context.Context, now time.Time) {
	if r.view == nil {
		return
	}
	for r.inFlight < r.brake.concurrent(r.c.Timing.Concurrent) && r.brake.wait(now) == 0 {
		id, due := r.writes.next(now)
		if !due {
			return
		}
		if w := r.work[id]; w != nil {
			r.look(ctx, id, w, now)
		}
	}
}

// look decides on one Service, by what is known just now, and starts a write if one is needed.
func (r *run) look(ctx context.Context, id fsm.ServiceID, w *work, now time.Time) {
	if w.writing {
		w.again = true
		return
	}
	seen := r.c.Store.get(id)
	if seen == nil {
		w.noticed, w.failures = time.Time{}, 0
		r.forget(id, w)
		return
	}
	write, needed := project(r.view, r.why, seen, r.c.Options, now)
	if !needed {
		w.noticed, w.failures = time.Time{}, 0
		return
	}
	if left := w.noticed.Add(r.c.Timing.Settle).Sub(now); !write.Urgent && left > 0 {
		r.writes.add(id, now.Add(left))
		return
	}
	wait, _ := w.pace.wait(write.digest(), now)
	if wait > 0 {
		r.writes.add(id, now.Add(wait))
		return
	}
	w.writing = true
	r.inFlight++
	r.calls.Go(func() {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		seen, err := r.c.API.Write(call, write)
		r.results <- result{write, seen, err} // there is room for every write under way
	})
}

// finished takes in how a write ended.
func (r *run) finished(done result, now time.Time) {
	id := done.write.ID
	r.inFlight--
	w := r.work[id] // never forgotten while a write is under way
	w.writing = false
	if w.again {
		w.again = false
		r.writes.add(id, now)
	}
	switch kind := failureOf(done.err); kind {
	case "":
		r.written(done, w, now)
	case gone:
		r.metrics.writes.WithLabelValues(kind).Inc()
		w.noticed, w.failures = time.Time{}, 0 // the watch will say so
	default:
		r.metrics.writes.WithLabelValues(kind).Inc()
		w.failures++
		r.writes.add(id, now.Add(min(firstRetry<<min(w.failures-1, 10), lastRetry)))
		if kind == conflict {
			r.c.Store.doubt(id)
			return // what changed is on its way here
		}
		if r.brake.pull(kind, done.err, now) {
			r.c.Log.Warn("status not written, trying again", "service", string(id), "err", done.err, "remedy", remedyOf(kind))
		}
	}
}

func (r *run) written(done result, w *work, now time.Time) {
	if r.brake.release() {
		r.c.Log.Info("status written again")
	}
	digest := done.write.digest()
	_, overwritten := w.pace.wait(digest, now)
	if overwritten {
		r.metrics.overwritten.Inc()
	}
	if w.pace.wrote(digest, now) {
		r.c.Log.Warn("status keeps being overwritten by another controller, writing it less often", "service", string(done.write.ID))
		r.announce([]telling{{
			id: done.write.ID, uid: done.write.UID, warning: true, reason: EventOverwritten,
			note: "another controller keeps changing what Fairlead writes into the status; set spec.loadBalancerClass so that only one of them serves this Service",
		}}, &w.events, now)
	}
	if !w.noticed.IsZero() {
		r.metrics.lag.Observe(now.Sub(w.noticed).Seconds())
	}
	r.metrics.writes.WithLabelValues("written").Inc()
	r.metrics.last.Set(float64(now.UnixMilli()) / 1000)
	w.noticed, w.failures = time.Time{}, 0
	r.c.Store.answer(done.seen)
}

// Ways to fail, as metrics name them.
const (
	gone        = "gone"
	conflict    = "conflict"
	throttled   = "throttled"
	forbidden   = "forbidden"
	invalid     = "invalid"
	unreachable = "error"
)

func failureOf(err error) string {
	switch {
	case err == nil:
		return ""
	case apierrors.IsNotFound(err):
		return gone
	case apierrors.IsConflict(err):
		return conflict
	case apierrors.IsTooManyRequests(err):
		return throttled
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return forbidden
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return invalid
	}
	return unreachable
}

func remedyOf(kind string) string {
	switch kind {
	case forbidden:
		return "let the account patch services/status"
	case invalid:
		return "the API server does not take what it was sent; report it with the server's version"
	}
	return "nothing, unless it lasts: check that the API server can be reached"
}

// brake holds all writes back while the API server fails, so that thousands of them do not each find out alone.
type brake struct {
	pulled int
	until  time.Time
}

// pull notes a failure; it tells whether it is the first. One that concerns a single Service holds nobody else back.
func (b *brake) pull(kind string, err error, now time.Time) (first bool) {
	if kind == invalid {
		return true
	}
	if now.Before(b.until) {
		return false // one more that had begun before
	}
	d := min(firstRetry<<min(b.pulled, 10), lastRetry)
	if seconds, told := apierrors.SuggestsClientDelay(err); told {
		d = max(d, time.Duration(seconds)*time.Second)
	}
	b.pulled++
	b.until = now.Add(d)
	return b.pulled == 1
}

// release notes a success; it tells whether there were failures before it.
func (b *brake) release() (before bool) {
	before = b.pulled > 0
	*b = brake{}
	return before
}

func (b *brake) wait(now time.Time) time.Duration { return max(0, b.until.Sub(now)) }

// concurrent is how many writes may be under way: one to try, after a failure.
func (b *brake) concurrent(most int) int {
	if b.pulled > 0 {
		return 1
	}
	return most
}
