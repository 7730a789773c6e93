// SPDX-License-Identifier: Apache-2.0

package check

import (
	"time"

	"fairlead.io/fairlead/sim/event"
)

// deaths are when the speaker of a member died last, and the time before that; never if it did not.
type deaths struct{ last, before time.Duration }

// dies takes in that a speaker ended.
func (s *scene) dies(x event.Speaking) {
	if x.On || x.Why == "" {
		return
	}
	d, ever := s.died[x.Process]
	if !ever {
		d.last = never
	}
	s.died[x.Process] = deaths{s.now, d.last}
}

// mute tells whether no member has had a session with a switch for a time, since speakers died before they had announced everything again: a switch
// keeps nothing then (RFC 4724 §4.2). It is what a neighbour can do to the paths at others by having speakers die.
func (s *scene) mute(sw string, d time.Duration) bool {
	again := false
	for _, member := range s.members() {
		if at := s.sessions[link{sw, member}]; at.up && s.now-at.since >= d {
			return false
		}
		x, ever := s.died[member]
		again = again || ever && x.before != never && x.last-x.before <= mostPause+d && s.now-x.last <= mostPause+d
	}
	return again
}
