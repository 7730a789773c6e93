// SPDX-License-Identifier: Apache-2.0

// Package endpoints tells which endpoints of a Service new connections go to, as Kubernetes promises it: whoever takes
// clients there, in the kernel's packet filter or at the client's socket, comes to the same.
package endpoints

import (
	"maps"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/internal/weights"
)

// candidates are the endpoints that answer for a frontend: the ready ones, or if there are none those that still serve
// while they terminate (K13-K19, K35), and then ready is false. With a node only those on it count. For new connections
// those of weight 0 are not there (K40).
func candidates(s *desired.Service, front desired.Frontend, v6 bool, node string) (out []*desired.Endpoint, ready bool) {
	var serving []*desired.Endpoint
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		if e.Quiesced || e.Address.Unmap().Is6() != v6 || node != "" && e.Node != node || len(Ports(e, front)) == 0 {
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

// On are the endpoints on a node that new connections to a frontend go to, of one family.
func On(node string, s *desired.Service, front desired.Frontend, v6 bool) Targets {
	list, _ := candidates(s, front, v6, node)
	return answering(list, front)
}

// All are the endpoints that new connections to a frontend go to, wherever they are.
func All(s *desired.Service, front desired.Frontend, v6 bool) Targets {
	list, _ := candidates(s, front, v6, "")
	return answering(list, front)
}

// Closest are the endpoints that new connections from a node to a frontend go to, wherever they are: those that are meant
// for the node, or else for its zone, or else all. Hints count only if all ready endpoints have such, and one of them
// names what is the node's (K26, K27; KEP-2433).
func Closest(node, zone string, s *desired.Service, front desired.Frontend, v6 bool) Targets {
	list, ready := candidates(s, front, v6, "")
	if ready {
		for _, near := range []func(desired.Hint) (says, ours bool){
			func(h desired.Hint) (bool, bool) { return h.Node != "", h.Node == node },
			func(h desired.Hint) (bool, bool) { return h.Zone != "", h.Zone == zone },
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

// Targets are where new connections to a frontend go, in order of address and port and each once.
type Targets struct {
	At      []netip.AddrPort
	Weights []uint32 // reduced, in the same order; nil if all weigh the same
	Written []uint32 // the same as they are written
}

// answering is where endpoints answer for a frontend. What two of them name has the greater weight.
func answering(list []*desired.Endpoint, front desired.Frontend) Targets {
	heaviest := map[netip.AddrPort]uint32{}
	for _, e := range list {
		for _, at := range Ports(e, front) {
			heaviest[at] = max(heaviest[at], weightOf(e))
		}
	}
	out := Targets{At: slices.SortedFunc(maps.Keys(heaviest), netip.AddrPort.Compare)}
	for _, at := range out.At {
		out.Written = append(out.Written, heaviest[at])
	}
	out.Weights = weights.Reduce(out.Written)
	return out
}

// weightOf is an endpoint's share of new connections beside the others' (K40). Quiesced ones have none, and are no candidates.
func weightOf(e *desired.Endpoint) uint32 { return max(uint32(e.Weight), 1) }

// Ports are where an endpoint answers for a frontend: what the slice says, by name and protocol (K8, K9).
func Ports(e *desired.Endpoint, front desired.Frontend) (out []netip.AddrPort) {
	for _, p := range e.Ports {
		if p.Name == front.Name && p.Port.Protocol == front.Port.Protocol {
			out = append(out, netip.AddrPortFrom(e.Address.Unmap(), p.Port.Number))
		}
	}
	return out
}
