// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/check"
	"fairlead.io/fairlead/sim/event"
)

// tale is a history of a rule. The fine ones break no rule, and put theirs to the test; the others break it.
type tale struct {
	rule, name string
	broken     bool
	tell       func(*story)
}

func fine(rule, name string, tell func(*story)) tale   { return tale{rule, name, false, tell} }
func breaks(rule, name string, tell func(*story)) tale { return tale{rule, name, true, tell} }

func tales() []tale {
	return slices.Concat(recordTales(), outsideTales(), routeTales(), trafficTales(), kubernetesTales(), livenessTales())
}

func recordTales() []tale {
	return []tale{
		fine("S1", "restart-and-snapshot", func(s *story) {
			a, _ := s.entry(&fsm.PutNode{ID: "n9"})
			s.apply(a, "m1", "m2")
			s.say(event.Ended{Process: "m3", Life: 1, Killed: true}, event.Started{Process: "m3", Life: 2})
			s.say(event.Restored{Process: "m3", Life: 2, Index: a.Index + 1, Digest: a.Digest}) // raft had an entry of its own
		}),
		breaks("S1", "digest", func(s *story) {
			a, _ := s.entry(&fsm.PutNode{ID: "n9"})
			s.apply(a, "m1")
			a.Digest = fsm.Digest{Hi: 1}.String()
			s.apply(a, "m2")
		}),
		breaks("S1", "first-digest", func(s *story) {
			a, _ := s.entry(&fsm.PutNode{ID: "n9"})
			a.Digest = fsm.Digest{Hi: 1}.String()
			s.apply(a, "m1")
		}),
		breaks("S1", "entry", func(s *story) {
			a, _ := s.entry(&fsm.PutNode{ID: "n9"})
			b, err := fsm.EncodeEntry(1, []fsm.Proposal{{Command: &fsm.PutNode{ID: "n8"}}})
			if err != nil {
				s.t.Fatal(err)
			}
			s.apply(a, "m1")
			a.Entry = b
			s.apply(a, "m2")
		}),
		breaks("S1", "snapshot", func(s *story) {
			a := s.commit(&fsm.PutNode{ID: "n9"})
			s.say(event.Restored{Process: "m3", Life: 1, Index: uint64(a.Index), Digest: fsm.Digest{Lo: 7}.String()})
		}),
		fine("S1", "recovered", func(s *story) {
			s.say(event.CallBegan{Client: "operator", ID: 80, Do: "recover"})
			recovered(s)
			s.commit(&fsm.PutNode{ID: "n7"})
		}),
		breaks("S1", "rewound-for-no-reason", recovered),
		fine("S1", "restored", func(s *story) {
			backup := snapshot(s)
			s.commit(&fsm.PutNode{ID: "n9"})
			s.say(event.CallBegan{Client: "operator", ID: 80, Do: "restore"})
			load(s, backup)
			r := event.Restored{Process: "m1", Life: 1, Index: 500, Digest: s.state.Digest().String(), Snapshot: backup}
			s.say(r)
			r.Process, r.Snapshot = "m2", nil
			s.say(r)
			s.out["m3"] = true
			s.commit(&fsm.NewEpoch{Group: "g", Epoch: 2})
			s.commit(&fsm.PutNode{ID: "n8"})
		}),
		fine("S2", "calls-overlap", func(s *story) {
			s.put("c1", "x", "1")
			s.say(event.CallBegan{Client: "c2", ID: 91, Do: "put", Key: "x", Value: "2", To: "m1"}) // never answered
			s.get("c3", "x", "1")
			s.get("c3", "x", "2")
			s.get("c3", "y", "")
			s.say(event.Leading{Process: "m1", Life: 1, Term: 1}, event.Leading{Process: "m2", Life: 1, Term: 2, On: true})
		}),
		breaks("S2", "stale-read", func(s *story) {
			s.put("c1", "x", "1")
			s.put("c1", "x", "2")
			s.get("c2", "x", "1")
		}),
		breaks("S2", "refused-took-effect", func(s *story) {
			s.say(event.CallBegan{Client: "c1", ID: 90, Do: "put", Key: "x", Value: "1", To: "m1"}, event.CallEnded{Client: "c1", ID: 90, Outcome: "refused"})
			s.get("c2", "x", "1")
		}),
		breaks("S2", "nobody-has-it", func(s *story) {
			s.say(event.CallBegan{Client: "c1", ID: 90, Do: "put", Key: "x", Value: "1"}, event.CallEnded{Client: "c1", ID: 90, Outcome: "ok", Index: 999})
		}),
		breaks("S2", "another-command", func(s *story) {
			at := s.commit(check.Put("x", "2"))
			s.say(event.CallBegan{Client: "c1", ID: 90, Do: "put", Key: "x", Value: "1"}, event.CallEnded{Client: "c1", ID: 90, Outcome: "ok", Index: uint64(at.Index)})
		}),
		breaks("S2", "leader-without-it", func(s *story) {
			a, outcomes := s.entry(check.Put("x", "1"))
			s.apply(a, "m1", "m2")
			s.say(event.CallBegan{Client: "c1", ID: 90, Do: "put", Key: "x", Value: "1"},
				event.CallEnded{Client: "c1", ID: 90, Outcome: "ok", Index: uint64(outcomes[0].Revision.Index)},
				event.Leading{Process: "m3", Life: 1, Term: 2, On: true})
		}),
		breaks("S2", "overwritten", func(s *story) {
			s.put("c1", "x", "1")
			at := uint64(s.state.Applied())
			entry, err := fsm.EncodeEntry(1, []fsm.Proposal{{Command: &fsm.PutNode{ID: "n8"}}})
			if err != nil {
				s.t.Fatal(err)
			}
			s.say(event.Applied{Process: "m3", Life: 2, Index: at, Term: 1, Entry: entry, Digest: s.state.Digest().String()})
		}),
		fine("S3", "shared", func(s *story) {
			s.publish("web", vip1, "n1")
			s.publish("api", vip2, "n2")
			s.flow(vip1, "n1", "a/web-n1")
			s.flow(vip2, "n2", "a/api-n2")
		}),
		breaks("S3", "pod-of-another-service", func(s *story) {
			s.publish("web", vip1, "n1")
			s.publish("api", vip2, "n2")
			s.flow(vip1, "n1", "a/api-n2")
		}),
		breaks("S3", "both-are-told", func(s *story) {
			s.publish("web", vip1, "n1")
			s.service("api", "create", "user", "}")
			s.service("api", "status", "m1", `},"status":{"loadBalancer":{"ingress":[{"ip":"`+vip1+`"}]}}`)
			s.wait(31 * time.Second)
		}),
		fine("S3", "told-late", func(s *story) {
			s.publish("web", vip1, "n1")
			s.service("web", "update", "user", `},"status":{"loadBalancer":{"ingress":[{"ip":"`+vip1+`"}]}}`)
			s.service("api", "create", "user", "}")
			s.service("api", "status", "m1", `},"status":{"loadBalancer":{"ingress":[{"ip":"`+vip1+`"}]}}`)
			s.wait(10 * time.Second)
			s.service("api", "delete", "user", "}")
			s.wait(30 * time.Second)
		}),
		fine("S13", "agent-restarts", func(s *story) {
			s.acknowledge("n1", "n1")
			s.say(event.Ended{Process: "n1", Life: 1}, event.Started{Process: "n1", Life: 2})
			s.acknowledge("n1")
			s.say(event.Acted{Process: "n1", Life: 2, Revision: fsm.Revision{Epoch: 2, Index: 1}})
		}),
		breaks("S13", "runs-back", func(s *story) {
			s.say(event.Acted{Process: "n1", Life: 1, Revision: fsm.Revision{Epoch: 1, Index: 9}},
				event.Started{Process: "n1", Life: 2}, event.Acted{Process: "n1", Life: 2, Revision: fsm.Revision{Epoch: 1, Index: 8}})
		}),
		fine("S13", "disk-lost", func(s *story) {
			s.say(event.Acted{Process: "n1", Life: 1, Revision: fsm.Revision{Epoch: 1, Index: 9}},
				event.Wiped{Machine: "n1"}, event.Acted{Process: "n1", Life: 2, Revision: fsm.Revision{Epoch: 1, Index: 8}})
		}),
	}
}

// recovered has the group go on without an entry that m3 alone had applied.
func recovered(s *story) {
	s.commit(&fsm.PutNode{ID: "n8"})
	before := snapshot(s)
	lost, _ := s.entry(&fsm.PutNode{ID: "n9"})
	s.apply(lost, "m3")
	load(s, before)
	s.out["m3"] = true
	s.commit(&fsm.NewEpoch{Group: "g", Epoch: 2})
}

// snapshot is the record as it is, load makes it another one.
func snapshot(s *story) []byte {
	var b bytes.Buffer
	if err := s.state.Freeze().Write(&b); err != nil {
		s.t.Fatal(err)
	}
	return b.Bytes()
}

func load(s *story, b []byte) {
	s.state = fsm.New()
	if err := s.state.Restore(bytes.NewReader(b)); err != nil {
		s.t.Fatal(err)
	}
}

// bound has binding b1 on the balancer.
func bound(s *story) {
	s.bind("b1")
	s.call(fsm.ActionEnsure, "b1")
}

func outsideTales() []tale {
	cycle := func(s *story) {
		bound(s)
		s.say(event.Entry{Balancer: lb, Address: "198.51.100.9:80", Owner: "foreign", Present: true, By: "hand"})
		s.commit(&fsm.RemoveBinding{ID: "b1"})
		s.call(fsm.ActionDeregister, "b1")
		bound(s)
		s.say(event.Entry{Balancer: lb, Address: "198.51.100.9:80", Owner: "foreign", By: "hand"})
		s.commit(&fsm.Forget{ID: "b1"})
	}
	return []tale{
		fine("S4", "cycle", cycle), fine("S5", "cycle", cycle), fine("S6", "cycle", cycle), fine("S7", "cycle", cycle),
		breaks("S4", "no-binding", func(s *story) {
			s.bind("b1")
			s.say(event.Entry{Balancer: lb, Address: "198.51.100.7:80", Owner: "fairlead", Present: true, By: "driver"})
		}),
		breaks("S4", "foreign-removed", func(s *story) {
			s.say(event.Entry{Balancer: lb, Address: "198.51.100.9:80", Owner: "foreign", Present: true, By: "hand"},
				event.Entry{Balancer: lb, Address: "198.51.100.9:80", Owner: "foreign", By: "driver"})
		}),
		breaks("S4", "record-goes-first", func(s *story) {
			bound(s)
			s.commit(&fsm.RemoveBinding{ID: "b1"})
			s.commit(&fsm.BeginOperation{Action: fsm.ActionDeregister, Binding: "b1", Deadline: time.Second})
			s.heard(s.sent(fsm.ActionDeregister, "b1"), "succeeded") // and there was no effect
		}),
		fine("S5", "never-asked", func(s *story) {
			s.bind("b1")
			s.commit(&fsm.RemoveBinding{ID: "b1"})
		}),
		breaks("S5", "not-confirmed", func(s *story) {
			bound(s)
			s.commit(&fsm.RemoveBinding{ID: "b1"})
			s.commit(&fsm.BeginOperation{Action: fsm.ActionDeregister, Binding: "b1", Deadline: time.Second})
			c := s.sent(fsm.ActionDeregister, "b1")
			s.effect(c)
			s.commit(&fsm.FinishOperation{Subject: fsm.SubjectOf(lb, backend, ""), Attempt: c.Attempt, Result: fsm.ResultSucceeded})
		}),
		breaks("S5", "still-there", func(s *story) {
			bound(s)
			s.commit(&fsm.RemoveBinding{ID: "b1"})
			s.commit(&fsm.BeginOperation{Action: fsm.ActionDeregister, Binding: "b1", Deadline: time.Second})
			s.heard(s.sent(fsm.ActionDeregister, "b1"), "succeeded")
		}),
		breaks("S6", "orphaned-ensure", func(s *story) {
			s.bind("b1")
			s.commit(&fsm.BeginOperation{Action: fsm.ActionEnsure, Binding: "b1", Deadline: time.Second})
			late := s.sent(fsm.ActionEnsure, "b1")
			s.heard(late, "lost")
			s.commit(&fsm.RemoveBinding{ID: "b1"})
			s.call(fsm.ActionDeregister, "b1")
			s.effect(late)
		}),
		breaks("S6", "live-one-taken-off", func(s *story) {
			bound(s)
			s.commit(&fsm.PutBinding{ID: "b2", Balancer: lb, Address: backend})
			s.effect(s.sent(fsm.ActionDeregister, "b2"))
		}),
		fine("S6", "late-effect-put-right", func(s *story) {
			lateDeregister(s)
			s.wait(8 * time.Second)
			s.call(fsm.ActionEnsure, "b2")
			s.wait(30 * time.Second)
		}),
		breaks("S6", "late-effect-stays", func(s *story) {
			lateDeregister(s)
			s.wait(30 * time.Second)
		}),
		fine("S7", "after-the-deadline", func(s *story) {
			bound(s)
			s.commit(&fsm.BeginOperation{Action: fsm.ActionEnsure, Binding: "b1", Deadline: time.Second})
			s.sent(fsm.ActionEnsure, "b1")
			s.say(event.Ended{Process: "m1", Life: 1, Killed: true})
			s.wait(1100 * time.Millisecond)
			s.sent(fsm.ActionEnsure, "b1")
		}),
		breaks("S7", "two-at-once", func(s *story) {
			bound(s)
			s.commit(&fsm.BeginOperation{Action: fsm.ActionEnsure, Binding: "b1", Deadline: time.Second})
			s.sent(fsm.ActionEnsure, "b1")
			s.say(event.Ended{Process: "m1", Life: 1, Killed: true})
			s.wait(900 * time.Millisecond)
			s.sent(fsm.ActionEnsure, "b1")
		}),
		fine("L2", "driver-away-for-long", func(s *story) {
			bound(s)
			s.say(event.FaultBegan{ID: 1, Fault: "driver-hangs", On: []string{"driver-d"}})
			s.commit(&fsm.RemoveBinding{ID: "b1"})
			s.wait(100 * time.Second)
			s.say(event.FaultEnded{ID: 1})
			s.wait(30 * time.Second)
			s.call(fsm.ActionDeregister, "b1")
		}),
		breaks("L2", "never-tried-again", func(s *story) {
			bound(s)
			s.commit(&fsm.RemoveBinding{ID: "b1"})
			s.wait(80 * time.Second)
		}),
	}
}

// lateDeregister has a deregistration that was given up take effect after another binding took the address over.
func lateDeregister(s *story) {
	bound(s)
	s.commit(&fsm.RemoveBinding{ID: "b1"})
	s.commit(&fsm.BeginOperation{Action: fsm.ActionDeregister, Binding: "b1", Deadline: time.Second})
	late := s.sent(fsm.ActionDeregister, "b1")
	s.heard(late, "lost")
	s.commit(&fsm.PutBinding{ID: "b2", Balancer: lb, Address: backend})
	s.call(fsm.ActionEnsure, "b2")
	s.effect(late)
}

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
			s.forward(vip1, "n1")
			s.forward(vip1)
		}),
		breaks("S9", "rules-go-first", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.steer("n1", vip1, false)
		}),
		fine("S9", "rules-removed-by-hand-or-reboot", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.say(event.Steered{Node: "n1", Boot: "b1", By: "hand"}, event.Steered{Node: "n2", Boot: "b2"})
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

func trafficTales() []tale {
	return []tale{
		fine("S8", "served", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.flow(vip1, "n1", "a/web-n1")
			s.say(event.FaultBegan{ID: 1, Fault: "kill", On: []string{"m1"}}, event.Ended{Process: "m1", Life: 1, Killed: true})
			s.flow(vip1, "n2", "a/web-n2")
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
		fine("S8", "lost-during-a-fault-of-the-switch", func(s *story) {
			s.publish("web", vip1, "n1")
			s.say(event.FaultBegan{ID: 1, Fault: "restart", On: []string{"sw"}})
			s.flow(vip1, "", "")
			s.say(event.FaultEnded{ID: 1})
			s.wait(5 * time.Second)
			s.flow(vip1, "", "")
		}),
	}
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
		fine("S12", "operator-released-a-hold", func(s *story) {
			s.publish("web", vip1, "n1")
			s.commit(&fsm.PutHold{ID: "h", Of: "Service", Subjects: []string{"a/web"}})
			s.commit(&fsm.ReleaseHold{ID: "h"})
			give(s)
		}),
	}
}

func livenessTales() []tale {
	return []tale{
		fine("L1", "everything-agrees", func(s *story) {
			s.publish("web", vip1, "n1", "n2")
			s.say(event.Calm{})
			s.wait(65 * time.Second)
		}),
		breaks("L1", "no-address", func(s *story) {
			s.service("web", "create", "user", "}")
			s.say(event.Calm{})
			s.wait(35 * time.Second)
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
		breaks("L3", "calls-fail", func(s *story) {
			s.say(event.FaultBegan{ID: 1, Fault: "cut", On: []string{"m3"}})
			fails(s, 10)
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

// fails has a client ask in vain, twice a second.
func fails(s *story, n int) {
	for i := range n {
		s.say(event.CallBegan{Client: "c1", ID: 200 + i, Do: "put", Key: "z", Value: "1", To: "m1"})
		s.wait(500 * time.Millisecond)
		s.say(event.CallEnded{Client: "c1", ID: 200 + i, Outcome: "unknown", Why: "no leader"})
	}
}

// judged tells a tale and gives the rules that it broke.
func judged(t fataler, x tale, noise func(*story)) (*story, []string) {
	s := newStory(t, noise)
	s.begin()
	x.tell(s)
	s.set.Finish(s.now)
	var rules []string
	for _, v := range s.broken {
		rules = append(rules, v.Rule)
	}
	slices.Sort(rules)
	return s, slices.Compact(rules)
}

func TestRulesAreFineWithFineHistoriesAndBreakWithOthers(t *testing.T) {
	for _, x := range tales() {
		t.Run(x.rule+"/"+x.name, func(t *testing.T) {
			s, rules := judged(t, x, nil)
			switch {
			case !x.broken && len(rules) > 0:
				t.Errorf("broken by a fine history:\n%s", s.describe())
			case !x.broken && s.set.Counts()[x.rule] == 0:
				t.Errorf("the history puts %s to no test", x.rule)
			case x.broken && !slices.Contains(rules, x.rule):
				t.Errorf("not seen to be broken; others: %s", s.describe())
			}
			for _, v := range s.broken {
				if v.Rule == x.rule && len(v.Events) == 0 && x.rule != "L1" && x.rule != "L2" {
					t.Errorf("no event shows %s", v)
				}
			}
		})
	}
}

// Every rule that can be checked has a history that it finds broken.
func TestEveryRuleIsSeenBroken(t *testing.T) {
	for _, r := range check.Rules() {
		if r.Missing == "" && !slices.ContainsFunc(tales(), func(x tale) bool { return x.rule == r.ID && x.broken }) {
			t.Errorf("no history breaks %s", r.ID)
		}
	}
}

// Equal events give equal violations, to the letter.
func TestEqualHistoriesAreJudgedAlike(t *testing.T) {
	for _, x := range tales() {
		a, _ := judged(t, x, nil)
		b, _ := judged(t, x, nil)
		if a.describe() != b.describe() {
			t.Errorf("%s/%s:\n%s\nthen\n%s", x.rule, x.name, a.describe(), b.describe())
		}
	}
}

// What has nothing to do with a rule changes nothing of what it says, wherever it comes in between.
func TestPropertyIrrelevantEventsChangeNoVerdict(t *testing.T) {
	all := tales()
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SampledFrom(all).Draw(t, "tale")
		irrelevant := func(i int) event.Event {
			return []event.Event{
				event.Log{Process: "m1", Text: "hello"}, event.Message{From: "m1", To: "m2", What: "data"},
				event.FaultBegan{ID: 1000, Fault: "lamp", On: []string{"elsewhere"}}, event.MachineDown{Machine: "elsewhere"},
				event.Session{Switch: "switch-z", Member: "m9", Up: true},
				event.Object{Kind: "Lease", Namespace: "kube-node-lease", Name: "n1", By: "kubelet", Verb: "update", JSON: []byte("{}")},
				event.Flow{Client: "c9", Address: addr("203.0.113.77"), Port: 1}, event.Viewed{Process: "elsewhere"},
				event.Contact{Process: "m1", Life: 1, Quorum: true},
			}[i%9]
		}
		picks := rapid.SliceOfN(rapid.IntRange(-3, 8), 50, 50).Draw(t, "noise")
		n := 0
		noise := func(s *story) {
			if n++; n > 45 && picks[n%len(picks)] >= 0 { // once the world has begun
				s.say(irrelevant(picks[n%len(picks)]), event.FaultEnded{ID: 1000})
			}
		}
		_, plain := judged(t, x, nil)
		s, noisy := judged(t, x, noise)
		if !slices.Equal(plain, noisy) {
			t.Fatalf("%s/%s breaks %v, with noise %v: %s", x.rule, x.name, plain, noisy, s.describe())
		}
	})
}
