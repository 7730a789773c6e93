// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"fmt"
	"net/netip"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/balancer"
	"fairlead.io/fairlead/sim/client"
	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/fabric"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/kube"
	"fairlead.io/fairlead/sim/network"
	"fairlead.io/fairlead/sim/segment"
	"fairlead.io/fairlead/sim/vm"
)

// Options say who there is.
type Options struct {
	Members  int
	Nodes    int
	Switches int
	// Cluster is one that somebody brought along; nil: the usual one, of Nodes and Switches.
	Cluster *Cluster
	// Balancers are outside load balancers, each with a driver of its own, that somebody brings into the record directly,
	// and Outside further drivers, with two balancers each, that users know by objects of LBCF's kinds.
	Balancers int
	Outside   int
	// Segments are those that nodes are in and answer for addresses on; not in a Cluster. Asked gives the addresses that the host in
	// the i-th asks for, in order; nil: none.
	Segments int
	Asked    func(i int) []netip.Addr
	// Aggregate is how many bits prefixes have that are announced in the place of their addresses, where there is a Block that may
	// be; 0: there is none, and no such prefixes. Not in a Cluster.
	Aggregate int
	// Sockets is what is served at the sockets of nodes.
	Sockets start.Sockets
	// Record is what the group agreed on, for those who call its API; without it nobody can.
	Record   func() *fsm.View
	Program  *vm.Module // of members and agents
	Mutant   string     // the planted bug that is on, in a program that has them
	Debug    bool       // processes log everything
	DriftPPM int        // how much clocks run wrong at most, either way
	Release  string     // that everybody begins with; empty: the current one
	Raft     start.Raft // of members
	// Certificates says that machines have some, which may be revoked.
	Certificates bool
	Usage        *vm.Usage // has counted in it what processes do; optional
}

// Stage is everything that plays in one world.
type Stage struct {
	World   *engine.World
	Network *network.Network
	Kube    *kube.Server

	options   Options
	machines  map[string]*machine
	members   []string
	nodes     []string
	switches  []*fabric.Switch
	balancers []*balancer.Driver
	group     *client.Group
	hosts     []*segment.Host
	issued    int // certificates
}

// New builds a world in which nothing runs yet; see Raise.
func New(w *engine.World, o Options) *Stage {
	s := &Stage{
		World: w, Network: network.New(w, network.Options{}), options: o, machines: map[string]*machine{},
	}
	for i := range o.Members {
		s.members = append(s.members, MemberName(i))
		s.add(s.members[i], o.memberAddress(i), s.member)
	}
	for _, n := range o.nodes() {
		s.addNode(n)
	}
	for i := range o.Balancers {
		s.balancers = append(s.balancers, balancer.New(w, s.Network, balancer.Options{
			Driver: DriverName(i), Balancers: []string{BalancerName(i)}, Settle: Tuning().Settle,
		}))
	}
	for i := range o.Outside {
		i += o.Balancers
		s.balancers = append(s.balancers, balancer.New(w, s.Network, balancer.Options{
			Driver: DriverName(i), Known: OutsideDriver(DriverName(i)), Balancers: OutsideBalancers(i), Settle: Tuning().Settle,
		}))
	}
	s.group = client.New(client.Options{World: w, Network: s.Network, Members: s.Members, Record: o.Record})
	s.furnish()
	return s
}

func (o Options) memberAddress(i int) netip.Addr {
	if o.Cluster != nil && o.Cluster.MemberAddress != nil {
		return o.Cluster.MemberAddress(i)
	}
	return MemberAddress(i)
}

func (o Options) nodes() (out []ClusterNode) {
	if o.Cluster != nil {
		return o.Cluster.Nodes
	}
	for i := range o.Nodes {
		out = append(out, usualNode(i))
	}
	return out
}

// MemberName is the name of the i-th member and its machine, counted from 0.
func MemberName(i int) string { return fmt.Sprint("m", i+1) }

// NodeName is the name of the i-th node, counted from 0.
func NodeName(i int) string { return fmt.Sprint("n", i+1) }

// SwitchName is the name of the i-th switch, counted from 0.
func SwitchName(i int) string { return fmt.Sprint("s", i+1) }

// MemberAddress is the address of the i-th member's machine, counted from 0.
func MemberAddress(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}) }

// NodeAddress is the address of the i-th node, counted from 0.
func NodeAddress(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 1, byte(i / 250), byte(i%250 + 1)})
}

// Members are the names of the members.
func (s *Stage) Members() []string { return s.members }

// Nodes are the names of the nodes.
func (s *Stage) Nodes() []string { return s.nodes }

// Switches are the switches, in order of their names.
func (s *Stage) Switches() []*fabric.Switch { return s.switches }

// Sockets is what is served at the sockets of nodes.
func (s *Stage) Sockets() start.Sockets { return s.options.Sockets }

// DriverName is the name of the i-th driver in the record, counted from 0.
func DriverName(i int) string { return fmt.Sprint("d", i+1) }

// BalancerName is the name of the i-th balancer in events, counted from 0.
func BalancerName(i int) string { return fmt.Sprint("lb", i+1) }

// BalancerIdentity is what the record knows the i-th balancer by, counted from 0.
func BalancerIdentity(i int) fsm.Identity { return balancer.Identity(DriverName(i), BalancerName(i)) }

// OutsideDriver is what the record knows a driver by that users know by an object: one for all namespaces.
func OutsideDriver(name string) string { return System + "/" + OutsideObject(name) }

// OutsideObject is the name of a driver's object.
func OutsideObject(name string) string { return "lbcf-" + name }

// OutsideBalancers are the names in events of the balancers of the i-th driver, one that users know by an object.
func OutsideBalancers(i int) []string { return []string{BalancerName(i), BalancerName(i) + "b"} }

// Balancers are the drivers of outside load balancers, in order of their names.
func (s *Stage) Balancers() []*balancer.Driver { return s.balancers }

// Group is the group as its clients reach it.
func (s *Stage) Group() *client.Group { return s.group }

// Tuning is how members deal with drivers in every world: quickly enough that a minute shows deregistrations complete.
// A checker's bounds L2 and Settle follow from it.
func Tuning() start.Tuning {
	return start.Tuning{
		RetryFloor: 500 * time.Millisecond, RetryCap: 4 * time.Second, Drift: 500 * time.Millisecond,
		Timeout: 3 * time.Second, Settle: 3 * time.Second,
	}
}

// Raise starts everybody, within a moment of each other.
func (s *Stage) Raise() {
	r := s.World.Random("raise")
	for _, name := range append(append([]string{}, s.members...), s.nodes...) {
		s.World.After(time.Duration(r.Int64N(int64(50*time.Millisecond))), func() { s.Start(name) })
	}
	s.ask()
}

// Strike ends everybody, at the end of a world.
func (s *Stage) Strike() {
	for _, name := range append(append([]string{}, s.members...), s.nodes...) {
		if m := s.machines[name]; m.process != nil {
			m.process.Kill()
		}
	}
}
