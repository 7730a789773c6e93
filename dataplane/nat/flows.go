// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"net/netip"

	"fairlead.io/fairlead/api/desired"
)

// Flows are the UDP flows that may go on: by what their client dialled, the endpoints that they may lead to. A flow of
// one of these frontends that leads elsewhere, also one that nobody translated, has to be ended, so that its client's
// next packet finds an endpoint (K12, K18).
type Flows map[Frontend]map[netip.AddrPort]bool

// Frontend is an address and port, of UDP.
type Frontend netip.AddrPort

// add lists the frontends of one Service, with the endpoints that still serve on whatever node.
func (f Flows) add(one planned) {
	s := one.service
	for _, a := range s.Addresses {
		for _, front := range s.Frontends {
			d := dialled{a.Unmap(), front.Port}
			if front.Port.Protocol != protocolUDP || one.skip[d] {
				continue
			}
			serving := map[netip.AddrPort]bool{}
			addServing(serving, s, front, familyOf(a))
			f[Frontend(netip.AddrPortFrom(d.address, front.Port.Number))] = serving
		}
	}
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
			for _, at := range appendPorts(nil, e, front) {
				to[at] = true
			}
		}
	}
}
