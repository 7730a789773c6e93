// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"slices"
	"sync"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/writes"
)

// run is one term. Its loop owns everything but the channels and shown.
type run struct {
	*Mirror
	changed chan struct{}
	shown   *shown
	results chan result
	calls   *sync.WaitGroup

	began    time.Time
	view     *fsm.View
	looked   time.Time // at the record
	asked    time.Time
	checked  time.Time // every object
	complete map[Kind]bool
	// What was asked last: Expected by owner, Reach, and Waiting.
	expected map[string]int32
	reached  map[Key]Reach
	waited   map[Explanation]bool

	sight sight
	index index
	work  map[Key]*work
	// first are objects of which there are few and that people look at, second BackendRecords.
	first, second *writes.Queue[Key]
	inFlight      int
	yielding      bool      // the second queue waits
	yielded       time.Time // since when it does or did; zero once it is written
	brake         writes.Brake
	bucket        *writes.Bucket
	tales         *tales
}

// work is what is known of one object in this term.
type work struct {
	// noticed is when something about it first changed that is not written yet; zero for nothing.
	noticed  time.Time
	failures int
	writing  bool
	patient  time.Time // when a patient write was last carried out
	counted  time.Time // when numbers were last written
}

// loop takes in what changed and gives out what to do, until ctx ends.
func (r *run) loop(ctx context.Context) {
	fresh := true // without a look at the record there is nothing to wait for
	for ctx.Err() == nil {
		now := r.c.Clock.Now()
		r.yielding = r.yields(now)
		if fresh && now.Sub(r.looked) >= r.spacing() {
			fresh = false
			r.readRecord(now)
		}
		for _, k := range r.shown.take() {
			r.notice(k, now)
		}
		r.ask(now)
		r.dispatch(ctx, now)
		if !r.yielding && r.ours() {
			r.tellAll(now)
		}
		r.countPending()
		wake := r.c.Clock.After(r.wait(now, fresh))
		select {
		case <-ctx.Done():
		case <-r.changed:
			fresh = true
		case <-r.shown.wake:
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
		out = min(out, max(0, r.looked.Add(r.spacing()).Sub(now)))
	}
	if r.yielding {
		out = min(out, yieldAgain)
	} else if d, any := r.tales.due.Wait(now); any && r.ours() {
		out = min(out, d)
	}
	if r.inFlight >= r.brake.Concurrent(r.c.Timing.Concurrent) {
		return out
	}
	for _, q := range []*writes.Queue[Key]{r.first, r.second} {
		if d, any := q.Wait(now); any && (q != r.second || !r.yielding) {
			out = min(out, max(d, r.brake.Wait(now), r.bucket.Wait(now)))
		}
	}
	return out
}

// readRecord notices what changed in the record, and what that has to tell.
func (r *run) readRecord(now time.Time) {
	before, v := r.view, r.c.Record.Read()
	r.view, r.looked = v, now
	fsm.Changes(before, v, fsm.TableBalancers, func(was, is *fsm.LoadBalancer) {
		r.balancerChanged(was, is, before != nil, now)
	})
	fsm.Changes(before, v, fsm.TableBindings, func(was, is *fsm.Binding) {
		r.bindingChanged(was, is, before != nil, now)
	})
	fsm.Changes(before, v, fsm.TableDrivers, func(_, is *fsm.Driver) {
		if is != nil {
			r.notice(keyOf(Driver, is.Name), now)
		}
	})
	if before == nil {
		r.noticeAll(now)
	}
}

func (r *run) balancerChanged(was, is *fsm.LoadBalancer, tell bool, now time.Time) {
	one := is
	if one == nil {
		one = was
	}
	of, ok := balancerOf(one.ID)
	if !ok {
		return
	}
	r.index.balancer(of, one.ID, is != nil)
	r.notice(of.Key, now)
	if tell && is != nil {
		r.tell(balancerEvents(of, was, is), happened, now)
	}
}

func (r *run) bindingChanged(was, is *fsm.Binding, tell bool, now time.Time) {
	r.index.binding(was, is)
	one := is
	if one == nil {
		one = was
	}
	r.notice(recordKey(one.ID), now)
	if was == nil || is == nil || was.Registered != is.Registered || was.Owner != is.Owner {
		r.noticeGroup(was, now)
		r.noticeGroup(is, now)
	}
	if tell && is != nil {
		r.tell(bindingEvents(r.view, was, is), happened, now)
	}
}

// noticeGroup has the BackendGroup of a binding looked at, if it has one.
func (r *run) noticeGroup(b *fsm.Binding, now time.Time) {
	if b == nil {
		return
	}
	if by, ok := ownerOf(b.Owner); ok && by.Kind == Group {
		r.notice(by.Key, now)
	}
}

// ask asks for what is not in the record, and from time to time looks at every object: what was missed once is found
// then.
func (r *run) ask(now time.Time) {
	if r.view == nil || now.Sub(r.asked) < r.c.Timing.Ask {
		return
	}
	r.asked = now
	for _, k := range Kinds() {
		before := r.complete[k]
		if r.complete[k] = r.shows(k); r.complete[k] && !before {
			r.noticeAll(now)
		}
	}
	if now.Sub(r.checked) >= r.c.Timing.Recheck {
		r.noticeAll(now)
	}
	r.askNumbers(now)
	r.askReach(now)
	r.askWaiting(now)
}

// shows tells whether all objects of a kind are shown, of the cluster that the record is of.
func (r *run) shows(k Kind) bool { return r.ours() && r.c.Objects.Complete(k) }

func (r *run) ours() bool { return r.c.Ours == nil || r.c.Ours() }

// askNumbers asks how many backends BackendGroups should have.
func (r *run) askNumbers(now time.Time) {
	if r.c.Expected == nil {
		return
	}
	next := make(map[string]int32, len(r.expected))
	for _, k := range slices.SortedFunc(slices.Values(r.c.Objects.Names(Group)), Key.compare) {
		g := r.c.Objects.BackendGroup(k.Namespace, k.Name)
		if g == nil {
			continue
		}
		of := owner{k, string(g.UID)}.text()
		n, known := r.c.Expected(of)
		if !known {
			continue
		}
		next[of] = n
		if before, was := r.expected[of]; !was || before != n {
			r.notice(k, now)
		}
	}
	r.expected = next
}

// askReach asks for the way to drivers.
func (r *run) askReach(now time.Time) {
	if r.c.Reach == nil {
		return
	}
	next := make(map[Key]Reach, len(r.reached))
	for _, k := range slices.SortedFunc(slices.Values(r.c.Objects.Names(Driver)), Key.compare) {
		next[k] = r.c.Reach(k.ID())
		if next[k] != r.reached[k] {
			r.notice(k, now)
		}
	}
	r.reached = next
}

// askWaiting tells what the leader says of objects that it did not say before.
func (r *run) askWaiting(now time.Time) {
	if r.c.Waiting == nil {
		return
	}
	next, kind := map[Explanation]bool{}, begun
	if now.Sub(r.began) < standingFor {
		kind = standing
	}
	for _, e := range r.c.Waiting() {
		if next[e] = true; !r.waited[e] {
			r.tell(waitingEvents(e), kind, now)
		}
	}
	r.waited = next
}

func (r *run) noticeAll(now time.Time) {
	r.checked = now
	for _, kind := range Kinds() {
		for _, k := range slices.SortedFunc(slices.Values(r.c.Objects.Names(kind)), Key.compare) {
			r.notice(k, now)
		}
	}
	for _, b := range fsm.List[*fsm.Binding](r.view, fsm.TableBindings) {
		r.notice(recordKey(b.ID), now)
	}
}

// notice has an object looked at.
func (r *run) notice(k Key, now time.Time) {
	w := r.work[k]
	if w == nil {
		w = &work{}
		r.work[k] = w
	}
	if w.noticed.IsZero() {
		w.noticed = now
	}
	if k.Kind == Record {
		now = now.Add(r.c.Timing.Gather)
	}
	r.line(k).Add(k, now)
}

func (r *run) line(k Key) *writes.Queue[Key] {
	if k.Kind == Record {
		return r.second
	}
	return r.first
}

// countPending keeps LBCF's metric of what waits. In the first queue there are few.
func (r *run) countPending() {
	waiting := map[Kind]int{Record: r.second.Len()}
	for k := range r.first.Keys() {
		waiting[k.Kind]++
	}
	for _, kind := range Kinds() {
		r.metrics.pending.WithLabelValues(string(kind)).Set(float64(waiting[kind]))
	}
}
