// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm/world"
)

// decideAbsences lets confirmed absences go, unless together they are a mass change.
func (j *judgement) decideAbsences() {
	released, open := j.holdsOf()
	byKind := map[world.Kind][]subject{}
	j.lost = map[world.ID]struct{}{}
	for s := range j.absent {
		byKind[s.Kind] = append(byKind[s.Kind], s)
		if s.Kind == world.KindService {
			j.lost[s.ID] = struct{}{}
		}
	}
	for _, r := range j.v.Gone {
		if r.Kind == world.KindService {
			j.lost[r.ID] = struct{}{}
		}
	}
	for _, kind := range slices.SortedStableFunc(maps.Keys(byKind), endpointsLast) {
		list := byKind[kind]
		slices.SortStableFunc(list, subject.compare)
		why := j.massChange(kind, released)
		restless := j.untilQuiet(kind, why)
		var held []string
		for _, s := range list {
			g, granted := j.granted[s]
			switch {
			case released[hold{kind, s.String()}]:
				if j.absent[s] != "" {
					j.letGo(s, "an operator released it from a hold")
				}
			case j.follows(s):
			case j.absent[s] == "": // it waits for its second list, and that was said
			case granted && !g.over:
				j.letGo(s, j.absent[s])
			case open[hold{kind, s.String()}] && restless > 0:
				j.waitFor(s, WaitsForOperator, heldText)
				j.again(restless)
			case why != "":
				held = append(held, s.String())
				j.waitFor(s, WaitsForOperator, heldText+": "+why)
			default:
				j.grant(s, true)
				j.letGo(s, j.absent[s])
			}
		}
		if len(held) > 0 {
			j.v.Hold = append(j.v.Hold, Hold{ID: j.known.Part.holdPrefix() + holdID(kind, held), Kind: kind, Subjects: held, Why: why})
		}
	}
	slices.SortStableFunc(j.v.Hold, func(a, b Hold) int { return strings.Compare(a.ID, b.ID) })
}

// endpointsLast orders kinds: what becomes of endpoints hangs on their Services.
func endpointsLast(a, b world.Kind) int {
	last := func(k world.Kind) int { return map[bool]int{true: 1}[k == world.KindEndpointSlice] }
	return cmp.Or(last(a)-last(b), strings.Compare(string(a), string(b)))
}

// follows tells whether absent endpoints are those of a Service that is absent, too, and has them go, or stay, as that does: what is in
// doubt is the Service, and people are asked of it alone.
func (j *judgement) follows(s subject) bool {
	if s.Kind != world.KindEndpointSlice {
		return false
	}
	if j.v.gone[objectName{world.KindService, s.ID}] {
		j.letGo(s, "its Service is gone") // without a grant: that would count with other endpoints that go
		return true
	}
	if _, absent := j.lost[s.ID]; !absent {
		return false
	}
	if j.absent[s] != "" { // else that was said
		j.waitFor(s, WaitsForEvidence, "its Service is absent, and may not go yet")
	}
	return true
}

// untilQuiet is how long no more of a kind must go on to be absent than may go by itself, until that was so for as long as absences are
// counted together, and nothing came back meanwhile. What is held then goes by itself: it would not be held today.
func (j *judgement) untilQuiet(kind world.Kind, why string) time.Duration {
	if why != "" {
		delete(j.quiet, kind)
		return j.limits.Window
	}
	since, known := j.quiet[kind]
	if !known {
		since = j.now
		j.quiet[kind] = since
	}
	return since + j.limits.Window - j.now
}

// heldText is said of a subject that waits for an operator.
const heldText = "it is held for an operator"

// letGo lets an absent subject be removed. The slices that a Service lacks are then missed no longer.
func (j *judgement) letGo(s subject, evidence string) {
	j.remove(s, evidence)
	if s.Kind == world.KindEndpointSlice {
		j.slices.settle(j, s.ID)
	}
}

// hold is a subject as a hold names it.
type hold struct {
	kind    world.Kind
	subject string
}

// holdsOf are the subjects that an operator released, and those that wait for that. A release is a word about a
// subject: it counts in whatever other hold the subject is.
func (j *judgement) holdsOf() (released, open map[hold]bool) {
	released, open = map[hold]bool{}, map[hold]bool{}
	for _, h := range j.known.Holds {
		into := open
		if h.Released {
			into = released
		}
		for _, s := range h.Subjects {
			into[hold{h.Kind, s}] = true
		}
	}
	return released, open
}

// massChange says why the absences of a kind are too many to be believed, or nothing. Those that an operator
// released are past counting.
//
// What was let go because lists lacked it is counted with it for Limits.Window, since the next view may lack more. What was seen to go is so for
// Limits.Together: that is how people delete one object after the other, and how a source that lists too little does not.
func (j *judgement) massChange(kind world.Kind, released map[hold]bool) string {
	size, absent, gone, left := 0, 0, 0, 0
	count := func(s subject, known bool) {
		if _, follows := j.lost[s.ID]; follows && kind == world.KindEndpointSlice {
			return
		}
		if len(released) > 0 && released[hold{kind, s.String()}] {
			return
		}
		size++
		g, granted := j.granted[s]
		_, isAbsent := j.absent[s]
		letGo := granted && g.absence && !j.past(g)
		if isAbsent || letGo {
			absent++
		}
		if letGo {
			gone++
		}
		if known && !isAbsent && (!granted || g.over) {
			left++
		}
	}
	for _, o := range j.known.Objects {
		if o.Kind == kind {
			count(subject(o), true)
		}
	}
	for s, g := range j.granted {
		if s.Kind == kind && !j.recorded[s] && !j.past(g) {
			count(s, false)
		}
	}
	switch {
	case absent > j.limits.Few && 2*absent > size && gone > 0: // more than the hold has subjects
		return fmt.Sprintf("%d of %d are absent, counting those that were let go within %s: %d", absent, size, j.limits.Window, gone)
	case absent > j.limits.Few && 2*absent > size:
		return fmt.Sprintf("%d of %d are absent", absent, size)
	case size > j.limits.Few && left == 0:
		return fmt.Sprintf("the last of %d would go", size)
	}
	return ""
}

// past tells whether a removal counts no more with what goes now.
func (j *judgement) past(g grant) bool { return g.over && !g.unseen && j.now-g.at > j.limits.Together }

// settleHolds lifts the holds of which no subject is absent any more: all came back, or went.
func (j *judgement) settleHolds() {
	names := map[hold]bool{}
	for s := range j.absent {
		names[hold{s.Kind, s.String()}] = true
	}
	for _, h := range j.known.Holds {
		view, yielded := j.views[h.Kind]
		if j.blind(view, yielded) != "" {
			continue
		}
		if !slices.ContainsFunc(h.Subjects, func(s string) bool { return names[hold{h.Kind, s}] }) {
			j.v.Lift = append(j.v.Lift, h.ID)
		}
	}
}

// holdID names a set of subjects. A different set has a different name, so that an operator releases what was shown.
func holdID(kind world.Kind, subjects []string) string {
	sum := sha256.Sum256([]byte(string(kind) + "\n" + strings.Join(subjects, "\n")))
	return strings.ToLower(string(kind)) + "-" + hex.EncodeToString(sum[:6])
}
