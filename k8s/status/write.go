// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/writes"
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
	for r.inFlight < r.brake.Concurrent(r.c.Timing.Concurrent) && r.brake.Wait(now) == 0 {
		id, due := r.writes.Next(now)
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
		r.writes.Add(id, now.Add(left))
		return
	}
	wait, _ := w.pace.Wait(write.digest(), now)
	if wait > 0 {
		r.writes.Add(id, now.Add(wait))
		return
	}
	w.writing = true
	r.inFlight++
	r.calls.Go(func() {
		call, cancel := context.WithTimeout(ctx, writes.CallTimeout)
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
		r.writes.Add(id, now)
	}
	switch kind := writes.FailureOf(done.err); kind {
	case "":
		r.written(done, w, now)
	case writes.Gone:
		r.metrics.writes.WithLabelValues(kind).Inc()
		w.noticed, w.failures = time.Time{}, 0 // the watch will say so
	default:
		r.metrics.writes.WithLabelValues(kind).Inc()
		w.failures++
		r.writes.Add(id, now.Add(writes.Backoff(w.failures)))
		if kind == writes.Conflict {
			r.c.Store.doubt(id)
			return // what changed is on its way here
		}
		r.complain(done, kind, r.brake.Pull(kind, done.err, now))
	}
}

// complain says that a write failed: of thousands only the first, and the first that asks for something else to be done.
func (r *run) complain(done result, kind string, first bool) {
	remedy := remedyOf(kind, done.write)
	if !first && r.complained[remedy] {
		return
	}
	r.complained[remedy] = true
	r.c.Log.Warn("status not written, trying again", "service", string(done.write.ID), "err", done.err, "remedy", remedy)
}

func (r *run) written(done result, w *work, now time.Time) {
	if r.brake.Release() {
		clear(r.complained)
		r.c.Log.Info("status written again")
	}
	digest := done.write.digest()
	_, overwritten := w.pace.Wait(digest, now)
	if overwritten {
		r.metrics.overwritten.Inc()
	}
	if w.pace.Wrote(digest, now) {
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

func remedyOf(kind string, w Write) string {
	switch kind {
	case writes.Forbidden:
		if w.Finalizer != KeepFinalizer {
			return "let the account patch services, as deploy/components/finalizer does"
		}
		return "let the account patch services/status"
	case writes.Invalid:
		return "the API server does not take what it was sent; report it with the server's version"
	}
	return "nothing, unless it lasts: check that the API server can be reached"
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
