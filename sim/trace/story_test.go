// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// invented makes up a run that looks like one: members that elect and replicate, agents that follow, faults, traffic.
type invented struct {
	*Recorder
	random *rand.Rand
	at     time.Duration
	number uint64
	index  uint64
}

func (v *invented) say(e event.Event) {
	v.number++
	v.Hear(event.Stamped{At: v.at, Number: v.number, Event: e})
}

func (v *invented) message(from, to, port string) {
	sent := v.at
	v.at += time.Duration(v.random.IntN(300)) * time.Microsecond
	m := event.Message{From: from, To: to, Port: port, What: "data", Size: v.random.IntN(900), Sent: sent, Arrived: v.at}
	if v.random.IntN(200) == 0 {
		m.Arrived = 0
	}
	v.say(m)
}

const inventedAddress = "192.0.2.17"

func entryAt(index uint64) []byte {
	entry, err := fsm.EncodeEntry(1, []fsm.Proposal{{Actor: "m1", Reason: "agents acknowledged", Command: &fsm.Acknowledge{
		Marks: []fsm.AppliedMark{{Node: "n3", Boot: "b1", Upto: fsm.Revision{Epoch: 1, Index: fsm.Index(index)}}},
	}}})
	if err != nil {
		panic(err)
	}
	return entry
}

// invent makes a run of a number of members, nodes and about that many events in 60 s.
func invent(members, nodes, events int) Trace {
	v := &invented{Recorder: New(Options{Keep: true}), random: rand.New(rand.NewPCG(1, 2))}
	m := func(i int) string { return fmt.Sprintf("m%d", i%members+1) }
	n := func(i int) string { return fmt.Sprintf("n%d", i%nodes+1) }
	for i := range members {
		v.say(event.Started{Process: m(i), Life: 1, Release: "new", Boot: "b1"})
	}
	for i := range nodes {
		v.say(event.Started{Process: n(i), Life: 1, Release: "new", Boot: "b1"})
		v.say(event.Session{Switch: "switch-a", Member: m(i), Up: true})
		v.say(event.Session{Switch: "switch-b", Member: m(i), Up: true})
	}
	leader, term := 0, uint64(2)
	v.say(event.Leading{Process: m(leader), Life: 1, Term: term, On: true})
	rounds := max(events/(4*members+4), 1)
	for round := range rounds {
		v.at = max(v.at, time.Duration(float64(60*time.Second)*float64(round)/float64(rounds)))
		leader, term = v.misfortune(round, rounds, leader, term, m, n)
		v.index++
		entry, digest := entryAt(v.index), fmt.Sprintf("%016x%016x", v.index*0x9e3779b97f4a7c15, v.index)
		for i := range members {
			if i != leader {
				v.message(m(leader), m(i), "raft")
				v.message(m(i), m(leader), "raft")
			}
		}
		for i := range members {
			v.say(event.Applied{Process: m(i), Life: 1, Index: v.index, Term: term, Entry: entry, Digest: digest})
			v.message(m(i), n(round+i), "api")
		}
		v.say(event.Acted{Process: n(round), Life: 1, Revision: fsm.Revision{Epoch: 1, Index: fsm.Index(v.index)}})
		v.others(round, m, n)
	}
	v.at = 60 * time.Second
	t := v.Trace()
	t.About = About{
		Seed: 6237209, Module: "sha256:4be1c3a09d7755e0", Until: 60 * time.Second,
		Command:  "fairlead sim replay --seed 6237209 --members 5 --nodes 10",
		Scenario: "at 0s create service default/web with 2 pods\nat 10s cut m1 m2 for 8s\nat 20s kill m3 for 5s\nat 35s reboot n4\n",
	}
	return t
}

// misfortune is what the faults do, at fixed shares of the run.
func (v *invented) misfortune(round, rounds, leader int, term uint64, m, n func(int) string) (int, uint64) {
	at := func(share float64) bool { return round == int(float64(rounds)*share) }
	switch {
	case at(0.15):
		v.say(event.FaultBegan{ID: 1, Fault: "cut", On: []string{m(0), m(1)}, Text: "m1 and m2 cannot hear each other"})
	case at(0.17):
		v.say(event.Contact{Process: m(0), Life: 1, Quorum: false, Commit: v.index, Applied: v.index})
		v.say(event.Leading{Process: m(leader), Life: 1, Term: term, On: false})
		leader, term = 2, term+1
		v.say(event.Leading{Process: m(leader), Life: 1, Term: term, On: true})
	case at(0.25):
		v.say(event.FaultBegan{ID: 2, Fault: "slow-disk", On: []string{m(3)}, Text: "disk of m4 is slow"})
	case at(0.28):
		v.say(event.FaultEnded{ID: 1, Fault: "cut", On: []string{m(0), m(1)}})
		v.say(event.Contact{Process: m(0), Life: 1, Quorum: true, Commit: v.index, Applied: v.index})
	case at(0.35):
		v.say(event.FaultBegan{ID: 3, Fault: "kill", On: []string{m(2)}, Text: "m3 is killed"})
		v.say(event.Ended{Process: m(2), Life: 1, Killed: true})
		leader, term = 1, term+1
		v.say(event.Leading{Process: m(leader), Life: 1, Term: term, On: true})
	case at(0.42):
		v.say(event.FaultEnded{ID: 3, Fault: "kill", On: []string{m(2)}})
		v.say(event.Started{Process: m(2), Life: 2, Release: "new", Boot: "b1"})
		v.say(event.Restored{Process: m(2), Life: 2, Index: v.index, Digest: "00"})
		v.say(event.FaultEnded{ID: 2, Fault: "slow-disk", On: []string{m(3)}})
	case at(0.55):
		v.say(event.FaultBegan{ID: 4, Fault: "power", On: []string{n(3)}, Text: n(3) + " has no power"})
		v.say(event.Ended{Process: n(3), Life: 1, Killed: true})
		v.say(event.MachineDown{Machine: n(3)})
	case at(0.65):
		v.say(event.FaultEnded{ID: 4, Fault: "power", On: []string{n(3)}})
		v.say(event.MachineUp{Machine: n(3), Boot: "b2"})
		v.say(event.Started{Process: n(3), Life: 2, Release: "new", Boot: "b2"})
	case at(0.75):
		v.say(event.Calm{})
	}
	return leader, term
}

// others is what happens now and then.
func (v *invented) others(round int, m, n func(int) string) {
	address := netip.MustParseAddr(inventedAddress)
	switch round % 12 {
	case 0:
		v.say(event.Log{Process: m(round), Level: "INFO", Text: "lease granted", Fields: "vip=" + inventedAddress})
		v.say(event.Object{Kind: "EndpointSlice", Namespace: "default", Name: "web-x1", UID: "u-1", Version: v.number,
			By: "kubelet", Verb: "update", Fields: "2 ready", JSON: fmt.Appendf(nil, `{"version":%d}`, round%7)})
	case 3:
		v.say(event.CallBegan{Client: "client-1", ID: round, Do: "put", Key: "x", Value: fmt.Sprint(round), To: m(round)})
		v.say(event.CallEnded{Client: "client-1", ID: round, Outcome: "ok", Index: v.index})
	case 5:
		v.say(event.Forwarding{Switch: "switch-a", Prefix: netip.PrefixFrom(address, 32), NextHops: []netip.Addr{netip.MustParseAddr("198.51.100.3")},
			Paths: []event.Path{{Member: m(round), NextHop: netip.MustParseAddr("198.51.100.3"), LocalPref: 100, Best: true}}})
	case 7:
		v.say(event.Drive{Driver: "stub", Call: round, Process: m(round), Phase: "sent", Action: "ensure", Balancer: "lb-1",
			Address: "10.0.0.7:80", Binding: "b1", Attempt: fsm.Revision{Epoch: 1, Index: 4}})
		v.say(event.Entry{Balancer: "lb-1", Address: "10.0.0.7:80", Owner: "fairlead", Present: round%24 < 12, By: "driver"})
	case 9:
		v.say(event.Steered{Node: n(round), Boot: "b1", Addresses: []netip.Addr{address}})
	case 11:
		v.say(event.Flow{Client: "client-2", Address: address, Port: 443, Switch: "switch-a", NextHop: netip.MustParseAddr("198.51.100.3"),
			Node: n(round), Pod: "default/web-1", Served: round%300 != 11, Wanted: true})
		if round%120 == 11 {
			v.say(event.Log{Process: n(round), Level: "WARN", Text: "route is slow", Fields: "node=" + n(round)})
		}
	}
}
