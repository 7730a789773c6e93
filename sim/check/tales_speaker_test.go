// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"time"

	"fairlead.io/fairlead/sim/event"
)

// speakerTales are of processes of BGP speakers that end.
func speakerTales() []tale {
	return []tale{
		fine("S21", "back-in-time", func(s *story) {
			speakers(s)
			for range 3 {
				s.crash("m1")
				s.wait(300 * time.Millisecond)
				s.speak("m1")
				s.wait(3 * time.Second)
			}
		}),
		breaks("S21", "nobody-speaks", func(s *story) {
			speakers(s)
			s.crash("m1")
			s.wait(3 * time.Second)
		}),
		fine("S21", "died-often", func(s *story) {
			speakers(s)
			for range 7 { // 0.1 to 6.4 s
				s.crash("m1")
				s.say(event.Speaking{Process: "m1", Life: 1, On: true})
			}
			s.crash("m1")
			s.wait(11 * time.Second)
			s.speak("m1")
			s.wait(3 * time.Second)
		}),
		breaks("S21", "no-session-again", func(s *story) {
			speakers(s)
			s.crash("m1")
			s.say(event.Speaking{Process: "m1", Life: 1, On: true})
			s.wait(13 * time.Second)
		}),
		breaks("S21", "paths-withdrawn", func(s *story) {
			speakers(s)
			s.crash("m1")
			s.forwardBy(vip1, []string{"m2", "m3"}, "n1")
		}),
		breaks("S21", "paths-not-announced-anew", func(s *story) {
			speakers(s)
			s.crash("m1")
			s.speak("m1")
			s.forwardBy(vip1, []string{"m2", "m3"}, "n1")
		}),
		fine("S21", "died-before-it-had-announced", func(s *story) {
			speakers(s)
			s.crash("m1")
			s.speak("m1")
			s.crash("m1")
			s.forwardBy(vip1, []string{"m2", "m3"}, "n1")
			s.speak("m1")
			s.wait(3 * time.Second)
		}),
		fine("S21", "what-was-asked-for-went", func(s *story) {
			speakers(s)
			s.crash("m1")
			s.speak("m1")
			s.serve("web", "n2")
			s.commit(s.hops(vip1, "n2"))
			s.forwardBy(vip1, []string{"m2", "m3"}, "n2")
			s.forward(vip1, "n2")
			s.wait(3 * time.Second)
		}),
		fine("S8", "lost-to-speakers-that-were-killed-again", func(s *story) {
			speakers(s)
			s.say(event.FaultBegan{ID: 1, Fault: "speaker-kill", On: []string{"m1/speaker", "m2/speaker", "m3/speaker"}})
			s.dieTwice("signal: killed")
			s.forward(vip1)
			s.flow(vip1, "", "")
			s.forward(vip1, "n1", "n2")
			s.wait(3 * time.Second)
		}),
		breaks("S8", "lost-to-speakers-that-a-neighbour-ended-again", func(s *story) {
			speakers(s)
			s.say(event.FaultBegan{ID: 1, Fault: "hostile-switch", On: []string{"other"}})
			s.dieTwice("signal: aborted")
			s.forward(vip1)
			s.flow(vip1, "", "")
		}),
		breaks("S21", "paths-withdrawn-as-a-neighbour-ends-it-again", func(s *story) {
			speakers(s)
			s.say(event.FaultBegan{ID: 1, Fault: "hostile-switch", On: []string{"other"}})
			s.dieTwice("signal: aborted")
			s.forwardBy(vip1, []string{"m2", "m3"}, "n1")
		}),
		breaks("S21", "innocent-held-back", func(s *story) {
			speakers(s)
			s.say(event.FaultBegan{ID: 1, Fault: "hostile-switch", On: []string{"other"}})
			s.dieTwice("signal: aborted")
			s.crash("m1")
			s.say(event.Speaking{Process: "m1", Life: 1, On: true})
			s.wait(13 * time.Second)
		}),
		breaks("S21", "died-of-neighbours-again-and-again", func(s *story) {
			speakers(s)
			s.say(event.FaultBegan{ID: 1, Fault: "hostile-switch", On: []string{"other"}})
			s.dieTwice("signal: aborted")
			s.dieTwice("signal: aborted")
		}),
		breaks("S8", "lost-to-speakers-that-died-once", func(s *story) {
			speakers(s)
			for _, m := range s.members() {
				s.crash(m)
			}
			s.forward(vip1)
			s.flow(vip1, "", "")
		}),
		breaks("S21", "member-ended", func(s *story) {
			speakers(s)
			s.crash("m2")
			s.say(event.Ended{Process: "m2", Life: 1, Why: "exit status 1"})
		}),
		breaks("S21", "leader-lost", func(s *story) {
			speakers(s)
			s.crash("m1")
			s.say(event.Leading{Process: "m1", Life: 1, Term: 1})
		}),
		fine("S21", "leader-cut-off", func(s *story) {
			speakers(s)
			s.say(event.FaultBegan{ID: 1, Fault: "partition", On: []string{"m1"}})
			s.crash("m1")
			s.say(event.Leading{Process: "m1", Life: 1, Term: 1}, event.Leading{Process: "m2", Life: 1, Term: 2, On: true})
			s.say(event.Speaking{Process: "m1", Life: 1, On: true})
		}),
	}
}

// speakers has all members speak, and an address announced, for long enough.
func speakers(s *story) {
	for _, m := range s.members() {
		s.say(event.Speaking{Process: m, Life: 1, On: true})
	}
	s.publish("web", vip1, "n1", "n2")
	s.wait(5 * time.Second)
}

// crash ends the speaker of a member.
func (s *story) crash(member string) {
	s.say(event.Speaking{Process: member, Life: 1, Why: "signal: killed"}, event.Session{Switch: "sw", Member: member})
}

// dieTwice ends the speakers of all members, and of those that follow.
func (s *story) dieTwice(why string) {
	for range 2 {
		for _, m := range s.members() {
			s.say(event.Speaking{Process: m, Life: 1, Why: why}, event.Session{Switch: "sw", Member: m})
		}
		s.wait(200 * time.Millisecond)
		for _, m := range s.members() {
			s.speak(m)
		}
	}
}

// speak has another one speak in its place.
func (s *story) speak(member string) {
	s.say(event.Speaking{Process: member, Life: 1, On: true}, event.Session{Switch: "sw", Member: member, Up: true})
}
