// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"fairlead.io/fairlead/fsm"
	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
	"fairlead.io/fairlead/k8s/writes"
)

// source is who tells, as LBCF has it.
const source = "lbcf-controller"

// Bounds of Events: they are for people, and lost ones are no harm.
const (
	eventRate     = 20.0 // a second
	eventBurst    = 300
	spareWarnings = 100 // of the burst, for warnings alone
	queuedEvents  = 512 // to be written
	rememberMost  = 8192
	remember      = 10 * time.Minute // the same is counted for so long
	countEvery    = time.Minute
	objectTries   = 30 // how often to look for the object that an Event is about
	eventRetries  = 5
	longestNote   = 1024 // bytes
	longestName   = 220  // of an object in an Event's name
)

// tales are Events that are on their way, and those told lately. The same of an object is told once, and then counted.
type tales struct {
	settle time.Duration
	bucket *writes.Bucket
	told   map[Telling]*tale
	due    *writes.Queue[Telling]
	jobs   chan job
}

type tale struct {
	first, last time.Time
	count       int32
	// written is the count that the API server was told; name and uid are of the Event and its object.
	written   int32
	writtenAt time.Time
	name      string
	lasting   lasting
	tries     int
	object    corev1.ObjectReference
}

// lasting is whether what is told happened, or is how things stand. The Event of the latter has a name that every leader
// gives it, so that nothing is told anew which an earlier one told and the API server still has.
type lasting uint8

const (
	happened lasting = iota
	begun            // it stands from now on
	standing         // it stands, and may have stood before this term
)

// standingFor is how long after the beginning of a term what stands counts as having stood before: the leader may not have
// planned yet.
const standingFor = time.Minute

// job is an Event to be created, or to be counted.
type job struct {
	event   *corev1.Event
	more    bool
	lasting lasting
}

func newTales(settle time.Duration) *tales {
	return &tales{
		settle: settle, bucket: writes.NewBucket(eventRate, eventBurst), told: map[Telling]*tale{},
		due: writes.NewQueue[Telling](), jobs: make(chan job, queuedEvents),
	}
}

// tell takes in what there is to tell.
func (r *run) tell(list []Telling, kind lasting, now time.Time) {
	for _, t := range list {
		t.Note = fsm.Text(t.Note, longestNote)
		r.metrics.events.WithLabelValues(r.tales.add(t, kind, now)).Inc()
	}
}

// add gives what becomes of a telling.
func (s *tales) add(t Telling, kind lasting, now time.Time) string {
	if old := s.told[t]; old != nil && now.Sub(old.first) < remember {
		old.count++
		old.last = now
		at := now.Add(s.settle)
		if next := old.writtenAt.Add(countEvery); old.written > 0 && next.After(at) {
			at = next
		}
		s.due.Add(t, at)
		return "counted"
	}
	spare := spareWarnings
	if t.Warning {
		spare = 0
	}
	if !s.bucket.Take(now, spare) {
		return "limited"
	}
	if len(s.told) >= rememberMost {
		s.forget(now)
	}
	if len(s.told) >= rememberMost {
		return "limited"
	}
	s.told[t] = &tale{first: now, last: now, count: 1, lasting: kind}
	s.due.Add(t, now.Add(s.settle))
	return "noted"
}

// forget drops what was told long ago.
func (s *tales) forget(now time.Time) {
	for t, old := range s.told {
		if now.Sub(old.first) >= remember {
			delete(s.told, t)
		}
	}
}

// tellAll queues the Events that are due.
func (r *run) tellAll(now time.Time) {
	for {
		t, due := r.tales.due.Next(now)
		if !due {
			return
		}
		if old := r.tales.told[t]; old != nil && old.count > old.written {
			r.tellOne(t, old, now)
		}
	}
}

func (r *run) tellOne(t Telling, old *tale, now time.Time) {
	more := old.written > 0
	if !more {
		o := r.sight.of(t.About, now)
		if o == nil {
			if old.tries++; old.tries < objectTries {
				r.tales.due.Add(t, now.Add(r.c.Timing.Settle))
				return
			}
			delete(r.tales.told, t)
			r.metrics.events.WithLabelValues("no object").Inc()
			return
		}
		old.object = referenceTo(t.About, o.GetUID())
		old.name = eventName(t, old)
	}
	select {
	case r.tales.jobs <- job{t.event(old), more, old.lasting}:
		old.written, old.writtenAt = old.count, now
	default:
		r.metrics.events.WithLabelValues("dropped").Inc()
	}
}

func eventName(t Telling, old *tale) string {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%q%q%q", old.object.UID, t.Reason, t.Note)
	if old.lasting == happened {
		_, _ = fmt.Fprintf(h, "%d", old.first.UnixNano())
	}
	return fmt.Sprintf("%s.%016x", fsm.Text(t.About.Name, longestName), h.Sum64())
}

// event makes the object.
func (t *Telling) event(old *tale) *corev1.Event {
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: t.About.Namespace, Name: old.name},
		InvolvedObject: old.object, Reason: t.Reason, Message: t.Note, Type: corev1.EventTypeNormal,
		Source:         corev1.EventSource{Component: source},
		FirstTimestamp: metav1.NewTime(old.first), LastTimestamp: metav1.NewTime(old.last), Count: old.count,
		ReportingController: source,
	}
	if t.Warning {
		e.Type = corev1.EventTypeWarning
	}
	return e
}

// referenceTo names an object in an Event.
func referenceTo(k Key, uid types.UID) corev1.ObjectReference {
	version := v1beta1.GroupVersion()
	if k.Kind == Bind {
		version = v1.GroupVersion()
	}
	return corev1.ObjectReference{APIVersion: version.String(), Kind: string(k.Kind), Namespace: k.Namespace, Name: k.Name, UID: uid}
}

// speak writes Events one after the other, until ctx ends.
func (r *run) speak(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case j := <-r.tales.jobs:
			r.metrics.events.WithLabelValues(r.say(ctx, j)).Inc()
		}
	}
}

// say writes one Event, trying again for a while. It tells how that ended.
func (r *run) say(ctx context.Context, j job) string {
	for try := 1; ; try++ {
		call, cancel := context.WithTimeout(ctx, writes.CallTimeout)
		do := r.c.API.Tell
		if j.more {
			do = r.c.API.Count
		}
		err := do(call, j.event)
		cancel()
		switch kind := writes.FailureOf(err); {
		case err == nil:
			return "written"
		case apierrors.IsAlreadyExists(err) && j.lasting == begun: // again
			j.event.Count++
			j.more = true
		case apierrors.IsAlreadyExists(err):
			return "told-before"
		case kind == writes.Forbidden, kind == writes.Gone, kind == writes.Invalid, try == eventRetries, ctx.Err() != nil:
			r.c.Log.Debug("event not written", "object", j.event.InvolvedObject.Namespace+"/"+j.event.InvolvedObject.Name, "reason", j.event.Reason, "err", err)
			return "failed"
		}
		select {
		case <-ctx.Done():
		case <-r.c.Clock.After(writes.Backoff(try)):
		}
	}
}
