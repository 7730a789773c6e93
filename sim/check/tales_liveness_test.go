// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

func livenessTales() []tale {
	return []tale{
		fine("L1", "everything-agrees", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.say(event.Calm{})
			s.wait(65 * time.Second)
		}),
		fine("L1", "backend-there", func(s *story) {
			bound(s)
			s.say(event.Calm{})
			s.wait(100 * time.Second)
		}),
		fine("L1", "backend-taken-off-by-hand", func(s *story) {
			bound(s)
			s.say(event.Entry{Balancer: lb, Address: backend, Owner: "fairlead", By: "hand"}, event.Calm{})
			s.wait(100 * time.Second)
		}),
		breaks("L1", "backend-never-bound", func(s *story) {
			s.bind("b1")
			s.say(event.Calm{})
			s.wait(100 * time.Second)
		}),
		breaks("L1", "backend-not-there", func(s *story) {
			bound(s)
			s.say(event.Entry{Balancer: lb, Address: backend, Owner: "fairlead", By: "driver"}, event.Calm{})
			s.wait(100 * time.Second)
		}),
		breaks("L1", "no-address", func(s *story) {
			s.service("web", "create", "user", "}")
			s.say(event.Calm{})
			s.wait(35 * time.Second)
		}),
		breaks("L1", "addresses-of-another-type-than-load-balancer", func(s *story) {
			s.object("Service", "web", "create", "user",
				`{"metadata":{"namespace":"a","name":"web","uid":"u-web"},"spec":{"type":"ClusterIP","clusterIP":"10.96.0.10","externalIPs":["`+vip1+`"],"ports":[{"port":80}]}}`)
			s.say(event.Calm{})
			s.wait(35 * time.Second)
		}),
		fine("L1", "nothing-is-asked-for-without-a-cluster-address", func(s *story) {
			s.object("Service", "web", "create", "user",
				`{"metadata":{"namespace":"a","name":"web","uid":"u-web"},"spec":{"type":"ClusterIP","clusterIP":"None","externalIPs":["`+vip1+`"],"ports":[{"port":80}]}}`)
			s.publish("other", vip2, "n1")
			s.say(event.Calm{})
			s.wait(65 * time.Second)
		}),
		breaks("L1", "next-hop-missing", func(s *story) {
			s.publish("web", vip1, "n1")
			s.serve("web", "n1", "n2")
			s.say(event.Calm{})
			s.wait(35 * time.Second)
		}),
		breaks("L1", "next-hop-left", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.serve("web", "n1")
			s.say(event.Calm{})
			s.wait(35 * time.Second)
		}),
		breaks("L1", "switch-lacks-a-hop", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.forward(vip1, "n1")
			s.say(event.Calm{})
			s.wait(35 * time.Second)
		}),
		breaks("L1", "address-left", func(s *story) {
			s.publish("web", vip1, "n1")
			s.service("web", "delete", "user", "}")
			s.say(event.Calm{})
			s.wait(35 * time.Second)
		}),
		breaks("L1", "released-address-left", func(s *story) { releasedFor(s, 70*time.Second) }),
		fine("L1", "released-address-that-a-switch-held-back-may-have", func(s *story) {
			held(s, "hostile-switch", "sw")
			releasedFor(s, 70*time.Second)
		}),
		breaks("L1", "released-address-and-another-switch-was-hostile", func(s *story) {
			held(s, "hostile-switch", "other")
			releasedFor(s, 70*time.Second)
		}),
		breaks("L1", "released-address-and-a-switch-held-back-for-too-long", func(s *story) {
			held(s, "speaker-kill", "m2/speaker")
			releasedFor(s, 3*time.Minute)
		}),
		breaks("L1", "status-not-written", func(s *story) {
			s.publish("web", vip1, "n1")
			s.service("web", "status", "m1", `},"status":{}`)
			s.say(event.Calm{})
			s.wait(35 * time.Second)
		}),
		breaks("L1", "kernel-lost-its-rules", func(s *story) {
			s.publish("web", vip1, "n1")
			s.say(event.Steered{Node: "n1", Boot: "b1", By: "hand"}, event.Calm{})
			s.wait(35 * time.Second)
		}),
		breaks("L1", "kernel-kept-its-rules", func(s *story) {
			s.steer("n3", vip2, true)
			s.say(event.Calm{})
			s.wait(65 * time.Second)
		}),
		fine("L3", "minority-away", func(s *story) {
			s.say(event.FaultBegan{ID: 1, Fault: "cut", On: []string{"m3"}})
			s.wait(5 * time.Second)
			s.put("c1", "x", "1")
			s.publish("web", vip1, "n1")
		}),
		fine("L3", "majority-away", func(s *story) {
			s.say(event.FaultBegan{ID: 1, Fault: "cut", On: []string{"m3", "m2"}})
			s.service("web", "create", "user", "}")
			s.serve("web", "n1")
			fails(s, 10)
			s.wait(10 * time.Second)
			s.say(event.FaultEnded{ID: 1})
			s.publish("web", vip1, "n1")
			s.put("c1", "x", "1")
		}),
		fine("L3", "leader-lost", func(s *story) {
			s.say(event.FaultBegan{ID: 1, Fault: "kill", On: []string{"m3"}}, event.Leading{Process: "m3", Life: 1, Term: 2, On: true},
				event.Ended{Process: "m3", Life: 1})
			fails(s, 4)
			s.put("c1", "x", "1")
		}),
		fine("L3", "api-server-not-asked-again-yet", func(s *story) {
			s.say(event.FaultBegan{ID: 1, Fault: "away", On: []string{"kubernetes"}})
			s.service("web", "create", "user", "}")
			s.serve("web", "n1")
			s.wait(10 * time.Second)
			s.say(event.FaultEnded{ID: 1})
			s.wait(12 * time.Second)
			s.publish("web", vip1, "n1")
		}),
		breaks("L3", "api-server-not-asked-again", func(s *story) {
			s.say(event.FaultBegan{ID: 1, Fault: "away", On: []string{"kubernetes"}})
			s.service("web", "create", "user", "}")
			s.serve("web", "n1")
			s.wait(10 * time.Second)
			s.say(event.FaultEnded{ID: 1})
			s.wait(14 * time.Second)
		}),
		breaks("L3", "calls-fail", func(s *story) {
			s.say(event.FaultBegan{ID: 1, Fault: "cut", On: []string{"m3"}})
			fails(s, 10)
		}),
		fine("L3", "new-server-not-taken-in-yet", func(s *story) {
			s.put("c1", "x", "1")
			replaced(s)
			s.wait(100 * time.Millisecond)
			leaderCut(s)
		}),
		fine("L3", "new-server-without-a-vote-yet", func(s *story) {
			s.put("c1", "x", "1")
			replaced(s)
			s.wait(4 * time.Second)
			s.commit(newServer())
			s.wait(4 * time.Second)
			leaderCut(s)
		}),
		fine("L3", "new-server-kept-from-its-leader", func(s *story) {
			s.put("c1", "x", "1")
			replaced(s)
			s.commit(newServer())
			s.say(event.FaultBegan{ID: 2, Fault: "break", On: []string{"m2"}})
			s.wait(10 * time.Second)
			s.say(event.FaultEnded{ID: 2})
			s.wait(time.Second)
			leaderCut(s)
		}),
		breaks("L3", "new-server-never-taken-in", func(s *story) {
			replaced(s)
			s.wait(6 * time.Second)
			leaderCut(s)
		}),
		breaks("L3", "new-server-beside-its-former-one", func(s *story) {
			replaced(s)
			s.commit(newServer())
			s.wait(6 * time.Second)
			upto := s.state.Read().Revision()
			s.commit(&fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{{Server: "m2-1", Run: "r", Upto: upto, Withdrawn: upto}}})
			leaderCut(s)
		}),
		fine("L3", "booted-member-asks-first", func(s *story) {
			booted(s)
			fails(s, 20)
			s.put("c1", "x", "1")
		}),
		breaks("L3", "booted-member-asks-for-too-long", func(s *story) {
			booted(s)
			fails(s, 28)
		}),
		breaks("L3", "booted-member-that-took-part-already", func(s *story) {
			booted(s)
			s.say(event.Answered{Process: "m1", Life: 1, From: "m3", Does: "votes for", Asked: s.now})
			fails(s, 10)
		}),
		breaks("L3", "booted-member-whom-all-can-answer", func(s *story) {
			booted(s)
			fails(s, 2)
			s.say(event.FaultEnded{ID: 3})
			fails(s, 10)
		}),
		breaks("L3", "booted-member-whom-all-answered", func(s *story) {
			boot(s)
			s.wait(4 * time.Second)
			leaderCut(s)
		}),
		breaks("L3", "booted-member-with-an-empty-disk", func(s *story) {
			boot(s)
			replaced(s)
			s.say(event.FaultBegan{ID: 3, Fault: "partition", On: []string{"m2"}}, event.Leading{Process: "m1", Life: 1, Term: 3, On: true}, event.Contact{Process: "m2", Life: 1})
			s.commit(newServer())
			s.wait(6 * time.Second)
			fails(s, 10)
		}),
		fine("L3", "booted-member-that-begins-anew", func(s *story) {
			booted(s)
			fails(s, 16)
			s.say(event.Ended{Process: "m3", Life: 2, Killed: true})
			s.say(event.Started{Process: "m3", Life: 3, Boot: "b2"})
			fails(s, 20)
			s.put("c1", "x", "1")
		}),
		breaks("L3", "call-hangs", func(s *story) {
			s.say(event.CallBegan{Client: "c1", ID: 99, Do: "put", Key: "x", Value: "1", To: "m2"})
			s.wait(4 * time.Second)
		}),
		breaks("L3", "service-without-route", func(s *story) {
			s.say(event.FaultBegan{ID: 1, Fault: "cut", On: []string{"m3"}})
			s.service("web", "create", "user", "}")
			s.serve("web", "n1")
			s.wait(4 * time.Second)
		}),
	}
}

// replaced has m2 lead, and m3 lose its disk and come back as a new server.
func replaced(s *story) {
	s.say(event.Leading{Process: "m2", Life: 1, Term: 2, On: true}, event.FaultBegan{ID: 1, Fault: "lost-disk", On: []string{"m3"}},
		event.Ended{Process: "m3", Life: 1}, event.Wiped{Machine: "m3"})
	s.out["m3"] = true
	s.wait(2 * time.Second)
	s.say(event.Started{Process: "m3", Life: 2}, event.FaultEnded{ID: 1})
}

// newServer is what the replaced m3 says of itself once it is in the group.
func newServer() fsm.Command {
	return &fsm.ReportMember{Server: "m3-2", Name: "m3", Format: fsm.NewestFormat, Run: "r2"}
}

// leaderCut takes the leader away: the two others can have a new one if both have a vote.
func leaderCut(s *story) {
	s.say(event.FaultBegan{ID: 3, Fault: "partition", On: []string{"m2"}}, event.Leading{Process: "m2", Life: 1, Term: 2}, event.Contact{Process: "m2", Life: 1})
	fails(s, 10)
}

// boot has the machine of m3 boot while m2 leads, so that m3 asks the others before it takes part.
func boot(s *story) {
	s.put("c1", "x", "1")
	s.say(event.Leading{Process: "m2", Life: 1, Term: 2, On: true}, event.FaultBegan{ID: 1, Fault: "power", On: []string{"m3"}},
		event.Ended{Process: "m3", Life: 1}, event.MachineDown{Machine: "m3"})
	s.wait(2 * time.Second)
	s.say(event.MachineUp{Machine: "m3", Boot: "b2"}, event.Started{Process: "m3", Life: 2, Boot: "b2"}, event.FaultEnded{ID: 1})
}

// booted has only m1 there to answer it, which cannot have a leader but with it.
func booted(s *story) {
	boot(s)
	s.say(event.FaultBegan{ID: 3, Fault: "partition", On: []string{"m2"}}, event.Leading{Process: "m2", Life: 1, Term: 2}, event.Contact{Process: "m2", Life: 1})
}

// fails has a client ask in vain, twice a second.
func fails(s *story, n int) {
	for i := range n {
		s.say(event.CallBegan{Client: "c1", ID: 200 + i, Do: "put", Key: "z", Value: "1", To: "m1"})
		s.wait(500 * time.Millisecond)
		s.say(event.CallEnded{Client: "c1", ID: 200 + i, Outcome: "unknown", Why: "no leader"})
	}
}

// held has a member lose its session with the switch by something that had speakers die, and is over.
func held(s *story, fault, on string) {
	s.say(event.FaultBegan{ID: 1, Fault: fault, On: []string{on}}, event.Session{Switch: "sw", Member: "m2"}, event.FaultEnded{ID: 1})
}

// releasedFor has an address be given up, and not become free.
func releasedFor(s *story, d time.Duration) {
	s.publish("web", vip1, "n1")
	s.service("web", "delete", "user", "}")
	s.commit(&fsm.ReleaseAllocation{Address: addr(vip1), Service: "a/web"})
	s.withdraw(vip1, "n1")
	s.say(event.Calm{})
	s.wait(d)
}
