// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/k8s/writes"
)

// Bounds of Events: they are for people, and lost ones are no harm.
const (
	waitingEvents = 512              // in memory, while the API server is slow or away
	eventBurst    = 10               // of one Service at once
	eventEvery    = 30 * time.Second // then one of it in this time
	eventRetries  = 5
	longestNote   = 1024 // bytes, what the API server takes
	longestName   = 220  // of a Service in an Event's name
)

// controllerName is who reports our Events.
const controllerName = prefix + "controller"

// actions says what was done or tried, for each reason.
func action(reason string) string {
	switch reason {
	case EventAllocated, EventReleased, EventPending, EventRefused:
		return "Allocate"
	case EventWithdrawn:
		return "Withdraw"
	case EventNotAsWritten:
		return "Read"
	case EventOverwritten:
		return "WriteStatus"
	}
	return "Announce"
}

// event makes the object. Its name follows from what it tells, so that a second leader that tells the same finds it
// there.
func (t *telling) event(instance string, now time.Time) *eventsv1.Event {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%q%q%q%s", t.uid, t.reason, t.note, t.at)
	about := reference(t.id, t.uid)
	e := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: about.Namespace, Name: fmt.Sprintf("%s.%016x", about.Name[:min(len(about.Name), longestName)], h.Sum64()),
		},
		EventTime: metav1.NewMicroTime(now), ReportingController: controllerName, ReportingInstance: instance,
		Action: action(t.reason), Reason: t.reason, Regarding: about, Note: t.note[:min(len(t.note), longestNote)], Type: corev1.EventTypeNormal,
	}
	if t.warning {
		e.Type = corev1.EventTypeWarning
	}
	return e
}

// allowance is how many Events a Service may still have.
type allowance struct {
	left int
	at   time.Time // when left was counted
}

func (a *allowance) take(now time.Time) bool {
	if a.at.IsZero() {
		a.left, a.at = eventBurst, now
	}
	if more := int(now.Sub(a.at) / eventEvery); more > 0 {
		a.left, a.at = min(eventBurst, a.left+more), a.at.Add(time.Duration(more)*eventEvery)
	}
	if a.left == 0 {
		return false
	}
	a.left--
	return true
}

// speak writes Events one after the other, until ctx ends.
func (r *run) speak(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-r.events:
			r.metrics.events.WithLabelValues(r.write(ctx, e)).Inc()
		}
	}
}

// write creates one Event, trying again for a while. It tells how that ended.
func (r *run) write(ctx context.Context, e *eventsv1.Event) string {
	for try := 0; ; try++ {
		call, cancel := context.WithTimeout(ctx, writes.CallTimeout)
		err := r.c.API.Tell(call, e)
		cancel()
		switch {
		case err == nil:
			return "written"
		case apierrors.IsAlreadyExists(err):
			return "told-before"
		case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsInvalid(err), try == eventRetries, ctx.Err() != nil:
			r.c.Log.Debug("event not written", "service", e.Regarding.Namespace+"/"+e.Regarding.Name, "reason", e.Reason, "err", err)
			return "failed"
		}
		select {
		case <-ctx.Done():
		case <-r.c.Clock.After(writes.Backoff(try + 1)):
		}
	}
}

// announce queues what there is to tell of a Service, as far as it has any allowance left.
func (r *run) announce(list []telling, a *allowance, now time.Time) {
	for i := range list {
		if !a.take(now) {
			r.metrics.events.WithLabelValues("limited").Inc()
			continue
		}
		select {
		case r.events <- list[i].event(r.c.Instance, now):
		default:
			r.metrics.events.WithLabelValues("dropped").Inc()
		}
	}
}
