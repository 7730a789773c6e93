// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"time"

	"fairlead.io/fairlead/sim/event"
)

// What a member does whose data folder was put back.
func folderTales() []tale {
	// again has m3 start with a folder that goes up to an entry, some entries before the newest, in a boot.
	again := func(s *story, before uint64, boot string) {
		s.wait(time.Second)
		s.put("c1", "x", "1")
		s.put("c1", "x", "2")
		last := uint64(s.state.Applied()) - before
		s.wait(time.Second)
		s.say(
			event.Ended{Process: "m3", Life: 1, Killed: true}, event.Wiped{Machine: "m3", Old: true},
			event.Started{Process: "m3", Life: 2, Boot: boot}, event.Holds{Process: "m3", Life: 2, Last: last},
		)
		s.wait(time.Second)
	}
	follows := func(s *story) {
		s.say(event.Answered{Process: "m1", Life: 1, From: "m3", Does: "follows", Asked: s.now})
	}
	return []tale{
		breaks("S26", "put-back-and-follows", func(s *story) { again(s, 1, ""); follows(s) }),
		breaks("S26", "put-back-and-votes", func(s *story) {
			again(s, 1, "")
			s.say(event.Answered{Process: "m1", Life: 1, From: "m3", Does: "votes for", Asked: s.now})
		}),
		breaks("S26", "put-back-and-leads", func(s *story) {
			again(s, 1, "")
			s.say(event.Leading{Process: "m3", Life: 2, Term: 2, On: true})
		}),
		breaks("S26", "put-back-in-another-boot-with-all-others-there", func(s *story) { again(s, 1, "b2"); follows(s) }),
		fine("S26", "put-back-in-another-boot-with-another-one-that-began-anew", func(s *story) {
			again(s, 1, "b2")
			s.say(event.Ended{Process: "m2", Life: 1, Killed: true}, event.Started{Process: "m2", Life: 2}, event.Holds{Process: "m2", Life: 2})
			follows(s)
		}),
		fine("S26", "holds-all-and-follows", func(s *story) { again(s, 0, ""); follows(s) }),
		fine("S26", "followed-before-it-was-put-back", func(s *story) {
			asked := s.now
			again(s, 1, "")
			s.say(event.Answered{Process: "m1", Life: 1, From: "m3", Does: "follows", Asked: asked})
		}),
		fine("S26", "follows-with-an-empty-disk", func(s *story) {
			again(s, 1, "")
			s.say(
				event.Ended{Process: "m3", Life: 2, Killed: true}, event.Wiped{Machine: "m3"},
				event.Started{Process: "m3", Life: 3}, event.Holds{Process: "m3", Life: 3},
			)
			follows(s)
		}),
	}
}
