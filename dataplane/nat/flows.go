// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"net/netip"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/endpoints"
)

// Flows are the UDP flows that may go on: by what their client dialled, the endpoints that they may lead to. A flow of
// one of these frontends that leads elsewhere, also one that nobody translated, has to be ended, so that its client's
// next packet finds an endpoint (K12, K18).
type Flows map[Frontend]map[netip.AddrPort]bool

// Frontend is an address and port, of UDP. Of node ports the address is the unspecified one of its family.
type Frontend netip.AddrPort

// add lists the frontends of one Service, with the endpoints that still serve on whatever node.
func (f Flows) add(c Config, one planned) {
	s := one.service
	for _, front := range s.Frontends {
		if front.Port.Protocol != protocolUDP {
			continue
		}
		for _, is := range []family{ipv4, ipv6} {
			for _, d := range append(free(append(ofFamily(s.Addresses, is), c.byOthers(s, is)...), front.Port, one.skip), c.nodePort(s, front, is, one.skip)...) {
				serving := map[netip.AddrPort]bool{}
				addServing(serving, s, front, is)
				f[Frontend(netip.AddrPortFrom(d.address, d.port.Number))] = serving
			}
		}
	}
}

// at gives the flows with those of node ports at these addresses of the node, instead of at whatever one.
func (f Flows) at(addresses []netip.Addr) Flows {
	out := Flows{}
	for front, serving := range f {
		at := netip.AddrPort(front)
		if !at.Addr().IsUnspecified() {
			out[front] = serving
			continue
		}
		for _, a := range addresses {
			if familyOf(a) == familyOf(at.Addr()) {
				out[Frontend(netip.AddrPortFrom(a.Unmap(), at.Port()))] = serving
			}
		}
	}
	return out
}

// leftBehind are the flows of frontends that may have some which have to be ended: looking for them means to read all
// connections of the node.
func leftBehind(had, have Flows) Flows {
	out := Flows{}
	for front, was := range had {
		now, ok := have[front]
		for endpoint := range was {
			if !now[endpoint] {
				out[front] = now
			}
		}
		if !ok {
			out[front] = nil
		}
	}
	for front, now := range have {
		if _, ok := had[front]; !ok {
			out[front] = now
		}
	}
	return out
}

func addServing(to map[netip.AddrPort]bool, s *desired.Service, front desired.Frontend, f family) {
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		if familyOf(e.Address) == f && (e.Ready || e.Serving) {
			for _, at := range endpoints.Ports(e, front) {
				to[at] = true
			}
		}
	}
}
