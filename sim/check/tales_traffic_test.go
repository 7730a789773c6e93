// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"net/netip"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

func trafficTales() []tale {
	return []tale{
		fine("S8", "served", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.flow(vip1, "n1", "a/web-n1")
			s.say(event.FaultBegan{ID: 1, Fault: "kill", On: []string{"m1"}}, event.Ended{Process: "m1", Life: 1, Killed: true})
			s.flow(vip1, "n2", "a/web-n2")
		}),
		fine("S8", "lost-to-two-partial-lists", func(s *story) {
			s.publish("web", vip1, "n1")
			partial(s, 1100*time.Millisecond)
			s.commit(s.hops(vip1))
			s.forward(vip1)
			s.flow(vip1, "", "")
		}),
		breaks("S8", "lost-to-one-partial-list", func(s *story) {
			s.publish("web", vip1, "n1")
			partial(s, 900*time.Millisecond)
			s.commit(s.hops(vip1))
			s.forward(vip1)
			s.flow(vip1, "", "")
		}),
		breaks("S8", "lost-for-nothing", func(s *story) {
			s.publish("web", vip1, "n1")
			s.flow(vip1, "n1", "")
		}),
		breaks("S8", "lost-with-the-leader", func(s *story) {
			s.publish("web", vip1, "n1")
			s.say(event.FaultBegan{ID: 1, Fault: "kill", On: []string{"m1"}}, event.Ended{Process: "m1", Life: 1, Killed: true})
			s.flow(vip1, "n1", "")
		}),
		fine("S8", "lost-with-a-change", func(s *story) {
			s.publish("web", vip1, "n1")
			s.serve("web", "n2")
			s.wait(time.Second)
			s.flow(vip1, "n1", "")
			s.commit(s.hops(vip1, "n1", "n2"))
			s.steer("n2", vip1, true)
			s.acknowledge("n2")
			s.forward(vip1, "n1", "n2")
			s.withdraw(vip1, "n1", "n2")
		}),
		fine("S8", "lost-with-a-change-that-a-leader-whose-disk-hangs-may-not-bring-yet", func(s *story) { stuck(s, "m1", 6*time.Second) }),
		breaks("S8", "lost-with-a-change-while-a-follower's-disk-hangs", func(s *story) { stuck(s, "m3", 6*time.Second) }),
		breaks("S8", "lost-long-after-a-leader-whose-disk-hangs-was-to-give-up", func(s *story) { stuck(s, "m1", 10*time.Second) }),
		fine("S8", "lost-with-the-node", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.say(event.FaultBegan{ID: 1, Fault: "power", On: []string{"n1"}}, event.MachineDown{Machine: "n1"})
			s.wait(500 * time.Millisecond)
			s.flow(vip1, "n1", "")
		}),
		breaks("S8", "lost-long-after-the-node", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.say(event.FaultBegan{ID: 1, Fault: "power", On: []string{"n1"}}, event.MachineDown{Machine: "n1"})
			s.commit(&fsm.SetLiveness{Node: "n1", Boot: "b1", Liveness: fsm.NodeDown})
			s.commit(s.hops(vip1, "n2"))
			s.wait(3 * time.Second)
			s.flow(vip1, "n1", "")
		}),
		fine("S8", "lost-when-the-group-goes-on-that-held-silent-nodes", func(s *story) { heldTogether(s, time.Second) }),
		breaks("S8", "lost-long-after-the-group-went-on", func(s *story) { heldTogether(s, 3*time.Second) }),
		fine("S8", "lost-where-a-member-apart-leads", func(s *story) { strays(s, "m2") }),
		breaks("S8", "lost-where-a-member-leads-that-knows", func(s *story) { strays(s, "m3") }),
		fine("S8", "lost-where-a-member-leads-that-just-came-back", func(s *story) {
			strays(s, "m2")
			s.say(event.FaultEnded{ID: 1})
			s.wait(1900 * time.Millisecond)
			s.flow(vip1, "n1", "")
		}),
		breaks("S8", "lost-where-a-member-leads-that-is-back", func(s *story) {
			strays(s, "m2")
			s.say(event.FaultEnded{ID: 1})
			s.wait(2 * time.Second)
			s.flow(vip1, "n1", "")
		}),
		fine("S8", "lost-where-a-member-leads-that-has-a-new-session", func(s *story) {
			strays(s, "m2")
			s.say(event.Session{Switch: "sw", Member: "m2"}, event.FaultEnded{ID: 1})
			s.wait(2500 * time.Millisecond)
			s.say(event.Session{Switch: "sw", Member: "m2", Up: true})
			s.wait(1900 * time.Millisecond)
			s.flow(vip1, "n1", "")
		}),
		fine("S8", "lost-during-a-fault-of-the-switch", func(s *story) {
			s.publish("web", vip1, "n1")
			s.say(event.FaultBegan{ID: 1, Fault: "restart", On: []string{"sw"}})
			s.flow(vip1, "", "")
			s.say(event.FaultEnded{ID: 1})
			s.wait(5 * time.Second)
			s.flow(vip1, "", "")
		}),
		fine("S8", "lost-during-faults-of-all-switches", func(s *story) {
			s.publish("web", vip1, "n1")
			s.say(event.FaultBegan{ID: 1, Fault: "restart", On: []string{"sw"}}, unentered())
		}),
		breaks("S8", "lost-though-a-switch-should-work", func(s *story) {
			s.publish("web", vip1, "n1")
			s.say(event.FaultBegan{ID: 1, Fault: "kill", On: []string{"n1"}}, unentered())
		}),
	}
}

// unentered is a request that no switch took.
func unentered() event.Flow {
	return event.Flow{Client: "c1", Address: addr(vip1), Port: 80, Wanted: true, Why: "no switch works"}
}

// heldTogether has all nodes fall silent at once, of which one has no power and stays away: the group waits for ten seconds. A request is
// sent to it some time after that.
func heldTogether(s *story, later time.Duration) {
	s.publish("web", vip1, "n1", "n2")
	s.say(event.FaultBegan{ID: 1, Fault: "power", On: []string{"n1"}}, event.MachineDown{Machine: "n1"},
		event.FaultBegan{ID: 2, Fault: "partition", On: []string{"n2", "n3"}})
	s.wait(time.Second)
	s.say(event.FaultEnded{ID: 2})
	s.wait(10*time.Second + later)
	s.flow(vip1, "n1", "")
}

// strays has a node die while m2 is cut off, and a member lead to it for longer than others need to know better.
func strays(s *story, member string) {
	s.publish("web", vip1, "n1", "n2")
	s.say(event.FaultBegan{ID: 1, Fault: "partition", On: []string{"m2"}},
		event.FaultBegan{ID: 2, Fault: "power", On: []string{"n1"}}, event.MachineDown{Machine: "n1"})
	s.commit(&fsm.SetLiveness{Node: "n1", Boot: "b1", Liveness: fsm.NodeDown})
	s.commit(s.hops(vip1, "n2"))
	s.say(event.Forwarding{Switch: "sw", Prefix: pfx(vip1), NextHops: []netip.Addr{host("n1"), host("n2")}, Paths: []event.Path{
		{Member: "m1", NextHop: host("n2"), Best: true},
		{Member: member, NextHop: host("n1"), Best: true},
	}})
	s.wait(2500 * time.Millisecond)
	s.flow(vip1, "n1", "")
}

func kubernetesTales() []tale {
	give := func(s *story) {
		s.commit(s.hops(vip1))
		s.commit(&fsm.ReleaseAllocation{Address: addr(vip1), Service: "a/web"})
		s.forward(vip1)
	}
	return []tale{
		fine("S12", "deleted", func(s *story) {
			s.publish("web", vip1, "n1")
			s.service("web", "delete", "user", "}")
			give(s)
		}),
		fine("S12", "no-longer-wanted", func(s *story) {
			s.publish("web", vip1, "n1")
			s.service("web", "update", "user", `,"loadBalancerIP":"203.0.113.9"}`)
			s.commit(&fsm.ReleaseAllocation{Address: addr(vip1), Service: "a/web"})
		}),
		breaks("S12", "empty-view-takes-the-address", func(s *story) {
			s.publish("web", vip1, "n1")
			s.say(event.Viewed{Process: "m1", Kind: "Service", How: "empty"})
			give(s)
		}),
		breaks("S12", "stale-view-takes-the-hop", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.say(event.Viewed{Process: "m1", Kind: "EndpointSlice", How: "stale"})
			s.commit(s.hops(vip1, "n2"))
			s.forward(vip1, "n2")
		}),
		fine("S12", "two-partial-lists-are-all-it-ever-saw", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			partial(s, 1100*time.Millisecond)
			s.commit(s.hops(vip1, "n2"))
		}),
		breaks("S12", "one-partial-list-is-all-it-ever-saw", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			partial(s, 900*time.Millisecond)
			s.commit(s.hops(vip1, "n2"))
			s.forward(vip1, "n2")
		}),
		breaks("S12", "partial-lists-of-something-else", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			partial(s, 1100*time.Millisecond)
			s.commit(&fsm.PutService{Service: fsm.Service{ID: "a/web", UID: "u-web", Deleting: true}})
		}),
		breaks("S12", "partial-lists-long-ago", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			partial(s, 1100*time.Millisecond)
			s.say(event.FaultEnded{ID: 7})
			s.wait(11 * time.Second)
			s.commit(s.hops(vip1, "n2"))
			s.forward(vip1, "n2")
		}),
		breaks("S12", "partial-lists-after-it-saw-all", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.say(event.FaultBegan{ID: 7, Fault: "kubernetes-partial-lists", On: []string{"kubernetes"}},
				event.Viewed{Process: "m1", Kind: "EndpointSlice", How: "partial"})
			s.wait(1100 * time.Millisecond)
			s.commit(s.hops(vip1, "n2"))
			s.forward(vip1, "n2")
		}),
		breaks("S12", "service-given-up", func(s *story) {
			s.publish("web", vip1, "n1")
			s.commit(&fsm.PutService{Service: fsm.Service{ID: "a/web", UID: "u-web", Deleting: true}})
		}),
		breaks("S12", "node-given-up", func(s *story) {
			s.wait(time.Second)
			s.commit(&fsm.DeleteNode{ID: "n3"})
		}),
		fine("S12", "silent-node", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.commit(&fsm.SetLiveness{Node: "n1", Boot: "b1", Liveness: fsm.NodeDown})
			s.commit(s.hops(vip1, "n2"))
			s.forward(vip1, "n2")
		}),
		fine("S12", "decided-before-the-node-was-back", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.commit(&fsm.SetLiveness{Node: "n1", Boot: "b1", Liveness: fsm.NodeDown})
			s.commit(&fsm.SetLiveness{Node: "n1", Boot: "b1", Liveness: fsm.NodeUp})
			s.commit(s.hops(vip1, "n2"))
			s.forward(vip1, "n2")
		}),
		breaks("S12", "long-after-the-node-was-back", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.commit(&fsm.SetLiveness{Node: "n1", Boot: "b1", Liveness: fsm.NodeDown})
			s.commit(&fsm.SetLiveness{Node: "n1", Boot: "b1", Liveness: fsm.NodeUp})
			s.wait(4 * time.Second)
			s.commit(s.hops(vip1, "n2"))
			s.forward(vip1, "n2")
		}),
		breaks("S12", "last-one-though-the-node-was-just-back", func(s *story) {
			s.publish("web", vip1, "n1")
			s.commit(&fsm.SetLiveness{Node: "n1", Boot: "b1", Liveness: fsm.NodeDown})
			s.commit(&fsm.SetLiveness{Node: "n1", Boot: "b1", Liveness: fsm.NodeUp})
			s.commit(s.hops(vip1))
		}),
		fine("S12", "drained-beside-another", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.commit(&fsm.BeginDrain{Of: fsm.DrainNode, Name: "n1"})
			s.commit(s.hops(vip1, "n2"))
			s.forward(vip1, "n2")
		}),
		breaks("S12", "drain-takes-the-last-hop", func(s *story) {
			s.publish("web", vip1, "n1")
			s.commit(&fsm.BeginDrain{Of: fsm.DrainNode, Name: "n1"})
			s.commit(s.hops(vip1))
		}),
		breaks("S12", "drain-of-another-node", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.commit(&fsm.BeginDrain{Of: fsm.DrainNode, Name: "n2"})
			s.commit(s.hops(vip1, "n2"))
			s.forward(vip1, "n2")
		}),
		fine("S12", "decided-before-the-drain-ended", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.commit(&fsm.BeginDrain{Of: fsm.DrainNode, Name: "n1"})
			s.commit(&fsm.EndDrain{Of: fsm.DrainNode, Name: "n1"})
			s.commit(s.hops(vip1, "n2"))
			s.forward(vip1, "n2")
		}),
		breaks("S12", "long-after-the-drain", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.commit(&fsm.BeginDrain{Of: fsm.DrainNode, Name: "n1"})
			s.commit(&fsm.EndDrain{Of: fsm.DrainNode, Name: "n1"})
			s.wait(11 * time.Second)
			s.commit(s.hops(vip1, "n2"))
			s.forward(vip1, "n2")
		}),
		fine("S12", "the-other-node-failed-since", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.commit(&fsm.BeginDrain{Of: fsm.DrainNode, Name: "n1"})
			s.commit(&fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: "n2", Boot: "b1", Upto: s.state.Read().Revision(), Failed: []netip.Prefix{pfx(vip1)}}}})
			s.commit(s.hops(vip1, "n2"))
		}),
		breaks("L1", "drained-node-stays", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.commit(&fsm.BeginDrain{Of: fsm.DrainNode, Name: "n1"})
			s.say(event.Calm{})
			s.wait(35 * time.Second)
		}),
		fine("L1", "drained-alone", func(s *story) {
			s.publish("web", vip1, "n1")
			s.commit(&fsm.BeginDrain{Of: fsm.DrainNode, Name: "n1"})
			s.say(event.Calm{})
			s.wait(35 * time.Second)
		}),
		fine("S12", "operator-released-a-hold", func(s *story) {
			s.publish("web", vip1, "n1")
			s.commit(&fsm.PutHold{ID: "h", Of: "Service", Subjects: []string{"a/web"}})
			s.commit(&fsm.ReleaseHold{ID: "h"})
			give(s)
		}),
	}
}

// partial has the leader start anew while lists lack something, and see the first of them.
func partial(s *story, ago time.Duration) {
	s.say(event.FaultBegan{ID: 7, Fault: "kubernetes-partial-lists", On: []string{"kubernetes"}},
		event.Ended{Process: "m1", Life: 1, Killed: true}, event.Started{Process: "m1", Life: 2},
		event.Leading{Process: "m1", Life: 2, Term: 2, On: true}, event.Viewed{Process: "m1", Kind: "EndpointSlice", How: "partial"})
	s.wait(ago)
}

// stuck has a disk hang, and requests get nowhere for a time after a change.
func stuck(s *story, whose string, d time.Duration) {
	s.publish("web", vip1, "n1")
	s.say(event.FaultBegan{ID: 1, Fault: "disk-hang", On: []string{whose}})
	s.serve("web", "n1", "n2")
	s.wait(d)
	s.flow(vip1, "n1", "")
}
