// SPDX-License-Identifier: Apache-2.0

package check

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/sim/event"
)

// tunnelEnd is what the tunnel of a node is like, and what ports at its addresses lead to, as its kernel says.
type tunnelEnd struct {
	event.Tunnel
	number uint64
	ports  map[dialled]proxiesRow
}

// proxiesRow is what a port leads to, and the event that said so.
type proxiesRow struct {
	event.Proxies
	number uint64
}

// end is that of a node.
func (s *scene) end(node string) *tunnelEnd {
	t := s.tunnels[node]
	if t == nil {
		t = &tunnelEnd{}
		t.empty("")
		s.tunnels[node] = t
	}
	return t
}

// empty is what a boot leaves of it.
func (t *tunnelEnd) empty(boot string) {
	t.Tunnel, t.ports = event.Tunnel{Boot: boot}, map[dialled]proxiesRow{}
}

func (s *scene) endOf(node, boot string) *tunnelEnd {
	t := s.end(node)
	if t.Boot != boot {
		t.empty(boot)
	}
	return t
}

func (s *scene) tunnelled(number uint64, x event.Tunnel) {
	t := s.endOf(x.Node, x.Boot)
	if t.Tunnel, t.number = x, number; x.By == "hand" {
		s.meddled[x.Node] = s.now
	}
}

func (s *scene) proxies(number uint64, x event.Proxies) {
	t, at := s.endOf(x.Node, x.Boot), dialled{x.Address, x.Port, x.Protocol}
	if delete(t.ports, at); x.There {
		t.ports[at] = proxiesRow{x, number}
	}
	if x.By == "hand" {
		s.meddled[x.Node] = s.now
	}
}

// has tells whether packets by the tunnel for an address are taken.
func (t *tunnelEnd) has(a netip.Addr) bool { return slices.Contains(t.Addresses, a) }

// leads gives where packets for an address are sent to.
func (t *tunnelEnd) leads(a netip.Addr) (event.TunnelWay, bool) {
	i := slices.IndexFunc(t.Ways, func(w event.TunnelWay) bool { return w.To == a })
	if i < 0 {
		return event.TunnelWay{}, false
	}
	return t.Ways[i], true
}

// passes tells why a packet from a node to an address that another node has in its tunnel does not get there, or its answer back.
func (s *scene) passes(from, to string, a netip.Addr) (why string) {
	client, host := s.end(from), s.end(to)
	switch way, known := client.leads(a); {
	case !host.has(a):
		return to + " does not have the address"
	case from == to:
		return ""
	case !known:
		return from + " does not know where it is"
	case s.nodeAt[way.By] != to || way.MAC != host.MAC:
		return from + " sends it to " + way.By.String()
	case !slices.ContainsFunc(host.Peers, func(p netip.Addr) bool { return s.nodeAt[p] == from }):
		return to + " takes nothing from " + from
	case !slices.ContainsFunc(client.Peers, func(p netip.Addr) bool { return s.nodeAt[p] == to }):
		return from + " takes nothing from " + to
	}
	return ""
}
