// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"hash/fnv"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/endpoints"
)

// Config is where a host is.
type Config struct {
	Node string // its name in Kubernetes
	Zone string // that the node is in, empty if unknown
	// Usable are those of a redirect's listed addresses that new connections to a captured place may get; nil: all.
	Usable func(d *desired.Policy, at desired.Capture, addresses []netip.Addr) []netip.Addr
	// Outside says that the host is no node, whatever its name: nothing is local to it, and nothing is meant for it before others
	// (balancing §8, §15).
	Outside bool
	// StrictExternalLocal has externalTrafficPolicy: Local heeded by clients of this host, too, as elf-io's balancing did (balancing §10).
	StrictExternalLocal bool
	// Tunnels says that the host makes tunnels, so that its programs may reach proxy addresses of the group's (balancing §13).
	Tunnels bool
	// beyond are the ranges of proxy addresses that this host has no way to: see in.
	beyond []netip.Prefix
}

// in is the Config under a State: where the host has no tunnel, what others have is beyond its reach.
func (c Config) in(s desired.State) Config {
	c.beyond = beyond(c.Node, c.Tunnels, s)
	return c
}

func beyond(node string, makes bool, s desired.State) []netip.Prefix {
	if s.Tunnels == nil || makes && s.OwnTunnel(node) != nil {
		return nil
	}
	return s.Tunnels.Ranges
}

// Beyond tells whether a policy has backends here that this host has no way to, for want of a tunnel. They are none of its backends: calls would hang.
func (c Config) Beyond(s desired.State, d *desired.Policy) bool { return c.in(s).leavesOut(d) }

func (c Config) leavesOut(d *desired.Policy) bool {
	return slices.ContainsFunc(d.Backends, func(b desired.PolicyBackend) bool { return c.unreached(d, b.Address.Unmap()) })
}

func (c Config) unreached(d *desired.Policy, a netip.Addr) bool {
	return d.Mode == desired.ToProxies && slices.ContainsFunc(c.beyond, func(p netip.Prefix) bool { return p.Contains(a) })
}

// RuleOf is what clients of this host get at a Service's addresses (balancing §10). At those that the group gave it, that it
// names, or that others gave it, and at its node ports, it is its endpoints wherever they are, whatever externalTrafficPolicy says, since clients
// here are inside the cluster (unless StrictExternalLocal); internalTrafficPolicy is about its ClusterIPs. It is nil where nothing is to be resolved:
// addresses that only some clients may use, which node ports are not (K29), are left to who sees the client's own address.
func (c Config) RuleOf(s *desired.Service, id uint32) *Rule {
	r := &Rule{ID: id, Kind: Service, Name: s.Name}
	for _, front := range s.Frontends {
		if front.Port.Protocol != TCP && front.Port.Protocol != UDP {
			continue
		}
		for _, v6 := range []bool{false, true} {
			r.Fronts = append(r.Fronts, c.fronts(s, front, v6)...)
		}
	}
	if len(r.Fronts) == 0 {
		return nil
	}
	return r
}

// fronts are where one port of a Service is dialled in one family. Those with the same backends are one, so that they have one set.
func (c Config) fronts(s *desired.Service, front desired.Frontend, v6 bool) (out []Front) {
	external := placesOf(s.Addresses, front, v6, ServiceLoadBalancer)
	external = append(external, placesOf(s.ByOthers, front, v6, ServiceLoadBalancer)...)
	if len(s.SourceRanges) > 0 {
		external = nil
	}
	if front.NodePort != 0 && s.HasNodePorts(v6) {
		external = append(external, At{anyNode(v6), front.NodePort, ServiceNodePort})
	}
	inside := placesOf(s.ClusterIPs, desired.Frontend{Port: front.Port}, v6, ServiceClusterIP)
	all := Front{Protocol: front.Port.Protocol, Affinity: s.Affinity, Empty: Refuse}
	if len(external)+len(inside) > 0 {
		all.Backends = backendsOf(c.targets(s, front, v6))
	}
	here := func(at []At) {
		local := all
		local.At, local.Backends = at, backendsOf(endpoints.On(c.Node, s, front, v6))
		if len(all.Backends) > 0 {
			local.Empty = Unreachable
		}
		out = append(out, local)
	}
	if s.InternalLocal && len(inside) > 0 && !c.Outside {
		here(inside)
		inside = nil
	}
	if s.Local && c.StrictExternalLocal && len(external) > 0 && !c.Outside {
		here(external)
		external = nil
	}
	if all.At = append(inside, external...); len(all.At) > 0 {
		out = append(out, all)
	}
	return out
}

// targets are the endpoints that clients of this host are meant for, wherever they are.
func (c Config) targets(s *desired.Service, front desired.Frontend, v6 bool) endpoints.Targets {
	if c.Outside {
		return endpoints.All(s, front, v6)
	}
	return endpoints.Closest(c.Node, c.Zone, s, front, v6)
}

// placesOf are the addresses of a family where a frontend is.
func placesOf(addresses []netip.Addr, front desired.Frontend, v6 bool, mode Mode) (out []At) {
	for _, a := range addresses {
		if a = a.Unmap(); a.Is6() == v6 && !slices.Contains(front.NotOn, a) {
			out = append(out, At{a, front.Port.Number, mode})
		}
	}
	return out
}

func backendsOf(targets endpoints.Targets) (out []Backend) {
	for i, at := range targets.At {
		b := Backend{At: at}
		if targets.Weights != nil {
			b.Weight = uint16(min(targets.Weights[i], 65535))
		}
		out = append(out, b)
	}
	return out
}

// Names tells which Service or policy an ID is of, given all that a host is told.
func Names(services []string, redirects []*desired.Policy) map[uint32]string {
	out, taken := namesOf(redirects)
	for name, id := range numbers(services, taken) {
		out[id] = name
	}
	return out
}

// namesOf are the policies by their IDs, which the record gave them, and all IDs that are no Service's.
func namesOf(redirects []*desired.Policy) (names map[uint32]string, taken map[uint32]bool) {
	names, taken = map[uint32]string{}, map[uint32]bool{0: true}
	for _, r := range redirects {
		names[r.Number], taken[r.Number] = r.Name, true
	}
	return names, taken
}

// numbers gives every Service an ID that is not taken, the same as long as it is there, and after a restart, too, unless two collide.
func numbers(names []string, taken map[uint32]bool) map[string]uint32 {
	names = slices.Sorted(slices.Values(names))
	out := map[string]uint32{}
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
