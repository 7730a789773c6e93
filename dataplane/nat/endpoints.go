// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"net/netip"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/endpoints"
)

// targets are where new connections to a frontend go, in order of address and port and each once.
type targets struct {
	at      []netip.AddrPort
	weights []uint32 // reduced, in the same order; nil if all weigh the same
	written []uint32 // weights as they are written, in the same order
	shares  []int    // slots that each has, in the same order; nil if weights say so
}

// here are the endpoints on this node that new connections to a frontend go to.
func (c Config) here(s *desired.Service, front desired.Frontend, f family) targets {
	return targetsOf(endpoints.On(c.Node, s, front, f == ipv6))
}

// closest are the endpoints that new connections to a frontend go to, wherever they are. Nodes that shall choose alike do not
// heed for whom endpoints are meant.
func (c Config) closest(s *desired.Service, front desired.Frontend, f family) targets {
	if alike(c.scheduler(s)) {
		return targetsOf(endpoints.All(s, front, f == ipv6))
	}
	return targetsOf(endpoints.Closest(c.Node, c.Zone, s, front, f == ipv6))
}

func targetsOf(t endpoints.Targets) targets {
	return targets{at: t.At, weights: t.Weights, written: t.Written}
}
