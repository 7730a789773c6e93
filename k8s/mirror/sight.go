// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// trust is how long the answer to a write counts for more than what is watched: a watch that is further behind is one
// that ended, or the API server was set back.
const trust = 30 * time.Second

// sight is what is known of objects: what is watched, and before the watch shows it, what our own writes were answered.
type sight struct {
	objects Objects
	answers map[Key]answer
}

type answer struct {
	uid    types.UID
	object Object // nil: it is gone
	// version is the resourceVersion that the watch has to get to, or for a deletion, to pass.
	version string
	passed  bool
	// unseen says that the watch did not show the object yet.
	unseen bool
	at     time.Time
}

// of gives an object as it is known; nil for none.
func (s *sight) of(k Key, now time.Time) Object {
	watched := objectOf(s.objects, k)
	a, ok := s.answers[k]
	if !ok {
		return watched
	}
	if a.holds(watched, now) {
		return a.object
	}
	delete(s.answers, k)
	return watched
}

// holds tells whether the answer is newer than what is watched.
func (a *answer) holds(watched Object, now time.Time) bool {
	switch {
	case now.Sub(a.at) >= trust:
		return false
	case watched == nil:
		return a.unseen
	case watched.GetUID() != a.uid:
		return a.unseen && older(watched.GetResourceVersion(), a.version) // it shows the one before
	case a.object == nil:
		return true
	}
	return older(watched.GetResourceVersion(), a.version) || a.passed && watched.GetResourceVersion() == a.version
}

// older tells whether one resourceVersion comes before another. Where they are no numbers nobody can tell.
func older(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX == nil && errY == nil && x < y
}

// answered takes in that a write was carried out, and what the object is like since.
func (s *sight) answered(w *Write, got Object, now time.Time) {
	a := answer{uid: got.GetUID(), object: got, version: got.GetResourceVersion(), at: now}
	watched := objectOf(s.objects, w.Key)
	a.unseen = (watched == nil || watched.GetUID() != a.uid) && (w.Verb == Create || s.answers[w.Key].unseen)
	switch {
	case w.Verb == Delete && len(got.GetFinalizers()) > 0:
		o := got.DeepCopyObject().(Object)
		at := metav1.NewTime(now)
		o.SetDeletionTimestamp(&at)
		a.object, a.passed = o, true
	case w.Verb == Delete, deleting(got) && len(got.GetFinalizers()) == 0:
		a.object, a.unseen = nil, false
	}
	s.answers[w.Key] = a
}

// gone takes in that the API server does not know the object of a write.
func (s *sight) gone(w *Write, now time.Time) {
	s.answers[w.Key] = answer{uid: w.Object.GetUID(), at: now}
}

// until tells when an answer that still counts no longer does.
func (s *sight) until(k Key) (time.Time, bool) {
	a, ok := s.answers[k]
	return a.at.Add(trust), ok
}

// doubt takes the watch at its word again.
func (s *sight) doubt(k Key) { delete(s.answers, k) }
