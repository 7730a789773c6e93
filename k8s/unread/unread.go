// SPDX-License-Identifier: Apache-2.0

// Package unread tells those who wrote a pool, a peer or another object that configures the fabric into a namespace from which it is not
// read: by an Event on the object itself, which says why it does not count and what helps. Nobody else may tell them: they see neither the
// log of members nor the record.
//
// An object is told of once for each form of it that people wrote, and again once the API server has forgotten the Event. How many Events
// that makes is not for those who write objects to say: each namespace has an allowance, and all of them together have one. What has to
// wait is told later. Start reading at Teller.
package unread

import (
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/convert"
)

// Reason is that of the Events.
const Reason = "NotRead"

// Key is an object. Its group is part of it: MetalLB's and ours may have objects of one kind and name.
type Key struct {
	Group string
	Kind  world.Kind
	ID    world.ID
}

// Seen is what is kept of an object.
type Seen struct {
	APIVersion, UID string
	// Generation counts the forms that people wrote.
	Generation int64
}

// SeenOf takes from an object what Seen keeps.
func SeenOf(apiVersion string, o metav1.Object) Seen {
	return Seen{APIVersion: apiVersion, UID: string(o.GetUID()), Generation: o.GetGeneration()}
}

// longestNote is what the API server takes of a note in bytes, and longestName leaves room in an Event's name for what is behind the
// object's.
const (
	longestNote = 1024
	longestName = 220
)

// event says that an object is not read. Its name follows from the object's form: whoever tells the same finds it there.
func event(k Key, seen Seen, namespaces convert.Namespaces, instance string, now time.Time) *eventsv1.Event {
	why := namespaces.Elsewhere(world.Ref{Kind: k.Kind, ID: k.ID, UID: seen.UID})
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%q%d%q", seen.UID, seen.Generation, why.Why)
	note := why.Why + "; " + why.Remedy
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.ID.Namespace, Name: fmt.Sprintf("%s.%016x", fsm.Text(k.ID.Name, longestName), h.Sum64())},
		EventTime:  metav1.NewMicroTime(now), ReportingController: "fairlead.io/controller", ReportingInstance: instance, Action: "Read", Reason: Reason,
		Regarding: corev1.ObjectReference{APIVersion: seen.APIVersion, Kind: string(k.Kind), Namespace: k.ID.Namespace, Name: k.ID.Name, UID: types.UID(seen.UID)},
		Note:      fsm.Text(note, longestNote), Type: corev1.EventTypeWarning,
	}
}
