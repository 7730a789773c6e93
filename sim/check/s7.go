// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// s7 keeps which calls are in flight, by subject: from "sent" to "answered" or "heard", or to the deadline of the
// attempt, counted from when it was first seen committed. The death of the caller ends nothing. What is sent must have been
// committed before: else nobody after the caller could know that it may be in flight.
type s7 struct {
	idle
	*judge
	flying    map[fsm.Subject]flight
	deadlines map[fsm.Revision]time.Duration
}

type flight struct {
	call    callID
	attempt fsm.Revision
	until   time.Duration
	number  uint64
}

func newS7(j *judge) rule {
	return &s7{judge: j, flying: map[fsm.Subject]flight{}, deadlines: map[fsm.Revision]time.Duration{}}
}

func (r *s7) step(s *step) {
	for i, p := range s.proposals {
		if c, ok := p.Command.(*fsm.BeginOperation); ok && s.outcomes[i].Reject == fsm.Accepted {
			r.deadlines[s.outcomes[i].Revision] = s.At + c.Deadline
		}
	}
}

func (r *s7) hear(e event.Stamped) {
	x, ok := e.Event.(event.Drive)
	if !ok || x.Action == fsm.ActionAddress.String() { // a question changes nothing, however late
		return
	}
	subject := r.subjectOf(x)
	is := r.flying[subject]
	switch x.Phase {
	case "sent":
		r.checked()
		if is.number != 0 && r.scene.now < is.until {
			r.broken(string(subject), fmt.Sprintf("attempt %s was sent while attempt %s was in flight", x.Attempt, is.attempt), is.number, e.Number)
		}
		until, known := r.deadlines[x.Attempt]
		if !known {
			r.broken(string(subject), fmt.Sprintf("attempt %s was sent, and the record does not know it", x.Attempt), e.Number)
		}
		r.flying[subject] = flight{r.callOf(x), x.Attempt, until, e.Number}
	case "answered", "heard":
		if is.call == r.callOf(x) {
			delete(r.flying, subject)
		}
	}
}
