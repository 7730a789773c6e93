// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/api/balancing/v1beta1"
)

// Reasons of Events, beside those of conditions that are not as they should be.
const (
	EventAccepted     = "Accepted"
	EventConflictOver = "ConflictOver"
	EventBackAgain    = "BackendsAvailable"
	EventNotAsWritten = "NotAsWritten" // a part of it cannot be used as it is written
)

// telling is one Event to be written.
type telling struct {
	warning      bool
	reason, note string
}

// story is what people were told of a policy, or would be told now.
type story struct {
	accepted, available, conflict metav1.Condition
	// problems are what is used without a part.
	problems []string
}

// storyOf tells what a status says.
func storyOf(s *v1beta1.PolicyStatus, said *Said) story {
	of := func(kind string) metav1.Condition {
		if c := find(s.Conditions, kind); c != nil {
			return *c
		}
		return metav1.Condition{Status: unknown}
	}
	out := story{accepted: of(Accepted), available: of(BackendsAvailable), conflict: of(Conflict)}
	if said != nil {
		out.problems = said.Unused
	}
	return out
}

// recall guesses what an earlier leader told people of a policy, from the status that it wrote: what that says already is not told again.
func recall(s *v1beta1.PolicyStatus, now *story) *story {
	before := storyOf(s, nil)
	if before.accepted.Reason == now.accepted.Reason && before.accepted.Message == now.accepted.Message {
		before.problems = now.problems
	}
	return &before
}

// tell says what Events lead from one story of a policy to the next.
func tell(before, now *story) (out []telling) {
	say := func(warning bool, reason, note string) { out = append(out, telling{warning, reason, note}) }
	switch c := now.accepted; {
	case c.Status == no && (before.accepted.Reason != c.Reason || before.accepted.Message != c.Message):
		say(true, c.Reason, c.Message)
	case c.Status == yes && before.accepted.Status != yes:
		say(false, EventAccepted, c.Message)
	case c.Status == yes && c.Reason == ReasonPortsMissing && before.accepted.Message != c.Message:
		say(true, c.Reason, c.Message)
	}
	for _, p := range now.problems {
		if !slices.Contains(before.problems, p) {
			say(true, EventNotAsWritten, p)
		}
	}
	switch c := now.conflict; {
	case c.Status == yes && (before.conflict.Status != yes || before.conflict.Message != c.Message):
		say(true, "Conflict", c.Message)
	case c.Status == no && before.conflict.Status == yes:
		say(false, EventConflictOver, "no other policy counts before it any more")
	}
	switch c := now.available; {
	case c.Status == no && before.available.Status != no:
		say(true, c.Reason, c.Message)
	case c.Status == yes && before.available.Status == no:
		say(false, EventBackAgain, c.Message)
	}
	return out
}

// Bounds of Events.
const (
	longestNote = 1024 // bytes, what the API server takes
	longestName = 220  // of a policy in an Event's name
)

// controllerName is who reports our Events.
const controllerName = "fairlead.io/controller"

// event makes the object. Policies are in no namespace, so it is in "default". Its name follows from what it tells, and of which moment:
// a second leader that tells the same finds it there.
func (t *telling) event(seen *Seen, at fsm.Revision, instance string, now time.Time) *eventsv1.Event {
	kind, name, _ := strings.Cut(string(seen.ID), "/")
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%q%q%q%s", seen.UID, t.reason, t.note, at)
	e := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("%s.%016x", fsm.Text(name, longestName), h.Sum64())},
		EventTime:  metav1.NewMicroTime(now), ReportingController: controllerName, ReportingInstance: instance, Action: "Redirect", Reason: t.reason,
		Regarding: corev1.ObjectReference{APIVersion: v1beta1.GroupVersion().String(), Kind: kind, Name: name, UID: types.UID(seen.UID)},
		Note:      fsm.Text(t.note, longestNote), Type: corev1.EventTypeNormal,
	}
	if t.warning {
		e.Type = corev1.EventTypeWarning
	}
	return e
}
