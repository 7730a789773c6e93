// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/network"
)

// Port is where switches listen for speakers.
const Port = "bgp"

// Switch is one border switch.
type Switch struct {
	o       Options
	world   *engine.World
	network *network.Network
	random  *rand.Rand

	up         bool
	neighbours map[string]*neighbour // by machine
	opening    []*session            // without a neighbour that they are the session of yet, as they came
	rib        rib

	fib     map[netip.Prefix][]netip.Addr
	lengths map[masks]int // how many prefixes the FIB has of each length
	dirty   map[netip.Prefix]bool
	flush   *engine.Timer

	hostile Hostility
}

// neighbour is a speaker that the switch is configured for.
type neighbour struct {
	Neighbour
	session *session // nil while none is established
	// What was agreed on in the last session counts while its paths are kept.
	restart restart
	timer   *engine.Timer // of the restart
}

// New makes a switch and turns it on.
func New(w *engine.World, n *network.Network, o Options) *Switch {
	s := &Switch{
		o: o.withDefaults(), world: w, network: n, random: w.Random("fabric " + o.Name),
		neighbours: map[string]*neighbour{}, dirty: map[netip.Prefix]bool{},
	}
	s.forget()
	for _, one := range o.Neighbours {
		s.Know(one)
	}
	s.Up()
	return s
}

// Name is the switch's.
func (s *Switch) Name() string { return s.o.Name }

// Know configures a neighbour, or changes it: a session with it begins anew.
func (s *Switch) Know(n Neighbour) {
	s.Unknow(n.Member)
	s.neighbours[n.Member] = &neighbour{Neighbour: n}
}

// Unknow takes a neighbour out of the configuration. Its session ends, and its paths go at once.
func (s *Switch) Unknow(member string) {
	n := s.neighbours[member]
	if n == nil {
		return
	}
	if n.session != nil {
		n.session.cease("peer unconfigured")
	}
	n.timer.Stop()
	s.drop(member, func(*path) bool { return true })
	delete(s.neighbours, member)
}

// Up turns a switch on that was Down: without sessions, RIB and FIB.
func (s *Switch) Up() {
	if !s.up {
		s.up = true
		s.network.Listen(s.o.Name, Port, s.accept)
	}
}

// Down is the loss of everything that a switch holds. Connections are reset, unless the network has taken the
// machine's power before.
func (s *Switch) Down() {
	if !s.up {
		return
	}
	s.up = false
	s.network.Close(s.o.Name, Port)
	for _, open := range slices.Clone(s.opening) {
		open.abandon()
	}
	for _, member := range slices.Sorted(maps.Keys(s.neighbours)) {
		n := s.neighbours[member]
		n.timer.Stop()
		if n.session != nil {
			session := n.session
			n.session = nil
			session.abandon()
			s.world.Publish(event.Session{Switch: s.o.Name, Member: member, Why: "switch down"})
		}
	}
	for _, prefix := range slices.SortedFunc(maps.Keys(s.fib), netip.Prefix.Compare) {
		s.world.Publish(event.Forwarding{Switch: s.o.Name, Prefix: prefix})
	}
	s.forget()
}

func (s *Switch) forget() {
	s.flush.Stop()
	s.flush = nil
	clear(s.dirty)
	s.rib, s.fib, s.lengths = rib{}, map[netip.Prefix][]netip.Addr{}, map[masks]int{}
}

// Established tells whether a session with a member is open.
func (s *Switch) Established(member string) bool {
	n := s.neighbours[member]
	return n != nil && n.session != nil
}

func (s *Switch) refused(by, what, why string) {
	s.world.Publish(event.Refused{Model: s.o.Name, By: by, What: what, Why: why})
}

// On tells whether the switch is on.
func (s *Switch) On() bool { return s.up }
