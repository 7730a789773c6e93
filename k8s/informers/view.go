// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"fmt"
	"time"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/convert"
)

// maxProblems bounds what is shown to people at once.
const maxProblems = 1_000

// refreshLocked brings the World up to date, as far as anything changed.
func (s *Source) refreshLocked() {
	for _, r := range s.racks {
		if r.publish(&s.world) {
			s.notes = true
		}
	}
	s.wakeLocked()
	s.noteLocked()
	if s.gone {
		s.gone = false
		w := world.World{}
		for _, r := range s.racks {
			w.Deleted = r.deletions(w.Deleted)
		}
		w.Sort()
		s.world.Deleted = w.Deleted
	}
}

// noteLocked gathers unusable objects and problems anew, and logs what is new of them.
func (s *Source) noteLocked() {
	if !s.notes {
		return
	}
	s.notes = false
	var w world.World
	for _, r := range s.racks {
		w.Unusable, w.Problems = r.notes(w.Unusable, w.Problems)
	}
	w.Problems = append(w.Problems, convert.Overlaps(s.world.Pools)...)
	away := s.awayLocked()
	for _, l := range s.lines {
		w.Problems = l.problems(w.Problems, away)
	}
	w.Problems = s.identity.problems(w.Problems, away)
	w.Sort()
	if more := len(w.Problems) - maxProblems; more > 0 {
		w.Problems = append(w.Problems[:maxProblems:maxProblems], world.Problem{
			Severity: world.Degraded, Why: fmt.Sprintf("%d more problems", more), Remedy: "mend the ones above first"})
	}
	s.world.Unusable, s.world.Problems = w.Unusable, w.Problems
	s.tellLocked()
}

// tellLocked logs problems that are new, and those that are over.
func (s *Source) tellLocked() {
	now := make(map[world.Problem]bool, len(s.world.Problems))
	for _, p := range s.world.Problems {
		if p.Severity == world.Ignored {
			continue
		}
		now[p] = true
		if s.told[p] {
			continue
		}
		if p.Object == (world.Ref{}) {
			s.log.Warn("cluster not read in full", "source", Name, "reason", p.Why, "remedy", p.Remedy)
		} else {
			s.log.Warn("object not used as written", "source", Name, "object", p.Object.String(), "field", p.Field,
				"reason", p.Why, "remedy", p.Remedy)
		}
	}
	for p := range s.told {
		if !now[p] && p.Object == (world.Ref{}) {
			s.log.Info("trouble with the cluster is over", "source", Name, "reason", p.Why)
		}
	}
	s.told = now
}

// viewsLocked tells how far each kind can be trusted now, and the whole.
func (s *Source) viewsLocked(now time.Time) (views []world.KindView, complete bool, age time.Duration) {
	complete = true
	for _, kind := range world.Kinds() {
		v := s.viewLocked(kind, now)
		views = append(views, v)
		complete = complete && v.Complete
		age = max(age, v.Age)
	}
	return views, complete, age
}

// viewLocked is the view of a kind: of several lines, the worst of each. One whose definition is missing has no
// version and is left out of the question.
func (s *Source) viewLocked(kind world.Kind, now time.Time) world.KindView {
	v := world.KindView{Kind: kind, Listed: true, Complete: true}
	first := true
	for _, l := range s.lines {
		if l.kind != kind {
			continue
		}
		v.Listed = v.Listed && l.listed
		v.Complete = v.Complete && l.listed
		v.Away = v.Away || len(l.troubles) > 0
		if first || l.lists < v.Lists {
			v.Lists = l.lists
		}
		if l.version != 0 && (v.Version == 0 || l.version < v.Version) {
			v.Version = l.version
		}
		if l.lists > 0 {
			v.ListAge = max(v.ListAge, now.Sub(l.listBegan))
			if ended := now.Sub(l.listEnded); v.ListedAge == 0 || ended < v.ListedAge {
				v.ListedAge = ended
			}
		}
		if !l.heard.IsZero() {
			v.Age = max(v.Age, now.Sub(l.heard))
		}
		first = false
	}
	if s.identity.uid == "" {
		v.Listed, v.Complete = false, false
	}
	if !v.Listed {
		v.Version = 0 // not that of all lines yet
	}
	v.Away = v.Away || s.identity.trouble != nil
	v.Complete = v.Complete && !v.Away
	return v
}

// poke says that the World changed.
func (s *Source) poke() { poke(s.changed) }
