// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"slices"
	"sync"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/keep"
	"fairlead.io/fairlead/k8s/writes"
)

// run is one term. Its loop owns everything but the channels.
type run struct {
	*Projector
	changed chan struct{}
	results chan result
	teller  *keep.Teller
	calls   *sync.WaitGroup

	view    *fsm.View
	looked  time.Time // at the record
	why     Explanations
	misread map[fsm.ServiceID][]string // what cannot be used as it is
	asked   time.Time
	checked time.Time // every Service

	work          map[fsm.ServiceID]*work
	writes, tales *writes.Queue[fsm.ServiceID]
	inFlight      int
	brake         writes.Brake
	complained    map[string]bool             // remedies that were told since a write succeeded
	held          map[fsm.HoldID]fsm.Revision // holds that were told of
	rewound       string                      // why the source of Services ran back, empty if it did not
}

// work is what is known of one Service in this term.
type work struct {
	// noticed is when something about it first changed that is not written yet; zero for nothing.
	noticed  time.Time
	failures int
	writing  bool
	again    bool // look again once the write under way has ended
	pace     writes.Pace

	told    *story // nil: what people know is not known
	waiting time.Time
	events  keep.Allowance
}

// loop takes in what changed and gives out what to do, until ctx ends.
func (r *run) loop(ctx context.Context) {
	fresh := true // without a look at the record there is nothing to wait for
	for ctx.Err() == nil {
		now := r.c.Clock.Now()
		if fresh && now.Sub(r.looked) >= r.c.Timing.Spacing {
			fresh = false
			r.readRecord(now)
		}
		r.readStore(now)
		r.ask(now)
		r.dispatch(ctx, now)
		r.tellAll(now)
		r.metrics.pending.Set(float64(r.writes.Len() + r.inFlight))
		wake := r.c.Clock.After(r.wait(now, fresh))
		select {
		case <-ctx.Done():
		case <-r.changed:
			fresh = true
		case <-r.c.Store.wake:
		case done := <-r.results:
			r.finished(done, r.c.Clock.Now())
		case <-wake:
		}
	}
}

// wait is how long nothing is to do unless something changes.
func (r *run) wait(now time.Time, fresh bool) time.Duration {
	out := max(0, r.asked.Add(r.c.Timing.Ask).Sub(now))
	if fresh {
		out = min(out, max(0, r.looked.Add(r.c.Timing.Spacing).Sub(now)))
	}
	if d, any := r.tales.Wait(now); any {
		out = min(out, d)
	}
	if d, any := r.writes.Wait(now); any && r.inFlight < r.brake.Concurrent(r.c.Timing.Concurrent) {
		out = min(out, max(d, r.brake.Wait(now)))
	}
	return out
}

func (r *run) readRecord(now time.Time) {
	v := r.c.Record.Read()
	concerned, all := scan(r.view, v)
	r.view, r.looked = v, now
	r.tellHolds(now)
	if rewound := rewoundIn(v); rewound != r.rewound {
		r.rewound, all = rewound, true
	}
	if all {
		r.noticeAll(now)
	}
	for id := range concerned {
		r.notice(id, now)
	}
}

func (r *run) readStore(now time.Time) {
	for id := range r.c.Store.take() {
		r.notice(id, now)
	}
}

// ask asks the leader what waits, and from time to time looks at every Service: what was missed once is found then.
func (r *run) ask(now time.Time) {
	if r.view == nil || now.Sub(r.asked) < r.c.Timing.Ask {
		return
	}
	r.c.Store.settle(now)
	next := Explain(r.c.Waiting())
	concerned := map[fsm.ServiceID]bool{}
	reworded(r.view, r.why, next, concerned)
	r.why, r.asked = next, now
	r.askProblems(concerned)
	for id := range concerned {
		r.notice(id, now)
	}
	if now.Sub(r.checked) >= r.c.Timing.Recheck {
		r.noticeAll(now)
	}
}

// askProblems asks what of Services cannot be used as it is written, and names those of which that changed.
func (r *run) askProblems(concerned map[fsm.ServiceID]bool) {
	if r.c.Problems == nil {
		return
	}
	next := r.c.Problems()
	for _, list := range []map[fsm.ServiceID][]string{r.misread, next} {
		for id := range list {
			if !slices.Equal(r.misread[id], next[id]) {
				concerned[id] = true
			}
		}
	}
	r.misread = next
}

func (r *run) noticeAll(now time.Time) {
	r.checked = now
	for _, id := range r.c.Store.all() {
		r.notice(id, now)
	}
	for id := range r.work {
		r.notice(id, now)
	}
}

// notice has a Service looked at. What people know of it is noted before anything is written.
func (r *run) notice(id fsm.ServiceID, now time.Time) {
	w := r.work[id]
	if w == nil {
		w = &work{}
		r.work[id] = w
	}
	if w.noticed.IsZero() {
		w.noticed = now
	}
	if f, seen := r.facts(id); w.told == nil && f != nil {
		s := storyOf(f, r.why, &story{uid: seen.UID})
		if w.told = recall(&s, seen); !r.c.Options.ours(seen) {
			w.told.addresses = s.addresses // no condition says what was told: what is well is not told again
		}
	} else if w.told == nil && f == nil && (r.unread(id, seen) || r.stuck(seen)) {
		w.told = &story{uid: seen.UID}
	}
	r.writes.Add(id, now)
	r.tales.Add(id, now.Add(r.c.Timing.Settle))
}

// unread tells of a Service that is ours to serve, and has something that cannot be used as it is written: it may never come into the record for
// that, and its author is to hear of it all the same.
func (r *run) unread(id fsm.ServiceID, seen *Seen) bool {
	return seen != nil && len(r.misread[id]) > 0 && r.c.Options.ours(seen)
}

// facts gives what the record holds of a Service that is there; nil for others. Events tell of all that it holds: also of those that
// are served for their spec.externalIPs and node ports alone, whose status is not ours to write.
func (r *run) facts(id fsm.ServiceID) (*facts, *Seen) {
	seen := r.c.Store.get(id)
	if r.view == nil || seen == nil {
		return nil, seen
	}
	return factsOf(r.view, id, seen.UID), seen
}

// tellAll queues the Events that are due.
func (r *run) tellAll(now time.Time) {
	for {
		id, due := r.tales.Next(now)
		if !due {
			return
		}
		if w := r.work[id]; w != nil && w.told != nil {
			r.tell(id, w, now)
		}
	}
}

func (r *run) tell(id fsm.ServiceID, w *work, now time.Time) {
	f, seen := r.facts(id)
	misread := f != nil || r.unread(id, seen)
	stuck := f == nil && r.stuck(seen)
	if seen != nil && seen.UID != w.told.uid { // another life under the same name
		gone := storyOf(nil, r.why, w.told)
		r.announce(tell(id, w.told, &gone), &w.events, now)
		w.told = &story{uid: seen.UID}
	}
	next := storyOf(f, r.why, w.told)
	if misread {
		next.problems = r.misread[id]
	}
	if stuck {
		next.stuck = r.rewound
	}
	lacking := next.lacking()
	if lacking.waiting == (verdict{}) {
		w.waiting = time.Time{}
	} else if w.waiting.IsZero() {
		w.waiting = now
	}
	if left := w.waiting.Add(r.c.Timing.Patience).Sub(now); !w.waiting.IsZero() && left > 0 {
		lacking.waiting = verdict{}
		next.setLacking(lacking)
		r.tales.Add(id, now.Add(left))
	}
	r.announce(tell(id, w.told, &next), &w.events, now)
	w.told = &next
	if f == nil && !misread && !stuck {
		w.told = nil
	}
	r.forget(id, w)
}

// forget drops a Service that is gone and of which nothing is left to do.
func (r *run) forget(id fsm.ServiceID, w *work) {
	if seen := r.c.Store.get(id); seen == nil && w.told == nil && !w.writing {
		delete(r.work, id)
	}
}
