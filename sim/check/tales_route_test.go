// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"net/netip"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

func routeTales() []tale {
	return []tale{
		fine("S8", "moves", func(s *story) {
			s.publish("web", vip1, "n1")
			s.serve("web", "n2")
			s.commit(s.hops(vip1, "n1", "n2"))
			s.steer("n2", vip1, true)
			s.acknowledge("n2")
			s.forward(vip1, "n1", "n2")
			s.withdraw(vip1, "n1", "n2")
			s.wait(5 * time.Second)
		}),
		breaks("S8", "not-forwarded", func(s *story) {
			s.publish("web", vip1, "n1")
			s.forward(vip1)
			s.wait(2500 * time.Millisecond)
		}),
		fine("S8", "of-a-family-that-is-not-exchanged", func(s *story) {
			s.publish("web", untold, "n1")
			s.forward(untold)
			s.wait(5 * time.Second)
			s.flow(untold, "n1", "")
		}),
		fine("L1", "address-that-nobody-could-carry-yet", func(s *story) {
			s.service("idle", "create", "user", "}")
			s.commit(&fsm.PutService{Service: fsm.Service{ID: "a/idle", UID: "u-idle"}},
				&fsm.Allocate{Address: addr(vip1), Service: "a/idle", Ports: []fsm.Port{{Protocol: fsm.TCP, Number: 80}}})
			s.say(event.Calm{})
			s.wait(35 * time.Second)
		}),
		fine("S8", "forwarded-again-in-time", func(s *story) {
			s.publish("web", vip1, "n1")
			s.forward(vip1)
			s.wait(1900 * time.Millisecond)
			s.forward(vip1, "n1")
			s.wait(time.Second)
		}),
		breaks("S8", "not-withdrawn", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.serve("web", "n2")
			s.commit(s.hops(vip1, "n2"))
			s.wait(3 * time.Second)
		}),
		breaks("S8", "stale-member-not-demoted", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			staleMember(s)
			s.wait(8 * time.Second)
		}),
		breaks("S8", "lost-member-outlived", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			staleMember(s)
			s.say(event.Ended{Process: "m3", Life: 1, Killed: true}, event.Session{Switch: "sw", Member: "m3"})
			s.wait(4 * time.Second)
		}),
		fine("S8", "lost-member-in-time", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			staleMember(s)
			s.say(event.Ended{Process: "m3", Life: 1, Killed: true}, event.Session{Switch: "sw", Member: "m3"})
			s.wait(2800 * time.Millisecond)
		}),
		breaks("S8", "silent-member-outlived", standsStill("freeze", 34*time.Second, 0)),
		fine("S8", "silent-member-in-time", standsStill("freeze", 30*time.Second, 0)),
		breaks("S8", "member-in-touch-with-an-old-record", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			staleMember(s)
			s.say(event.Contact{Process: "m3", Life: 1, Quorum: true}) // its leader is heard, and the entries do not arrive
			s.wait(5500 * time.Millisecond)
		}),
		fine("S8", "member-in-touch-with-an-old-record-demoted", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			staleMember(s)
			s.say(event.Contact{Process: "m3", Life: 1, Quorum: true})
			s.wait(4500 * time.Millisecond)
			s.say(event.Forwarding{Switch: "sw", Prefix: pfx(vip1), NextHops: []netip.Addr{host("n2")}, Paths: []event.Path{
				{Member: "m1", NextHop: host("n2"), Best: true}, {Member: "m3", NextHop: host("n1"), MED: 100},
			}})
			s.wait(10 * time.Second)
		}),
		fine("S8", "stale-member-frozen", standsStill("freeze", 20*time.Second, 0)),
		breaks("S8", "stale-member-not-demoted-after-it-froze", standsStill("freeze", 3*time.Second, 8*time.Second)),
		fine("S8", "stale-member-whose-disk-is-slow", standsStill("disk-slow", 12*time.Second, 0)),
		breaks("S8", "stale-member-not-demoted-after-its-disk-was-slow", standsStill("disk-slow", 3*time.Second, 8*time.Second)),
		fine("S8", "stale-member-demoted", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			staleMember(s)
			s.wait(3 * time.Second)
			f := event.Forwarding{Switch: "sw", Prefix: pfx(vip1), NextHops: []netip.Addr{host("n2")}}
			f.Paths = []event.Path{
				{Member: "m1", NextHop: host("n2"), Best: true}, {Member: "m2", NextHop: host("n2"), Best: true},
				{Member: "m3", NextHop: host("n1"), MED: 100}, {Member: "m3", NextHop: host("n2"), MED: 100},
			}
			s.say(f)
			s.wait(60 * time.Second)
		}),
		breaks("S8", "dead-node-stays", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.say(event.FaultBegan{ID: 1, Fault: "power", On: []string{"n1"}}, event.MachineDown{Machine: "n1"})
			s.wait(3 * time.Second)
		}),
		fine("S8", "last-node-stays", func(s *story) {
			s.publish("web", vip1, "n1")
			s.say(event.FaultBegan{ID: 1, Fault: "power", On: []string{"n1"}}, event.MachineDown{Machine: "n1"})
			s.wait(20 * time.Second)
		}),
		fine("S9", "in-order", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.serve("web", "n2")
			s.withdraw(vip1, "n1", "n2")
		}),
		breaks("S9", "announced-before-the-rules", func(s *story) {
			s.forward(vip1, "n1")
		}),
		fine("S9", "rules-went-a-moment-ago", func(s *story) {
			s.steer("n1", vip1, true)
			s.steer("n1", vip1, false)
			s.wait(1500 * time.Millisecond)
			s.forward(vip1, "n1")
			s.forward(vip1)
		}),
		breaks("S9", "rules-went-long-ago", func(s *story) {
			s.steer("n1", vip1, true)
			s.steer("n1", vip1, false)
			s.wait(2500 * time.Millisecond)
			s.forward(vip1, "n1")
		}),
		breaks("S9", "rules-go-first", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.steer("n1", vip1, false)
		}),
		fine("S9", "rules-removed-by-hand-or-reboot", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.say(event.Steered{Node: "n1", Boot: "b1", By: "hand"}, event.Steered{Node: "n2", Boot: "b2"})
		}),
		fine("S9", "new-address-where-somebody-meddled-a-moment-ago", func(s *story) {
			s.steer("n1", vip1, true)
			s.say(event.Steered{Node: "n1", Boot: "b1", By: "hand"})
			s.wait(1500 * time.Millisecond)
			s.forward(vip2, "n1")
			s.forward(vip2)
		}),
		breaks("S9", "new-address-where-somebody-meddled-long-ago", func(s *story) {
			s.steer("n1", vip1, true)
			s.say(event.Steered{Node: "n1", Boot: "b1", By: "hand"})
			s.wait(2500 * time.Millisecond)
			s.forward(vip2, "n1")
		}),
		fine("S9", "power-lost", func(s *story) {
			s.publish("web", vip1, "n1")
			s.say(event.FaultBegan{ID: 1, Fault: "power", On: []string{"n2/power"}}, event.Steered{Node: "n1", Boot: "b1"}, event.MachineDown{Machine: "n1"})
			s.wait(3 * time.Second)
			s.forward(vip1)
			s.forward(vip1, "n1") // the last next hop stays, and a session came back
			s.say(event.MachineUp{Machine: "n1", Boot: "b2"})
			s.forward(vip1)
			s.forward(vip1, "n1")
		}),
		breaks("S9", "new-boot-not-ready", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.say(event.Steered{Node: "n1", Boot: "b2"})
			s.forward(vip1, "n2")
			s.commit(&fsm.RegisterBoot{Node: "n1", Boot: "b2"})
			s.wait(3 * time.Second)
			s.forward(vip1, "n1", "n2")
		}),
		fine("S9", "group-cannot-know-of-the-boot", func(s *story) {
			s.publish("web", vip1, "n1")
			s.say(event.Steered{Node: "n1", Boot: "b2"})
			s.wait(time.Second)
			s.forward(vip1)
			s.wait(1500 * time.Millisecond)
			s.forward(vip1, "n1") // a session came back
		}),
		fine("S11", "status", func(s *story) {
			s.publish("web", vip1, "n1")
			s.object("Event", "e", "create", "m1", "{}")
			s.object("Node", "n1", "update", "kubelet", "{}")
		}),
		breaks("S11", "foreign", func(s *story) {
			s.say(event.Foreign{Where: "n1", By: "n1", What: "table inet filter"})
		}),
		breaks("S11", "spec-written", func(s *story) {
			s.service("web", "create", "user", "}")
			s.service("web", "update", "m1", "}")
		}),
		breaks("model", "refused", func(s *story) {
			s.say(event.Refused{Model: "sw", By: "m1", What: "UPDATE", Why: "no next hop"})
		}),
	}
}

// standsStill has a fault stop that member, whose last words are that it is out of touch, and end.
func standsStill(fault string, during, after time.Duration) func(*story) {
	return func(s *story) {
		s.publish("web", vip1, "n1", "n2")
		s.say(event.FaultBegan{ID: 2, Fault: fault, On: []string{"m3"}})
		staleMember(s)
		s.wait(during)
		if after > 0 {
			s.say(event.FaultEnded{ID: 2, Fault: fault, On: []string{"m3"}})
			s.wait(after)
		}
	}
}

// staleMember cuts m3 off and has the others withdraw n1.
func staleMember(s *story) {
	s.say(event.FaultBegan{ID: 1, Fault: "cut", On: []string{"m3"}}, event.Contact{Process: "m3", Life: 1})
	s.out["m3"] = true
	s.serve("web", "n2")
	s.commit(s.hops(vip1, "n2"))
	f := event.Forwarding{Switch: "sw", Prefix: pfx(vip1), NextHops: []netip.Addr{host("n1"), host("n2")}}
	f.Paths = []event.Path{
		{Member: "m1", NextHop: host("n2"), Best: true}, {Member: "m2", NextHop: host("n2"), Best: true},
		{Member: "m3", NextHop: host("n1"), Best: true}, {Member: "m3", NextHop: host("n2"), Best: true},
	}
	s.say(f)
}
