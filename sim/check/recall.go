// SPDX-License-Identifier: Apache-2.0

package check

import (
	"maps"
	"time"

	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
)

// A member whose machine booted neither votes nor follows before as many others told it what they know of it as meet every majority. Where too few
// of them are there, those do after a while that a majority lacks beside it. Until then nobody can be elected with it, and it counts for no
// majority. That is told from outside: what others do who run undisturbed, and who of them did for long enough to be asked.

const (
	// recallWithin is for how long a member waits for more than a majority lacks (docs/failures.md).
	recallWithin = 10 * time.Second
	// recallAsked is within what time an undisturbed member surely was asked by another one, which asks all others at once, gives up after two
	// seconds, and asks again.
	recallAsked = 3 * time.Second
)

// recall is what a member waits for whose machine booted.
type recall struct {
	began    time.Duration   // the present life of its process
	answered map[string]bool // by whom
	enough   time.Duration   // since when as many were there to ask as a majority lacks, or never
}

// recalled takes in what has such a wait begin anew, and what shows that there is none any more.
func (s *scene) recalled(e event.Event) {
	switch x := e.(type) {
	case event.Started:
		if s.recalls[x.Process] != nil {
			s.recalls[x.Process] = s.newRecall()
		}
		if x.Release == start.Older { // which asks nobody
			delete(s.recalls, x.Process)
		}
	case event.Wiped:
		if !x.Old { // it promised nothing yet
			delete(s.recalls, x.Machine)
		}
	case event.Leading:
		if x.On {
			delete(s.recalls, x.Process)
		}
	case event.Answered:
		if r := s.recalls[x.From]; r != nil && x.Asked >= r.began {
			delete(s.recalls, x.From)
		}
	}
}

func (s *scene) newRecall() *recall {
	return &recall{began: s.now, answered: map[string]bool{}, enough: never}
}

// asks notes who must have answered by now.
func (s *scene) asks() {
	if len(s.recalls) == 0 {
		return
	}
	_, fewest := s.recallOf()
	maps.DeleteFunc(s.recalls, func(member string, r *recall) bool {
		if !s.worksFor(member, recallAsked) {
			return false
		}
		for _, other := range s.members() {
			if other != member && s.worksFor(other, recallAsked) {
				r.answered[other] = true
			}
		}
		if r.enough == never && len(r.answered) >= fewest {
			r.enough = s.now - recallAsked
		}
		return r.enough != never && s.now-r.enough >= recallWithin
	})
	s.sounds()
}

// recallOf are how many others have to answer, and how many do after a while.
func (s *scene) recallOf() (all, fewest int) {
	quorum := len(s.members())/2 + 1
	return len(s.members()) - quorum + 1, quorum - 1
}

// recalling tells whether a member may be silent still.
func (s *scene) recalling(member string) bool {
	r := s.recalls[member]
	if r == nil {
		return false
	}
	there := 0
	for _, other := range s.members() {
		if other != member && (r.answered[other] || s.runs[other] && s.unexcused(other)) {
			there++
		}
	}
	all, _ := s.recallOf()
	return there < all
}
