// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"bytes"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/check"
	"fairlead.io/fairlead/sim/event"
)

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
		fine("S1", "behind-when-restored", func(s *story) {
			backup := snapshot(s)
			s.commit(&fsm.PutNode{ID: "n9"})
			late, _ := s.entry(&fsm.PutNode{ID: "n7"})
			s.apply(late, "m1")
			restored(s, backup, "m1")
			s.apply(late, "m2", "m3")
			s.say(event.Restored{Process: "m2", Life: 1, Index: uint64(s.state.Applied()), Digest: s.state.Digest().String()})
			s.out["m3"] = true
			s.commit(&fsm.PutNode{ID: "n8"})
		}),
		breaks("S1", "another-digest-after-a-restore", func(s *story) {
			backup := snapshot(s)
			s.commit(&fsm.PutNode{ID: "n9"})
			restored(s, backup)
			a, _ := s.entry(&fsm.PutNode{ID: "n8"})
			s.apply(a, "m1")
			a.Digest = fsm.Digest{Lo: 7}.String()
			s.apply(a, "m2")
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
		fine("S3", "port-just-closed", func(s *story) {
			twoPorts(s)
			s.commit(allocate("web", 80))
			s.wait(time.Second)
			s.flowTo(443, vip1, "n1", "a/web-n1")
		}),
		fine("S3", "port-closed-while-a-node-is-stopped", func(s *story) {
			twoPorts(s)
			s.say(event.FaultBegan{ID: 1, Fault: "freeze", On: []string{"n1"}})
			s.commit(allocate("web", 80))
			s.wait(7 * time.Second)
			s.flowTo(443, vip1, "n1", "a/web-n1")
			s.say(event.FaultEnded{ID: 1})
			s.flowTo(443, vip1, "n1", "a/web-n1")
		}),
		breaks("S3", "closed-port-goes-on", func(s *story) {
			twoPorts(s)
			s.commit(allocate("web", 80))
			s.wait(4 * time.Second)
			s.flowTo(443, vip1, "n1", "a/web-n1")
		}),
		breaks("S3", "port-that-never-was", func(s *story) {
			twoPorts(s)
			s.commit(allocate("web", 80))
			s.flowTo(8443, vip1, "n1", "a/web-n1")
		}),
		breaks("S3", "closed-port-of-another", func(s *story) {
			twoPorts(s)
			s.publish("api", vip2, "n2")
			s.commit(allocate("web", 80))
			s.acknowledge("n1")
			s.commit(allocate("api", 443))
			s.flowTo(443, vip1, "n1", "a/web-n1")
		}),
		fine("S3", "port-handed-on", func(s *story) {
			twoPorts(s)
			s.publish("api", vip2, "n2")
			s.commit(allocate("web", 80))
			s.acknowledge("n1")
			s.commit(allocate("api", 443))
			s.say(event.MachineUp{Machine: "n1", Boot: "b2"})
			s.commit(allocate("web"))
			s.commit(allocate("web", 80))
		}),
		breaks("S3", "port-handed-on-by-hearsay", func(s *story) {
			twoPorts(s)
			s.publish("api", vip2, "n2")
			s.commit(allocate("web", 80))
			s.commit(&fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: "n1", Boot: "b1", Upto: s.state.Read().Revision()}}})
			s.commit(allocate("api", 443))
		}),
		breaks("S3", "nodes-of-two-services", func(s *story) {
			handOn(s)
			s.forward(vip1, "n1", "n2")
			s.wait(2 * time.Second)
		}),
		fine("S3", "nodes-of-two-services-for-a-moment", func(s *story) {
			handOn(s)
			s.steer("n1", vip1, true)
			s.forward(vip1, "n1", "n2")
			s.wait(500 * time.Millisecond)
			s.forward(vip1, "n2")
			s.wait(2 * time.Second)
		}),
		fine("S3", "nodes-of-two-services-by-a-frozen-member", func(s *story) {
			handOn(s)
			s.say(event.FaultBegan{ID: 1, Fault: "freeze", On: []string{"m3"}})
			s.forwardBy(vip1, []string{"m3"}, "n1", "n2")
			s.wait(2 * time.Second)
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
		breaks("S13", "disk-lost", func(s *story) {
			s.say(event.Acted{Process: "n1", Life: 1, Revision: fsm.Revision{Epoch: 1, Index: 9}},
				event.Wiped{Machine: "n1"}, event.Acted{Process: "n1", Life: 2, Revision: fsm.Revision{Epoch: 1, Index: 8}})
		}),
		fine("S20", "not-taken-in", func(s *story) {
			foulService(s)
		}),
		breaks("S20", "planned-all-the-same", func(s *story) {
			foulService(s)
			s.say(event.Log{Process: "m1", Level: "WARN", Text: "set aside: no log entry can hold it", Fields: "object=foul"})
		}),
		fine("S13", "disk-as-it-was", func(s *story) {
			s.say(event.Acted{Process: "n1", Life: 1, Revision: fsm.Revision{Epoch: 1, Index: 9}},
				event.Wiped{Machine: "n1", Old: true}, event.Acted{Process: "n1", Life: 2, Revision: fsm.Revision{Epoch: 1, Index: 8}})
		}),
	}
}

// foulService has a tenant make a Service with an annotation that is not UTF-8, as JSON has it.
func foulService(s *story) {
	s.object("Service", "foul", "create", "user", `{"metadata":{"namespace":"a","name":"foul","uid":"u","annotations":{"a":"k\ufffd"}},"spec":{"type":"LoadBalancer","ports":[{"port":80}]}}`)
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

// twoPorts publishes a Service that answers on two ports.
func twoPorts(s *story) {
	s.publish("web", vip1, "n1")
	s.commit(allocate("web", 80, 443))
	s.wait(time.Second)
	s.flowTo(443, vip1, "n1", "a/web-n1")
}

// allocate gives ports of an address to a Service, which shares it.
func allocate(name string, ports ...uint16) fsm.Command {
	c := &fsm.Allocate{Address: addr(vip1), Service: fsm.ServiceID("a/" + name), SharingKey: "k"}
	for _, p := range ports {
		c.Ports = append(c.Ports, fsm.Port{Protocol: fsm.TCP, Number: p})
	}
	return c
}

// handOn has the address of a Service that ran on one node become another one's, on another node.
func handOn(s *story) {
	s.publish("web", vip1, "n1")
	s.service("web", "delete", "user", "}")
	s.commit(&fsm.ReleaseAllocation{Address: addr(vip1), Service: "a/web"})
	s.withdraw(vip1, "n1")
	s.commit(&fsm.FreeAllocation{Address: addr(vip1), Service: "a/web"})
	s.publish("api", vip1, "n2")
}
