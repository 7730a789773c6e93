// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"maps"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/api/desired"
)

// candidates are the endpoints that answer for a frontend: the ready ones, or if there are none those that still serve
// while they terminate (K13-K19, K35), and then ready is false. With a node only those on it count. For new connections
// those of weight 0 are not there (K40).
func candidates(s *desired.Service, front desired.Frontend, f family, node string) (out []*desired.Endpoint, ready bool) {
	var serving []*desired.Endpoint
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		if e.Quiesced || familyOf(e.Address) != f || node != "" && e.Node != node || len(appendPorts(nil, e, front)) == 0 {
			continue
		}
		if e.Ready {
			out = append(out, e)
		} else if e.Serving && e.Terminating {
			serving = append(serving, e)
		}
	}
	if len(out) == 0 {
		return serving, false
	}
	return out, true
}

// here are the endpoints on this node that new connections to a frontend go to.
func (c Config) here(s *desired.Service, front desired.Frontend, f family) targets {
	list, _ := candidates(s, front, f, c.Node)
	return answering(list, front)
}

// closest are the endpoints that new connections to a frontend go to, wherever they are: those that are meant for this
// node, or else for its zone, or else all. Hints count only if all ready endpoints have such, and one of them names what
// is ours (K26, K27; KEP-2433). Nodes that shall choose alike do not heed them.
func (c Config) closest(s *desired.Service, front desired.Frontend, f family) targets {
	list, ready := candidates(s, front, f, "")
	if ready && !alike(c.scheduler(s)) {
		for _, near := range []func(desired.Hint) (says, ours bool){
			func(h desired.Hint) (bool, bool) { return h.Node != "", h.Node == c.Node },
			func(h desired.Hint) (bool, bool) { return h.Zone != "", h.Zone == c.Zone },
		} {
			if meant := meantFor(list, near); len(meant) > 0 {
				return answering(meant, front)
			}
		}
	}
	return answering(list, front)
}

// meantFor are the endpoints that have a hint which is ours, and none if one has no hint of the kind at all.
func meantFor(list []*desired.Endpoint, near func(desired.Hint) (says, ours bool)) (out []*desired.Endpoint) {
	for _, e := range list {
		said, us := false, false
		for _, h := range e.Hints {
			says, ours := near(h)
			said, us = said || says, us || says && ours
		}
		if !said {
			return nil
		}
		if us {
			out = append(out, e)
		}
	}
	return out
}

// targets are where new connections to a frontend go, in order of address and port and each once.
type targets struct {
	at      []netip.AddrPort
	weights []uint32 // reduced, in the same order; nil if all weigh the same
}

// answering is where endpoints answer for a frontend. What two of them name has the greater weight.
func answering(list []*desired.Endpoint, front desired.Frontend) targets {
	weights := map[netip.AddrPort]uint32{}
	for _, e := range list {
		for _, at := range appendPorts(nil, e, front) {
			weights[at] = max(weights[at], weightOf(e))
		}
	}
	out := targets{at: slices.SortedFunc(maps.Keys(weights), netip.AddrPort.Compare)}
	for _, at := range out.at {
		out.weights = append(out.weights, weights[at])
	}
	out.weights = reduced(out.weights)
	return out
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
