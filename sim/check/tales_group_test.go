// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"time"

	"fairlead.io/fairlead/sim/check"
	"fairlead.io/fairlead/sim/event"
)

// What members have of the record, what is said of that, and by which record they answer.
func groupTales() []tale {
	led := func(s *story) {
		s.say(event.Leading{Process: "m1", Life: 1, Term: 1, On: true})
		s.put("c1", "x", "1")
		s.wait(10 * time.Second)
	}
	answers := func(s *story, id int, epoch uint64) {
		s.say(event.CallEnded{Client: "c", ID: id, Outcome: "ok", Epoch: epoch, Index: 1})
	}
	asks := func(s *story, id int) { s.say(event.CallBegan{Client: "c", ID: id, Do: "get", Key: "y", To: "m2"}) }
	// missed is an entry that m3 does not get.
	missed := func(s *story) {
		a, _ := s.entry(check.Put("x", "2"))
		s.apply(a, "m1", "m2")
	}
	sends := func(s *story, times int, every time.Duration) {
		for range times {
			s.say(event.Sends{Process: "m1", Life: 1, To: "m3", Index: 1})
			s.wait(every)
		}
	}
	judged := func(s *story, healthy bool) {
		s.say(event.Judged{Member: "m3", Leader: "m1", Healthy: healthy, Asked: s.now})
	}
	// apart has m3 be cut off, which says so after a time.
	apart := func(s *story, says, lasts time.Duration) {
		s.say(event.Contact{Process: "m3", Life: 1, Quorum: true})
		s.say(event.FaultBegan{ID: 1, Fault: "partition", On: []string{"m3"}})
		s.wait(min(says, lasts))
		if says < lasts {
			s.say(event.Contact{Process: "m3", Life: 1})
			s.wait(lasts - says)
		}
		s.say(event.FaultEnded{ID: 1})
	}
	return []tale{
		fine("L4", "everybody-has-it", led),
		breaks("L4", "one-never-gets-it", func(s *story) {
			led(s)
			missed(s)
			s.wait(6 * time.Second)
		}),
		breaks("L4", "the-leader-lacks-it-itself", func(s *story) {
			led(s)
			a, _ := s.entry(check.Put("x", "2"))
			s.apply(a, "m2", "m3")
			s.wait(6 * time.Second)
		}),
		fine("L4", "one-was-away", func(s *story) {
			led(s)
			s.say(event.FaultBegan{ID: 1, Fault: "cut", On: []string{"m3"}})
			a, _ := s.entry(check.Put("x", "2"))
			s.apply(a, "m1", "m2")
			s.wait(20 * time.Second)
			s.say(event.FaultEnded{ID: 1})
			s.wait(4 * time.Second)
			s.apply(a, "m3")
			s.wait(6 * time.Second)
		}),
		breaks("L4", "one-was-away-and-gets-nothing-since", func(s *story) {
			led(s)
			s.say(event.FaultBegan{ID: 1, Fault: "cut", On: []string{"m3"}})
			missed(s)
			s.say(event.FaultEnded{ID: 1})
			s.wait(6 * time.Second)
		}),
		breaks("L4", "one-ends-again-and-again", func(s *story) {
			led(s)
			missed(s)
			for life := 2; life < 12; life++ {
				s.say(event.Ended{Process: "m3", Life: life - 1, Why: "it cannot"})
				s.wait(3 * time.Second)
				s.say(event.Started{Process: "m3", Life: life})
				s.wait(time.Second)
			}
		}),
		fine("L4", "one-ended-once", func(s *story) {
			led(s)
			s.say(event.Ended{Process: "m3", Life: 1, Why: "its disk said something"})
			a, _ := s.entry(check.Put("x", "2"))
			s.apply(a, "m1", "m2")
			s.wait(16 * time.Second)
			s.say(event.Started{Process: "m3", Life: 2})
			s.wait(time.Second)
			a.Life = 2
			s.apply(a, "m3")
			s.wait(6 * time.Second)
		}),
		fine("S23", "restored", func(s *story) {
			asks(s, 100)
			answers(s, 100, 1)
			asks(s, 101)
			asks(s, 102)
			answers(s, 102, 2)
			answers(s, 101, 1) // it was asked before
			asks(s, 103)
			answers(s, 103, 2)
		}),
		breaks("S23", "answered-by-the-former-record", func(s *story) {
			asks(s, 100)
			answers(s, 100, 2)
			asks(s, 101)
			answers(s, 101, 1)
		}),
		fine("S24", "now-and-then", func(s *story) { sends(s, 12, 12*time.Second) }),
		fine("S24", "to-one-that-nothing-gets-to", func(s *story) {
			s.say(event.FaultBegan{ID: 1, Fault: "cut", On: []string{"m3"}})
			sends(s, 20, time.Second)
			s.say(event.FaultEnded{ID: 1})
			sends(s, 4, time.Second)
		}),
		breaks("S24", "again-and-again", func(s *story) { sends(s, 8, time.Second) }),
		fine("S25", "healthy", func(s *story) {
			led(s)
			judged(s, true)
		}),
		fine("S25", "cut-off", func(s *story) {
			led(s)
			s.say(event.FaultBegan{ID: 1, Fault: "cut", On: []string{"m3"}})
			missed(s)
			s.wait(15 * time.Second)
			judged(s, false)
		}),
		breaks("S25", "one-that-has-applied-nothing-is-called-healthy", func(s *story) {
			led(s)
			s.say(event.FaultBegan{ID: 1, Fault: "cut", On: []string{"m3"}})
			s.say(event.Ended{Process: "m3", Life: 1, Why: "killed"})
			s.say(event.Started{Process: "m3", Life: 2})
			s.wait(12 * time.Second)
			judged(s, true)
		}),
		breaks("S25", "healthy-and-cut-off", func(s *story) {
			led(s)
			s.say(event.FaultBegan{ID: 1, Fault: "cut", On: []string{"m3"}})
			missed(s)
			s.wait(15 * time.Second)
			judged(s, true)
		}),
		breaks("S25", "called-sick-without-a-reason", func(s *story) {
			led(s)
			judged(s, false)
		}),
		fine("S27", "says-so-in-time", func(s *story) { apart(s, 3*time.Second, 20*time.Second) }),
		breaks("S27", "says-so-late", func(s *story) { apart(s, 6*time.Second, 20*time.Second) }),
		fine("S27", "cut-off-for-a-moment", func(s *story) { apart(s, 20*time.Second, 3*time.Second) }),
		fine("S27", "stands-still", func(s *story) {
			s.say(event.FaultBegan{ID: 2, Fault: "freeze", On: []string{"m3"}})
			apart(s, 20*time.Second, 20*time.Second)
		}),
		breaks("S27", "goes-on-and-does-not-say-so", func(s *story) {
			s.say(event.Contact{Process: "m3", Life: 1, Quorum: true})
			s.say(event.FaultBegan{ID: 2, Fault: "freeze", On: []string{"m3"}})
			s.say(event.FaultBegan{ID: 1, Fault: "partition", On: []string{"m3"}})
			s.wait(20 * time.Second)
			s.say(event.FaultEnded{ID: 2})
			s.wait(2 * time.Second)
		}),
		fine("S27", "with-a-majority", func(s *story) {
			s.say(event.Contact{Process: "m3", Life: 1, Quorum: true})
			s.say(event.FaultBegan{ID: 1, Fault: "partition", On: []string{"m2", "m3"}})
			s.wait(20 * time.Second)
		}),
	}
}
