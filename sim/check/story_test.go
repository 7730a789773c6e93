// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/check"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
)

// story tells a checker a history by hand: three members, three nodes, one switch, one outside load balancer. What the
// record says comes from commands, committed on the spot and applied by every member that runs.
type story struct {
	t      fataler
	set    *check.Set
	state  *fsm.State
	now    time.Duration
	number uint64
	later  uint64       // terms than the first
	noise  func(*story) // between any two events; optional
	quiet  bool         // within noise
	out    map[string]bool
	steers map[string]map[netip.Addr]bool
	calls  int
	slices map[string]string
	broken []check.Violation
}

// fataler is what a story needs of a test or property.
type fataler interface{ Fatal(...any) }

const (
	vip1, vip2 = "203.0.113.1", "203.0.113.2"
	untold     = "203.0.113.99" // which no switch is told of
	lb         = "lb-1"
	lbIdentity = "d?id=lb-1"
	backend    = "198.51.100.1:80"
)

func host(n string) netip.Addr { return netip.MustParseAddr("192.0.2." + strings.TrimPrefix(n, "n")) }
func addr(s string) netip.Addr { return netip.MustParseAddr(s) }
func pfx(s string) netip.Prefix {
	return fsm.HostPrefix(addr(s))
}

func newStory(t fataler, noise func(*story)) *story { return newStoryOf(t, noise, start.Sockets{}) }

func newStoryOf(t fataler, noise func(*story), sockets start.Sockets) *story {
	s := &story{
		t: t, state: fsm.New(), noise: noise, out: map[string]bool{}, steers: map[string]map[netip.Addr]bool{}, slices: map[string]string{},
	}
	topology := check.Topology{Members: []string{"m1", "m2", "m3"}, Switches: []string{"sw"}, Balancers: []check.Balancer{{Name: lb, Identity: lbIdentity, Driver: "d"}}}
	topology.Sockets = sockets
	topology.Exchanges = func(_ string, a netip.Addr) bool { return a != addr(untold) }
	for _, n := range []string{"n1", "n2", "n3"} {
		topology.Nodes = append(topology.Nodes, check.Node{Name: n, Addresses: []netip.Addr{host(n)}})
		topology.Links = append(topology.Links, check.Link{Node: n, Segment: "lan1", Network: netip.MustParsePrefix("172.16.0.0/16")})
	}
	set, err := check.New(check.Options{Topology: topology, Bounds: check.Bounds{L2: 70 * time.Second}, Violated: func(v check.Violation) { s.broken = append(s.broken, v) }})
	if err != nil {
		t.Fatal(err)
	}
	s.set = set
	return s
}

// say publishes events, one after the other.
func (s *story) say(events ...event.Event) {
	for _, e := range events {
		s.number++
		s.set.Hear(event.Stamped{At: s.now, Number: s.number, Event: e})
		if s.noise != nil && !s.quiet {
			s.quiet = true
			s.noise(s)
			s.quiet = false
		}
	}
}

// wait lets time pass.
func (s *story) wait(d time.Duration) {
	for end := s.now + d; s.now < end; {
		s.now += 10 * time.Millisecond
		s.set.Tick(s.now)
	}
}

// members are those that run.
func (s *story) members() []string {
	return slices.DeleteFunc([]string{"m1", "m2", "m3"}, func(m string) bool { return s.out[m] })
}

// entry makes a log entry of commands and applies it here.
func (s *story) entry(commands ...fsm.Command) (event.Applied, []fsm.Outcome) {
	var proposals []fsm.Proposal
	for _, c := range commands {
		proposals = append(proposals, fsm.Proposal{Actor: "story", Command: c})
	}
	_, epoch, _ := s.state.Identity()
	data, err := fsm.EncodeEntry(epoch, proposals)
	if err != nil {
		s.t.Fatal(err)
	}
	index := s.state.Applied() + 1
	outcomes := s.state.ApplyEntries([]fsm.LogEntry{{Index: index, Term: 1 + s.later, Data: data}})[0]
	for _, o := range outcomes {
		if err := o.Err(); err != nil {
			s.t.Fatal(err)
		}
	}
	return event.Applied{Index: uint64(index), Term: 1 + s.later, Entry: data, Digest: s.state.Digest().String()}, outcomes
}

// commit has every member that runs apply commands.
func (s *story) commit(commands ...fsm.Command) fsm.Revision {
	a, outcomes := s.entry(commands...)
	s.apply(a, s.members()...)
	return outcomes[0].Revision
}

func (s *story) apply(a event.Applied, members ...string) {
	for _, m := range members {
		a.Process, a.Life = m, 1
		s.say(a)
	}
}

// object writes a Kubernetes object.
func (s *story) object(kind, name, verb, by, json string) {
	namespace := "a"
	if kind == "Node" || kind == "IPAddressPool" || kind == "BalancingPolicy" || kind == "LocalRedirectPolicy" {
		namespace = ""
	}
	s.say(event.Object{Kind: kind, Namespace: namespace, Name: name, By: by, Verb: verb, JSON: []byte(json)})
}

func (s *story) service(name, verb, by, extra string) {
	s.object("Service", name, verb, by, `{"metadata":{"namespace":"a","name":"`+name+`","uid":"u-`+name+`"},"spec":{"type":"LoadBalancer","ports":[{"port":80}]`+extra+`}`)
}

// serve says on which nodes a Service has a pod.
func (s *story) serve(name string, nodes ...string) {
	var pods []string
	for _, n := range nodes {
		pods = append(pods, `{"nodeName":"`+n+`","conditions":{"ready":true},"targetRef":{"namespace":"a","name":"`+name+`-`+n+`"}}`)
	}
	s.object("EndpointSlice", name+"-1", "update", "controller",
		`{"metadata":{"labels":{"kubernetes.io/service-name":"`+name+`"}},"endpoints":[`+strings.Join(pods, ",")+`]}`)
}

func (s *story) node(name, verb, ready string) {
	s.object("Node", name, verb, "kubelet", `{"metadata":{"name":"`+name+`"},"status":{"conditions":[{"type":"Ready","status":"`+ready+`"}]}}`)
}

// begin has the world start: everybody runs, sessions are up, m1 leads, nodes are known.
func (s *story) begin() {
	for _, n := range []string{"n1", "n2", "n3"} {
		s.say(event.MachineUp{Machine: n, Boot: "b1"}, event.Started{Process: n, Life: 1, Boot: "b1"}, event.Steered{Node: n, Boot: "b1"})
		s.steers[n] = map[netip.Addr]bool{}
	}
	for _, m := range s.members() {
		s.say(event.Started{Process: m, Life: 1, Boot: "b1"})
	}
	s.commit(&fsm.InitGroup{Group: "g", Format: fsm.NewestFormat})
	for _, m := range s.members() {
		s.commit(&fsm.ReportMember{Server: fsm.ServerID(m + "-1"), Name: m, Format: fsm.NewestFormat, Run: "r"})
		s.say(event.Contact{Process: m, Life: 1, Quorum: true}, event.Session{Switch: "sw", Member: m, Up: true})
	}
	s.say(event.Leading{Process: "m1", Life: 1, Term: 1, On: true})
	s.object("IPAddressPool", "p", "create", "user", "{}")
	for _, n := range []string{"n1", "n2", "n3"} {
		s.node(n, "create", "True")
		s.commit(&fsm.PutNode{ID: fsm.NodeID(n), Addresses: []netip.Addr{host(n)}, Eligible: true}, &fsm.RegisterBoot{Node: fsm.NodeID(n), Boot: "b1"})
	}
	s.wait(15 * time.Second)
}

// steer has the kernel of a node steer an address, or not.
func (s *story) steer(node, vip string, on bool) {
	if on {
		s.steers[node][addr(vip)] = true
	} else {
		delete(s.steers[node], addr(vip))
	}
	var list []netip.Addr
	for a := range s.steers[node] {
		list = append(list, a)
	}
	slices.SortFunc(list, netip.Addr.Compare)
	s.say(event.Steered{Node: node, Boot: "b1", Addresses: list})
}

// acknowledge has a node say that it carried out everything.
func (s *story) acknowledge(nodes ...string) {
	for _, n := range nodes {
		r := s.state.Read().Revision()
		s.say(event.Acted{Process: n, Life: 1, Revision: r})
		s.commit(&fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: fsm.NodeID(n), Boot: "b1", Upto: r}}})
	}
}

// forward has the switch forward an address to nodes, which all members that run announce.
func (s *story) forward(vip string, nodes ...string) { s.forwardBy(vip, s.members(), nodes...) }

func (s *story) forwardBy(vip string, members []string, nodes ...string) {
	f := event.Forwarding{Switch: "sw", Prefix: pfx(vip)}
	for _, n := range nodes {
		f.NextHops = append(f.NextHops, host(n))
		for _, m := range members {
			f.Paths = append(f.Paths, event.Path{Member: m, NextHop: host(n), Best: true})
		}
	}
	s.say(f)
}

func (s *story) hops(vip string, nodes ...string) *fsm.SetRoute {
	c := &fsm.SetRoute{Prefix: pfx(vip)}
	for _, n := range nodes {
		c.Hops = append(c.Hops, fsm.HopSpec{Node: fsm.NodeID(n), Address: host(n)})
	}
	return c
}

// publish brings a Service all the way to the switch.
func (s *story) publish(name, vip string, nodes ...string) {
	s.service(name, "create", "user", "}")
	s.serve(name, nodes...)
	s.wait(100 * time.Millisecond)
	id := fsm.ServiceID("a/" + name)
	s.commit(&fsm.PutService{Service: fsm.Service{ID: id, UID: "u-" + name}},
		&fsm.Allocate{Address: addr(vip), Service: id, Ports: []fsm.Port{{Protocol: fsm.TCP, Number: 80}}})
	s.commit(s.hops(vip, nodes...))
	s.service(name, "status", "m1", `},"status":{"loadBalancer":{"ingress":[{"ip":"`+vip+`"}]}}`)
	for _, n := range nodes {
		s.steer(n, vip, true)
	}
	s.acknowledge(nodes...)
	s.forward(vip, nodes...)
	s.wait(5 * time.Second)
}

// withdraw takes a next hop back, in order.
func (s *story) withdraw(vip, node string, left ...string) {
	since := s.commit(s.hops(vip, left...))
	s.forward(vip, left...)
	s.finish(vip, node, since)
	s.steer(node, vip, false)
}

func (s *story) finish(vip, node string, since fsm.Revision) {
	var marks []fsm.AnnouncedMark
	for _, m := range s.members() {
		marks = append(marks, fsm.AnnouncedMark{Server: fsm.ServerID(m + "-1"), Run: "r", Upto: since, Withdrawn: since})
	}
	s.commit(&fsm.ReportAnnounced{Marks: marks})
	s.commit(&fsm.FinishWithdrawal{Prefix: pfx(vip), Node: fsm.NodeID(node), Address: host(node), Since: since})
}

// flow is a request that is wanted to be served.
func (s *story) flow(vip, node, pod string) { s.flowTo(80, vip, node, pod) }

func (s *story) flowTo(port uint16, vip, node, pod string) {
	f := event.Flow{Client: "c1", Address: addr(vip), Port: port, Switch: "sw", Node: node, Pod: pod, Served: pod != "", Wanted: true}
	if node != "" {
		f.NextHop = host(node)
	}
	s.say(f)
}

// call is one to the driver: sent, effect, answered, heard, in one go.
func (s *story) call(action fsm.Action, id string) {
	s.commit(&fsm.BeginOperation{Action: action, Binding: fsm.BindingID(id), Deadline: 10 * time.Second})
	c := s.sent(action, id)
	s.effect(c)
	s.heard(c, "succeeded")
}

func (s *story) sent(action fsm.Action, id string) event.Drive {
	s.calls++
	c := event.Drive{Driver: "d", Call: s.calls, Process: "m1", Phase: "sent", Action: action.String(), Balancer: lb, Address: backend, Binding: id}
	if op, ok := fsm.Get[*fsm.Operation](s.state.Read(), fsm.TableOperations, string(fsm.SubjectOf(lbIdentity, backend, ""))); ok {
		c.Attempt = op.Attempt
	}
	s.say(c)
	return c
}

func (s *story) effect(c event.Drive) {
	c.Phase = "effect"
	s.say(c, event.Entry{Balancer: lb, Address: backend, Owner: "fairlead", Present: c.Action == "ensure", By: "driver"})
}

func (s *story) heard(c event.Drive, result string) {
	c.Result = result
	if result != "lost" {
		c.Phase = "answered"
		s.say(c)
	}
	c.Phase = "heard"
	s.say(c)
	results := map[string]fsm.Result{"succeeded": fsm.ResultSucceeded, "failed": fsm.ResultFailed, "lost": fsm.ResultUnknown}
	s.commit(&fsm.FinishOperation{Subject: fsm.SubjectOf(lbIdentity, backend, ""), Attempt: c.Attempt, Result: results[result], Settled: true})
}

// bind wants the backend on the balancer.
func (s *story) bind(id string) {
	s.commit(&fsm.PutLoadBalancer{ID: lb, Driver: "d", Info: []fsm.KV{{Key: "id", Value: "lb-1"}}, Synced: true}, &fsm.PutBinding{ID: fsm.BindingID(id), Balancer: lb, Address: backend})
}

// put and get are calls of clients.
func (s *story) put(client, key, value string) {
	s.calls++
	id := s.calls
	s.say(event.CallBegan{Client: client, ID: id, Do: "put", Key: key, Value: value, To: "m1"})
	at := s.commit(check.Put(key, value))
	s.say(event.CallEnded{Client: client, ID: id, Outcome: "ok", Index: uint64(at.Index)})
}

func (s *story) get(client, key, value string) {
	s.calls++
	s.say(event.CallBegan{Client: client, ID: s.calls, Do: "get", Key: key, To: "m2"}, event.CallEnded{Client: client, ID: s.calls, Outcome: "ok", Value: value})
}

func (s *story) describe() string {
	var out []string
	for _, v := range s.broken {
		out = append(out, fmt.Sprintf("%s (events %v)", v, v.Events))
	}
	return strings.Join(out, "\n")
}
