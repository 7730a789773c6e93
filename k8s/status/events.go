// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/keep"
)

// Bounds of Events.
const (
	longestNote = 1024 // bytes, what the API server takes
	longestName = 220  // of a Service in an Event's name
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
	case EventNotAsWritten, EventRemovalHeld, EventSourceRanBack:
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
			Namespace: about.Namespace, Name: fmt.Sprintf("%s.%016x", fsm.Text(about.Name, longestName), h.Sum64()),
		},
		EventTime: metav1.NewMicroTime(now), ReportingController: controllerName, ReportingInstance: instance,
		Action: action(t.reason), Reason: t.reason, Regarding: about, Note: fsm.Text(t.note, longestNote), Type: corev1.EventTypeNormal,
	}
	if t.warning {
		e.Type = corev1.EventTypeWarning
	}
	return e
}

// announce queues what there is to tell of a Service, as far as it has any allowance left.
func (r *run) announce(list []telling, a *keep.Allowance, now time.Time) {
	for i := range list {
		r.teller.Tell(list[i].event(r.c.Instance, now), a, now)
	}
}
