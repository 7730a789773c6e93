// SPDX-License-Identifier: Apache-2.0

package check

import (
	"time"

	"fairlead.io/fairlead/sim/event"
)

// trouble is when something had speakers die, from its beginning to its last end. The zero value is never.
type trouble struct {
	ever        bool
	on          int // how much of it is going on
	from, until time.Duration
}

// takes takes in that it begins, or ends.
func (t *trouble) takes(on bool, now time.Duration) {
	if !t.ever {
		t.ever, t.from = true, now
	}
	if t.on--; on {
		t.on += 2
	}
	t.until = now
}

// The times for which members hold back a peer of which their speakers die: five seconds, then twice as long each time, five minutes at most. Each of them
// may be a quarter shorter, so that the last one that began in a time is not twice four thirds of it.
const (
	leastHold = 5 * time.Second
	mostHold  = 5 * time.Minute
)

// holds is for how long after its end a peer may be held back for it.
func (t trouble) holds() time.Duration { return min(leastHold+3*(t.until-t.from), mostHold) }

// lasts tells whether it goes on, or ended so short a while ago that somebody may be held back for it, and a time after that.
func (t trouble) lasts(now, after time.Duration) bool {
	return t.ever && (t.on > 0 || now-t.until <= t.holds()+after)
}

// longHold is the longest time for which a member holds back a peer that a speaker had lived with when it died: twice as long as they did, which was less than
// a minute. Who lived with one for longer is not suspected.
const longHold = 2 * time.Minute

// holdsBack tells whether a member has no session with a switch, and may hold it back since speakers died.
func (s *scene) holdsBack(member, sw string) bool {
	lately := func(t trouble) bool { return t.ever && (t.on > 0 || s.now-t.until <= longHold) }
	return !s.sessions[link{sw, member}].up && (lately(s.hostile[sw]) || lately(s.killed))
}

// trouble takes in faults by which speakers die.
func (s *scene) trouble(f event.FaultBegan, on bool) {
	switch f.Fault {
	case "speaker-kill":
		s.killed.takes(on, s.now)
	case "hostile-switch":
		for _, sw := range f.On {
			t := s.hostile[sw]
			t.takes(on, s.now)
			s.hostile[sw] = t
		}
	}
}

// mute tells whether no member has had a session with a switch for a time, and none need have: it was hostile, and is held back; or speakers were killed
// by something else, again and again, before they had announced everything, of which a switch keeps nothing (RFC 4724 §4.2), and after which an innocent
// one may be held back. What a hostile switch does is no excuse at others.
func (s *scene) mute(sw string, d time.Duration) bool {
	for _, member := range s.members() {
		if at := s.sessions[link{sw, member}]; at.up && s.now-at.since >= d {
			return false
		}
	}
	return s.hostile[sw].lasts(s.now, mostPause+d) || s.killed.lasts(s.now, mostPause+d)
}
