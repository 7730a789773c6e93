// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"net/netip"
	"slices"
)

// Clone returns a World that shares no memory with w.
func (w *World) Clone() World {
	out := *w
	out.Kinds = slices.Clone(w.Kinds)
	out.Services = cloneEach(w.Services, Service.clone)
	out.EndpointSlices = cloneEach(w.EndpointSlices, EndpointSlice.clone)
	out.Nodes = cloneEach(w.Nodes, Node.clone)
	out.Pools = cloneEach(w.Pools, Pool.clone)
	out.Peers = cloneEach(w.Peers, Peer.clone)
	out.Advertisements = cloneEach(w.Advertisements, Advertisement.clone)
	out.L2Advertisements = cloneEach(w.L2Advertisements, L2Advertisement.clone)
	out.AddressPolicies = cloneEach(w.AddressPolicies, AddressPolicy.clone)
	out.Namespaces = cloneEach(w.Namespaces, Namespace.clone)
	out.BFDProfiles = slices.Clone(w.BFDProfiles)
	out.Communities = cloneEach(w.Communities, Community.clone)
	out.ConfigMaps = cloneEach(w.ConfigMaps, ConfigMap.clone)
	out.Drivers = cloneEach(w.Drivers, Driver.clone)
	out.LoadBalancers = cloneEach(w.LoadBalancers, OutsideBalancer.clone)
	out.BackendGroups = cloneEach(w.BackendGroups, BackendGroup.clone)
	out.Binds = cloneEach(w.Binds, Bind.clone)
	out.BackendRecords = cloneEach(w.BackendRecords, BackendRecord.clone)
	out.Pods = cloneEach(w.Pods, Pod.clone)
	out.BalancingPolicies = cloneEach(w.BalancingPolicies, BalancingPolicy.clone)
	out.LocalRedirectPolicies = cloneEach(w.LocalRedirectPolicies, LocalRedirectPolicy.clone)
	out.Unusable = slices.Clone(w.Unusable)
	out.Deleted = slices.Clone(w.Deleted)
	out.Problems = slices.Clone(w.Problems)
	return out
}

func (s Service) clone() Service {
	s.Ports = slices.Clone(s.Ports)
	s.ClusterIPs = slices.Clone(s.ClusterIPs)
	s.ExternalIPs = slices.Clone(s.ExternalIPs)
	s.Requested = slices.Clone(s.Requested)
	s.Shown = slices.Clone(s.Shown)
	s.Intercepted = slices.Clone(s.Intercepted)
	s.Families = slices.Clone(s.Families)
	s.SourceRanges = slices.Clone(s.SourceRanges)
	s.Weights = slices.Clone(s.Weights)
	s.Annotations = slices.Clone(s.Annotations)
	s.Labels = slices.Clone(s.Labels)
	return s
}

func (s EndpointSlice) clone() EndpointSlice {
	s.Ports = slices.Clone(s.Ports)
	s.Endpoints = cloneEach(s.Endpoints, Endpoint.clone)
	return s
}

func (e Endpoint) clone() Endpoint {
	e.Hints = slices.Clone(e.Hints)
	return e
}

func (n Node) clone() Node {
	n.Addresses = slices.Clone(n.Addresses)
	n.Taints = slices.Clone(n.Taints)
	n.Labels = slices.Clone(n.Labels)
	n.Proxies = slices.Clone(n.Proxies)
	return n
}

func (p Pool) clone() Pool {
	p.Ranges = slices.Clone(p.Ranges)
	p.Namespaces = slices.Clone(p.Namespaces)
	p.NamespaceSelectors = cloneEach(p.NamespaceSelectors, Selector.clone)
	p.ServiceSelectors = cloneEach(p.ServiceSelectors, Selector.clone)
	p.Labels = slices.Clone(p.Labels)
	return p
}

func (p Peer) clone() Peer {
	p.NodeSelectors = cloneEach(p.NodeSelectors, Selector.clone)
	return p
}

func (a Advertisement) clone() Advertisement {
	a.Communities = slices.Clone(a.Communities)
	a.Pools = slices.Clone(a.Pools)
	a.Peers = slices.Clone(a.Peers)
	a.PoolSelectors, a.NodeSelectors = cloneEach(a.PoolSelectors, Selector.clone), cloneEach(a.NodeSelectors, Selector.clone)
	a.ServiceSelectors = cloneEach(a.ServiceSelectors, Selector.clone)
	return a
}

func (a L2Advertisement) clone() L2Advertisement {
	a.Pools = slices.Clone(a.Pools)
	a.PoolSelectors = cloneEach(a.PoolSelectors, Selector.clone)
	a.NodeSelectors = cloneEach(a.NodeSelectors, Selector.clone)
	a.Interfaces = slices.Clone(a.Interfaces)
	return a
}

func (p AddressPolicy) clone() AddressPolicy {
	p.Namespaces = slices.Clone(p.Namespaces)
	p.NamespaceSelectors = cloneEach(p.NamespaceSelectors, Selector.clone)
	p.ExternalIPs = slices.Clone(p.ExternalIPs)
	return p
}

func (n Namespace) clone() Namespace {
	n.Labels = slices.Clone(n.Labels)
	return n
}

func (c Community) clone() Community {
	c.Aliases = slices.Clone(c.Aliases)
	return c
}

func (c ConfigMap) clone() ConfigMap {
	c.Data = slices.Clone(c.Data)
	return c
}

func cloneEach[T any](list []T, clone func(T) T) []T {
	out := slices.Clone(list)
	for i := range out {
		out[i] = clone(out[i])
	}
	return out
}

func compareAddrs(a, b netip.Addr) int { return a.Compare(b) }

func (r Range) compare(o Range) int { return cmp.Or(r.From.Compare(o.From), r.To.Compare(o.To)) }

func comparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}
