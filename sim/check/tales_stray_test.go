// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
)

// Members whose copies of the record are other ones than the group's.
func strayTales() []tale {
	// strays has m3 take in an entry by which its copy is another one.
	strays := func(s *story, prefix string) {
		s.wait(time.Second)
		s.say(event.FaultBegan{ID: 1, Fault: "stray-record", On: []string{"m3"}})
		a, _ := s.entry(&fsm.PutRegister{ID: fsm.RegisterID(prefix + "m3"), UID: "stray", Version: 1, Spec: []byte("{}")})
		s.apply(a, "m1", "m2")
		if prefix == start.OtherRecord {
			a.Digest = "another one"
		}
		s.apply(a, "m3")
	}
	ends := func(s *story, member string) { s.say(event.Ended{Process: member, Life: 1}) }
	again := func(s *story) {
		s.say(event.Started{Process: "m3", Life: 2}, event.Restored{Process: "m3", Life: 2, Index: uint64(s.state.Applied()), Digest: "another one"})
	}
	var tales []tale
	for _, prefix := range []string{start.OtherRecord, start.FlippedBit} {
		tales = append(tales,
			breaks("S28", prefix+"and-goes-on", func(s *story) { strays(s, prefix); s.wait(80 * time.Second) }),
			fine("S28", prefix+"and-ends", func(s *story) { strays(s, prefix); s.wait(time.Minute); ends(s, "m3"); s.wait(time.Minute) }),
			breaks("S28", prefix+"and-another-one-ends", func(s *story) { strays(s, prefix); ends(s, "m1") }),
			fine("S28", prefix+"beside-one-that-is-disturbed", func(s *story) {
				strays(s, prefix)
				s.say(event.FaultBegan{ID: 2, Fault: "cut", On: []string{"m1"}})
				s.wait(80 * time.Second)
			}),
			fine("S28", prefix+"and-is-killed", func(s *story) {
				strays(s, prefix)
				s.say(event.Ended{Process: "m3", Life: 1, Killed: true}, event.Started{Process: "m3", Life: 2})
				s.wait(80 * time.Second)
			}),
		)
	}
	return slices.Concat(tales, []tale{
		breaks("S28", "begins-again-on-its-folder", func(s *story) { strays(s, start.OtherRecord); ends(s, "m3"); again(s) }),
		fine("S28", "begins-again-with-an-empty-one", func(s *story) {
			strays(s, start.OtherRecord)
			ends(s, "m3")
			s.say(event.Wiped{Machine: "m3"}, event.Started{Process: "m3", Life: 2})
			s.apply(event.Applied{}, "m3")
		}),
		fine("S28", "reads-anew-what-flipped", func(s *story) {
			strays(s, start.FlippedBit)
			ends(s, "m3")
			s.say(event.Started{Process: "m3", Life: 2}, event.Restored{Process: "m3", Life: 2, Index: uint64(s.state.Applied()), Digest: s.state.Digest().String()})
		}),
		breaks("S1", "another-record-on-nobodys-account", func(s *story) {
			a, _ := s.entry(&fsm.PutRegister{ID: start.OtherRecord + "m3", UID: "stray", Version: 1, Spec: []byte("{}")})
			s.apply(a, "m1", "m2")
			a.Digest = "another one"
			s.apply(a, "m3")
		}),
	})
}
