// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/sim/network"
	"fairlead.io/fairlead/sim/segment/message"
)

// Machine is a node with links.
type Machine struct {
	name     string
	on       bool
	links    []*Link
	watchers []*network.Conn
}

// NewMachine gives a machine, which has power, links that its processes find at message.Port.
func NewMachine(n *network.Network, name string) *Machine {
	m := &Machine{name: name, on: true}
	n.Listen(name, message.Port, m.accept)
	return m
}

// Join adds a link to a segment. Call it before the world runs.
func (m *Machine) Join(s *Segment, address netip.Prefix) {
	l := &Link{segment: s, machine: m, index: len(m.links) + 2, hw: s.draw(), address: address}
	m.links = append(m.links, l)
	s.add(l)
}

// Links are the machine's.
func (m *Machine) Links() []*Link { return m.links }

// Power says whether the machine has any. Without it nothing is heard, and processes are gone.
func (m *Machine) Power(on bool) {
	if m.on = on; !on {
		m.watchers = nil
		for _, l := range m.links {
			l.ports = nil
		}
	}
	for _, l := range m.links {
		l.publish()
	}
}

// accept serves a process of the machine.
func (m *Machine) accept(c *network.Conn) {
	hello := string(c.Hello())
	name, frames := message.LinkOf(hello)
	i := slices.IndexFunc(m.links, func(l *Link) bool { return l.Name() == name })
	switch {
	case c.Peer() != m.name || !m.on:
		c.Reset()
	case hello == message.List:
		c.Send(message.Encode(m.list()))
		c.Handle(nil, nil)
		c.End()
	case hello == message.Watch:
		keep(&m.watchers, c, nil)
		c.Send([]byte{1})
	case frames && i >= 0:
		keep(&m.links[i].ports, c, m.links[i].send)
	default:
		c.Reset()
	}
}

// keep has a connection among others as long as it lasts.
func keep(among *[]*network.Conn, c *network.Conn, data func([]byte)) {
	*among = append(*among, c)
	c.Handle(data, func(bool) {
		c.End()
		*among = slices.DeleteFunc(*among, func(o *network.Conn) bool { return o == c })
	})
}

func (m *Machine) list() (all []message.Link) {
	for _, l := range m.links {
		all = append(all, message.Link{Name: l.Name(), Index: l.index, MAC: l.hw, Up: l.Up(), Address: l.address})
	}
	return all
}

// changed tells processes that something of links changed.
func (m *Machine) changed() {
	for _, c := range m.watchers {
		c.Send([]byte{1})
	}
}
