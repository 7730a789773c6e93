// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"hash/fnv"
	"slices"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/endpoints"
)

// Config is where a host is.
type Config struct {
	Node string // its name in Kubernetes
	Zone string // that the node is in, empty if unknown
}

// RuleOf is what clients of this host get at a Service's addresses: its endpoints wherever they are, whatever
// externalTrafficPolicy says, since clients here are inside the cluster (balancing §10). It is nil where nothing is to
// be resolved: addresses that only some clients may use are left to who sees the client's own address.
func (c Config) RuleOf(s *desired.Service, id uint32) *Rule {
	if len(s.SourceRanges) > 0 {
		return nil
	}
	r := &Rule{ID: id, Kind: Service, Name: s.Name}
	for _, front := range s.Frontends {
		if front.Port.Protocol != TCP && front.Port.Protocol != UDP {
			continue
		}
		for _, v6 := range []bool{false, true} {
			if f := c.front(s, front, v6); len(f.At) > 0 {
				r.Fronts = append(r.Fronts, f)
			}
		}
	}
	if len(r.Fronts) == 0 {
		return nil
	}
	return r
}

// front is one port of a Service in one family.
func (c Config) front(s *desired.Service, front desired.Frontend, v6 bool) Front {
	out := Front{Protocol: front.Port.Protocol, Affinity: s.Affinity, Empty: Refuse}
	for _, a := range s.Addresses {
		if a = a.Unmap(); a.Is6() == v6 && !slices.Contains(front.NotOn, a) {
			out.At = append(out.At, At{a, front.Port.Number, ServiceLoadBalancer})
		}
	}
	targets := endpoints.Closest(c.Node, c.Zone, s, front, v6)
	for i, at := range targets.At {
		b := Backend{At: at}
		if targets.Weights != nil {
			b.Weight = uint16(min(targets.Weights[i], 65535))
		}
		out.Backends = append(out.Backends, b)
	}
	return out
}

// Names tells which Service an ID is of, given the names of all that a host resolves.
func Names(services []string) map[uint32]string {
	out := map[uint32]string{}
	for name, id := range numbers(services) {
		out[id] = name
	}
	return out
}

// numbers gives every Service an ID, the same as long as it is there, and after a restart, too, unless two collide.
func numbers(names []string) map[string]uint32 {
	names = slices.Sorted(slices.Values(names))
	out, taken := map[string]uint32{}, map[uint32]bool{0: true}
	for _, name := range names {
		h := fnv.New32a()
		h.Write([]byte(name))
		id := h.Sum32()
		for taken[id] {
			id++
		}
		out[name], taken[id] = id, true
	}
	return out
}
