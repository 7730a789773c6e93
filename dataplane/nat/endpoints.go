// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/api/desired"
)

// candidates are the endpoints that answer for a frontend: the ready ones, or if there are none those that still serve
// while they terminate (K13-K19, K35), and then ready is false. With a node only those on it count.
func candidates(s *desired.Service, front desired.Frontend, f family, node string) (out []*desired.Endpoint, ready bool) {
	var serving []*desired.Endpoint
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		if familyOf(e.Address) != f || node != "" && e.Node != node || len(appendPorts(nil, e, front)) == 0 {
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
func (c Config) here(s *desired.Service, front desired.Frontend, f family) []netip.AddrPort {
	list, _ := candidates(s, front, f, c.Node)
	return answering(list, front)
}

// closest are the endpoints that new connections to a frontend go to, wherever they are: those that are meant for this
// node, or else for its zone, or else all. Hints count only if all ready endpoints have such, and one of them names what
// is ours (K26, K27; KEP-2433). Nodes that shall choose alike do not heed them.
func (c Config) closest(s *desired.Service, front desired.Frontend, f family) []netip.AddrPort {
	list, ready := candidates(s, front, f, "")
	if how := c.scheduler(s); ready && how != desired.ConsistentHash && how != desired.SourceHash {
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

// answering is where endpoints answer for a frontend, in order of address and port and each once.
func answering(list []*desired.Endpoint, front desired.Frontend) (out []netip.AddrPort) {
	for _, e := range list {
		out = appendPorts(out, e, front)
	}
	slices.SortFunc(out, netip.AddrPort.Compare)
	return slices.Compact(out)
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
