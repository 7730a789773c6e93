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
		fine("S8", "stays-until-the-quarantine-is-over", func(s *story) {
			restored(s, movedSince(s))
			s.wait(4 * time.Second)
			s.commit(s.hops(vip1, "n1", "n2"))
			s.acknowledge("n2")
			endQuarantine(s)
			s.wait(4 * time.Second)
		}),
		breaks("S8", "stays-beyond-the-quarantine", func(s *story) {
			restored(s, movedSince(s))
			endQuarantine(s)
			s.wait(4 * time.Second)
		}),
		breaks("S8", "comes-in-the-quarantine", func(s *story) {
			restored(s, movedSince(s))
			s.commit(&fsm.PutNode{ID: "n9"})
			s.forward(vip1, "n1", "n2", "n3")
			s.wait(4 * time.Second)
		}),
	}
}

// movedSince has a Service on one more node than the backup knows.
func movedSince(s *story) (backup []byte) {
	s.publish("web", vip1, "n1")
	backup = snapshot(s)
	s.serve("web", "n1", "n2")
	s.commit(s.hops(vip1, "n1", "n2"))
	s.steer("n2", vip1, true)
	s.acknowledge("n2")
	s.forward(vip1, "n1", "n2")
	s.wait(5 * time.Second)
	return backup
}

func endQuarantine(s *story) {
	s.commit(&fsm.EndQuarantine{Since: s.state.Read().Group().Quarantine})
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
