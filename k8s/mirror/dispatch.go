// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"time"

	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
	"fairlead.io/fairlead/k8s/writes"
)

// result is how a write ended.
type result struct {
	write *Write
	begun time.Time
	got   Object
	err   error
}

// dispatch starts the writes that are due, as many at once as may be.
func (r *run) dispatch(ctx context.Context, now time.Time) {
	if r.view == nil {
		return
	}
	for r.inFlight < r.brake.Concurrent(r.c.Timing.Concurrent) && r.brake.Wait(now) == 0 && r.bucket.Wait(now) == 0 {
		k, due := r.first.Next(now)
		if !due {
			if r.yielding {
				return
			}
			if k, due = r.second.Next(now); !due {
				if r.inFlight == 0 {
					r.yielded = time.Time{} // all is written
				}
				return
			}
		}
		if w := r.work[k]; w != nil {
			r.look(ctx, k, w, now)
		}
	}
}

// look decides on one object, by what is known just now, and starts a write if one is needed.
func (r *run) look(ctx context.Context, k Key, w *work, now time.Time) {
	if w.writing {
		return // it is looked at again when that has ended
	}
	if !r.shows(k.Kind) {
		delete(r.work, k)
		r.complete[k.Kind] = false // all are looked at once it is, also if that was so when it was last asked
		return
	}
	write := r.plan(k, now)
	if write == nil {
		r.settled(k, w, now)
		return
	}
	if at := r.earliest(k, w, write); at.After(now) {
		r.line(k).Add(k, at)
		return
	}
	r.bucket.Take(now, 0)
	w.writing = true
	r.inFlight++
	r.metrics.working.WithLabelValues(string(k.Kind)).Inc()
	r.calls.Go(func() {
		call, cancel := context.WithTimeout(ctx, writes.CallTimeout)
		defer cancel()
		got, err := r.c.API.Do(call, write)
		r.results <- result{write, now, got, err} // there is room for every write under way
	})
}

// settled notes that an object is as it shall be. What paces its next write is kept as long as it matters.
func (r *run) settled(k Key, w *work, now time.Time) {
	w.noticed, w.failures = time.Time{}, 0
	if at, trusted := r.sight.until(k); trusted {
		r.line(k).Add(k, at) // the watch should have shown it by then
		return
	}
	if now.Sub(w.patient) > r.c.Timing.Pace && now.Sub(w.counted) > r.c.Timing.Counting {
		delete(r.work, k)
	}
}

// earliest is when a write may be sent.
func (r *run) earliest(k Key, w *work, write *Write) time.Time {
	switch {
	case k.Kind == Group:
		return w.counted.Add(r.c.Timing.Counting)
	case write.Patient:
		at := w.noticed.Add(r.c.Timing.Patience)
		if pace := w.patient.Add(r.c.Timing.Pace); !w.patient.IsZero() && pace.After(at) {
			at = pace
		}
		return at
	}
	return time.Time{}
}

// plan gives the next write of an object.
func (r *run) plan(k Key, now time.Time) *Write {
	o := r.sight.of(k, now)
	if k.Kind == Record {
		shown, _ := o.(*v1beta1.BackendRecord)
		return planRecord(r.view, k, shown, now)
	}
	switch o := o.(type) {
	case *v1beta1.LoadBalancer:
		return planBalancer(r.view, k, o, now)
	case *v1.Bind:
		return planBind(r.view, k, r.index.entries(r.view, k, string(o.UID)), o, now)
	case *v1beta1.BackendGroup:
		of := owner{k, string(o.UID)}.text()
		expected, known := r.expected[of]
		return planGroup(k, o, expected, known, r.index.registered[of])
	case *v1beta1.LoadBalancerDriver:
		return planDriver(r.view, k, o, r.reached[k], now)
	}
	return nil
}

// finished takes in how a write ended.
func (r *run) finished(done result, now time.Time) {
	k, kind := done.write.Key, writes.FailureOf(done.err)
	r.inFlight--
	r.metrics.working.WithLabelValues(string(k.Kind)).Dec()
	r.measure(&done, kind, now)
	w := r.work[k] // never forgotten while a write is under way
	w.writing = false
	switch kind {
	case "":
		r.written(&done, w, now)
		return
	case writes.Gone:
		if done.write.Verb != Create {
			r.sight.gone(done.write, now)
			r.line(k).Add(k, now)
			return
		}
	case writes.Conflict:
		r.sight.doubt(k) // what changed is on its way here
	default:
		if r.brake.Pull(kind, done.err, now) {
			r.c.Log.Warn("object not written, trying again", "kind", string(k.Kind), "object", k.ID(), "err", done.err, "remedy", remedyOf(kind))
		}
	}
	w.failures++
	r.line(k).Add(k, now.Add(writes.Backoff(w.failures)))
}

func (r *run) written(done *result, w *work, now time.Time) {
	k := done.write.Key
	if r.brake.Release() {
		r.c.Log.Info("objects written again")
	}
	if !w.noticed.IsZero() && !done.write.Patient {
		r.metrics.lag.WithLabelValues(string(k.Kind)).Observe(now.Sub(w.noticed).Seconds())
	}
	if done.write.Patient {
		w.patient = now
	}
	if k.Kind == Group {
		w.counted = now
		r.tell(groupEvents(k, done.got), happened, now)
	}
	w.noticed, w.failures = now, 0
	r.sight.answered(done.write, done.got, now)
	r.line(k).Add(k, now) // there may be more
}

func (r *run) measure(done *result, kind string, now time.Time) {
	k, seconds := done.write.Key, now.Sub(done.begun).Seconds()
	if kind == "" {
		kind = "written"
	}
	r.metrics.writes.WithLabelValues(string(k.Kind), string(done.write.Verb), kind).Inc()
	r.metrics.process.WithLabelValues(string(k.Kind)).Observe(seconds)
	if k.Kind == Record && done.write.Verb != Patch { // LBCF does not measure the end of finalizers
		r.metrics.latency.WithLabelValues(string(k.Kind), string(done.write.Verb)).Observe(seconds)
	}
}

func remedyOf(kind string) string {
	switch kind {
	case writes.Forbidden:
		return "let the account write objects of lbcf.tkestack.io and their status"
	case writes.Invalid:
		return "the API server does not take what it was sent; report it with the server's version"
	}
	return "nothing, unless it lasts: check that the API server can be reached"
}
