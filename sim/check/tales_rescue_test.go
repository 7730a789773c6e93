// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// What came after a backup is gone when it is restored, and nothing else is.
func rescueTales() []tale {
	return []tale{
		fine("S2", "restored-to-what-it-was", func(s *story) {
			s.put("c1", "x", "1")
			backup := snapshot(s)
			s.put("c1", "x", "2")
			s.get("c1", "x", "2")
			s.say(event.CallBegan{Client: "c2", ID: 90, Do: "put", Key: "x", Value: "3"}, event.CallBegan{Client: "c3", ID: 91, Do: "get", Key: "x"})
			restored(s, backup)
			s.say(event.CallEnded{Client: "c2", ID: 90, Outcome: "ok", Index: 999}, event.CallEnded{Client: "c3", ID: 91, Outcome: "ok", Value: "2"})
			s.get("c1", "x", "1")
			s.put("c1", "x", "4")
			s.get("c1", "x", "4")
		}),
		breaks("S2", "restored-to-something-else", func(s *story) {
			s.put("c1", "x", "1")
			backup := snapshot(s)
			s.put("c1", "x", "2")
			restored(s, backup)
			s.get("c1", "x", "2")
		}),
		breaks("S2", "stale-before-it-was-restored", func(s *story) {
			s.put("c1", "x", "1")
			backup := snapshot(s)
			s.put("c1", "x", "2")
			s.get("c1", "x", "1")
			restored(s, backup)
		}),
		fine("S8", "lost-with-a-backup", func(s *story) {
			backup := snapshot(s)
			s.publish("web", vip1, "n1")
			s.wait(5 * time.Second)
			restored(s, backup)
			s.flow(vip1, "n1", "")
		}),
		breaks("S8", "lost-beside-a-backup", func(s *story) {
			s.publish("web", vip1, "n1")
			s.wait(5 * time.Second)
			backup := snapshot(s)
			s.commit(&fsm.PutNode{ID: "n9"})
			restored(s, backup)
			s.flow(vip1, "n1", "")
		}),
	}
}

// restored has an operator restore a backup, and everybody take it in, or only some.
func restored(s *story, backup []byte, only ...string) {
	s.say(event.CallBegan{Client: "operator", ID: 80, Do: "restore"})
	load(s, backup)
	s.entry(&fsm.NewEpoch{Group: "g", Epoch: 2}) // is part of what is restored
	backup = snapshot(s)
	if only == nil {
		only = s.members()
	}
	for _, m := range only {
		s.say(event.Restored{Process: m, Life: 1, Index: uint64(s.state.Applied()), Digest: s.state.Digest().String(), Snapshot: backup})
	}
}
