// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/api/desired"
)

// eligible are the endpoints that new connections to a frontend go to, in order of address and port and each once:
// the ready ones, or if there are none those that still serve while they terminate (K13-K19, K35). With a node only
// those on it count.
func eligible(s *desired.Service, front desired.Frontend, f family, node string) []netip.AddrPort {
	var ready, serving []netip.AddrPort
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		if familyOf(e.Address) != f || node != "" && e.Node != node {
			continue
		}
		if e.Ready {
			ready = appendPorts(ready, e, front)
		} else if e.Serving && e.Terminating {
			serving = appendPorts(serving, e, front)
		}
	}
	if len(ready) == 0 {
		ready = serving
	}
	slices.SortFunc(ready, netip.AddrPort.Compare)
	return slices.Compact(ready)
}

// appendPorts adds where an endpoint answers for a frontend: what the slice says, by name and protocol (K8, K9).
func appendPorts(to []netip.AddrPort, e *desired.Endpoint, front desired.Frontend) []netip.AddrPort {
	for _, p := range e.Ports {
		if p.Name == front.Name && p.Port.Protocol == front.Port.Protocol {
			to = append(to, netip.AddrPortFrom(e.Address.Unmap(), p.Port.Number))
		}
	}
	return to
}
