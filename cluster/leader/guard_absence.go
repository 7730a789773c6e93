// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm/world"
)

// subject is one life of one object of the record.
type subject KnownObject

// String is how holds name it.
func (s subject) String() string {
	if s.UID == "" {
		return s.ID.String()
	}
	return s.ID.String() + " uid=" + s.UID
}

func (s subject) compare(o subject) int {
	return cmp.Or(strings.Compare(string(s.Kind), string(o.Kind)), s.ID.Compare(o.ID), strings.Compare(s.UID, o.UID))
}

// sighting is the first complete list that lacked a subject.
type sighting struct {
	ended   time.Duration // when the list was answered: what a server said while it was wrong may have been asked long before
	lists   uint64
	version uint64
	what    string // of a Service's slices, which ones; another set is another sighting
}

// grant is leave to remove a subject.
type grant struct {
	at      time.Duration
	absence bool // on the strength of absence, not of a deletion
	unseen  bool // the absence was not seen to begin, neither on a watch nor by a polled source
	over    bool // the subject was removed or seen again since
}

// bucket limits a rate.
type bucket struct {
	tokens float64
	at     time.Duration
}

// judgement is the work on one usable view.
type judgement struct {
	*Guard
	now   time.Duration
	w     *world.World
	known *Known
	v     *Verdict

	views    map[world.Kind]world.KindView
	present  shown
	next     int // the pod of the view after that which was looked at last
	evidence map[objectName][]world.Deletion
	// absent are subjects that no list has any more, and what confirms that; empty if nothing does yet.
	absent map[subject]string
	// lost are the Services that are absent, or gone by this verdict.
	lost map[world.ID]struct{}
	// recorded are those of the granted subjects that the record still holds.
	recorded map[subject]bool
}

func (j *judgement) run() {
	j.index()
	j.tidy()
	j.rememberSlices()
	for _, o := range j.known.Objects {
		if s := subject(o); s.Kind == world.KindEndpointSlice {
			j.judgeEndpoints(s)
		} else {
			j.judgeObject(s)
		}
	}
	j.slices.prune()
	j.decideAbsences()
	j.settleHolds()
	j.sort()
}

// tidy forgets what was granted long ago, and what was sighted or granted of subjects that the record holds no longer.
func (j *judgement) tidy() {
	for s, g := range j.granted {
		if j.now-g.at > j.limits.Window {
			delete(j.granted, s)
		}
	}
	j.recorded = map[subject]bool{}
	if len(j.granted)+len(j.sightings) == 0 {
		return
	}
	sighted := make(map[subject]sighting, len(j.sightings))
	for _, o := range j.known.Objects {
		s := subject(o)
		if _, ok := j.granted[s]; ok {
			j.recorded[s] = true
		}
		if first, ok := j.sightings[s]; ok {
			sighted[s] = first
		}
	}
	j.sightings = sighted
	for s := range j.granted {
		if !j.recorded[s] {
			j.spend(s)
		}
	}
}

// grant remembers the leave to remove a subject of the record.
func (j *judgement) grant(s subject, absence bool) {
	j.granted[s] = grant{at: j.now, absence: absence, unseen: absence && j.absent[s] != bySight}
	j.recorded[s] = true
}

// judgeObject looks for one object of the record in the view.
func (j *judgement) judgeObject(s subject) {
	deleting, present := j.look(s)
	switch {
	case present && deleting:
		j.grantDeletion(s, "it has a deletionTimestamp")
	case present:
		j.seen(s)
	default:
		switch how := j.deletionOf(s); how {
		case world.ByWatch:
			j.grantDeletion(s, "its deletion was seen")
		case world.ByScan:
			j.absent[s] = bySight
		default:
			j.sight(s, "")
		}
	}
}

// deletionOf finds evidence that this life of the object ended; empty if there is none.
func (j *judgement) deletionOf(s subject) world.How {
	var how world.How
	for _, d := range j.evidence[objectName{s.Kind, s.ID}] {
		if (d.UID == s.UID || d.UID == "" || s.UID == "") && how != world.ByWatch {
			how = d.How
		}
	}
	return how
}

// seen ends every doubt about a subject.
func (j *judgement) seen(s subject) {
	if _, missed := j.sightings[s]; missed {
		delete(j.sightings, s)
		delete(j.quiet, s.Kind) // who was wrong of one may be of others
	}
	j.spend(s)
}

// spend ends the leave to remove a subject. That it was given still counts.
func (j *judgement) spend(s subject) {
	if g, ok := j.granted[s]; ok && !g.over {
		g.over = true
		j.granted[s] = g
	}
}

// grantDeletion lets a subject go at once, within the limit of the rate.
func (j *judgement) grantDeletion(s subject, evidence string) {
	delete(j.sightings, s)
	g, ok := j.granted[s]
	if !ok || g.over {
		if wait := j.take(s.Kind); wait > 0 {
			j.wait(s, "too many deletions at once")
			j.again(wait)
			return
		}
		j.grant(s, g.absence) // an earlier absence still counts
	}
	j.remove(s, evidence)
}

// take takes a token for a removal of a kind, or tells when there will be one.
func (j *judgement) take(kind world.Kind) (wait time.Duration) {
	b := j.buckets[kind]
	if b == nil {
		b = &bucket{tokens: float64(j.limits.Burst), at: j.now}
		j.buckets[kind] = b
	}
	rate := float64(j.limits.PerSecond)
	b.tokens = min(float64(j.limits.Burst), b.tokens+rate*(j.now-b.at).Seconds())
	b.at = j.now
	if b.tokens < 1 {
		return time.Duration((1 - b.tokens) / rate * float64(time.Second))
	}
	b.tokens--
	return 0
}

// sight notes that a subject is absent, if the view can tell at all, and whether a second list confirms it. What
// names the missing parts; another set is another sighting.
func (j *judgement) sight(s subject, what string) {
	j.absent[s] = ""
	first, ok := j.sightings[s]
	if ok && first.what != what { // also a view that confirms nothing can show that something is there
		delete(j.sightings, s)
		ok = false
	}
	view, yielded := j.views[s.Kind]
	if why := j.blind(view, yielded); why != "" {
		j.wait(s, why)
		return
	}
	began := j.now - view.ListAge
	if !ok || view.Version < first.version {
		first = sighting{ended: j.now - view.ListedAge, lists: view.Lists, version: view.Version, what: what}
		j.sightings[s] = first
	}
	if view.Lists != first.lists && began-first.ended >= j.limits.Confirm {
		j.absent[s] = byLists
		return
	}
	j.wait(s, "absent from a list; a second complete list must confirm it")
	j.relist(s.Kind)
	j.again(max(first.ended+j.limits.Confirm-j.now, j.limits.Confirm/10))
}

// What confirms an absence.
const (
	bySight = "it was seen to go"
	byLists = "two complete lists lack it"
)

// blind says why nothing can be absent from a view of a kind, or nothing.
func (j *judgement) blind(view world.KindView, yielded bool) string {
	switch {
	case !yielded:
		return "the source does not list its kind"
	case !view.Complete:
		return "the list of its kind is not complete"
	case view.Age > j.limits.MaxAge:
		return fmt.Sprintf("the view of its kind is %s old", view.Age.Round(time.Second))
	}
	return ""
}

func (j *judgement) remove(s subject, evidence string) {
	j.v.Gone = append(j.v.Gone, Removal{KnownObject(s), evidence})
	j.v.gone[objectName{s.Kind, s.ID}] = true
	j.v.ended[KnownObject(s)] = true
}

func (j *judgement) wait(s subject, why string) {
	j.waitFor(s, WaitsForEvidence, why)
}

func (j *judgement) waitFor(s subject, code Code, why string) {
	j.v.Waiting = append(j.v.Waiting, Wait{KnownObject(s), code, why})
	if s.Kind == world.KindEndpointSlice {
		j.v.AddOnly[s.ID] = why
	}
}

func (j *judgement) relist(kind world.Kind) {
	if !slices.Contains(j.v.Relist, kind) {
		j.v.Relist = append(j.v.Relist, kind)
	}
}

func (j *judgement) again(d time.Duration) {
	if j.v.Again == 0 || d < j.v.Again {
		j.v.Again = d
	}
}

// sort gives the verdict one form.
func (j *judgement) sort() {
	slices.SortStableFunc(j.v.Gone, func(a, b Removal) int { return subject(a.KnownObject).compare(subject(b.KnownObject)) })
	slices.SortStableFunc(j.v.Waiting, func(a, b Wait) int { return subject(a.KnownObject).compare(subject(b.KnownObject)) })
	slices.Sort(j.v.Lift)
	slices.Sort(j.v.Relist)
}
