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
	out.Services = cloneObjects(w.Services, Service.clone)
	out.EndpointSlices = cloneObjects(w.EndpointSlices, EndpointSlice.clone)
	out.Nodes = cloneObjects(w.Nodes, Node.clone)
	out.Pools = cloneObjects(w.Pools, Pool.clone)
	out.Peers = cloneObjects(w.Peers, Peer.clone)
	out.Advertisements = cloneObjects(w.Advertisements, Advertisement.clone)
	out.L2Advertisements = cloneObjects(w.L2Advertisements, L2Advertisement.clone)
	out.AddressPolicies = cloneObjects(w.AddressPolicies, AddressPolicy.clone)
	out.Namespaces = cloneObjects(w.Namespaces, Namespace.clone)
	out.BFDProfiles = cloneObjects(w.BFDProfiles, BFDProfile.clone)
	out.Communities = cloneObjects(w.Communities, Community.clone)
	out.ConfigMaps = cloneObjects(w.ConfigMaps, ConfigMap.clone)
	out.Drivers = cloneObjects(w.Drivers, Driver.clone)
	out.LoadBalancers = cloneObjects(w.LoadBalancers, OutsideBalancer.clone)
	out.BackendGroups = cloneObjects(w.BackendGroups, BackendGroup.clone)
	out.Binds = cloneObjects(w.Binds, Bind.clone)
	out.BackendRecords = cloneObjects(w.BackendRecords, BackendRecord.clone)
	out.Pods = cloneObjects(w.Pods, Pod.clone)
	out.BalancingPolicies = cloneObjects(w.BalancingPolicies, BalancingPolicy.clone)
	out.LocalRedirectPolicies = cloneObjects(w.LocalRedirectPolicies, LocalRedirectPolicy.clone)
	out.Unusable = slices.Clone(w.Unusable)
	out.Deleted = slices.Clone(w.Deleted)
	out.Vouched = slices.Clone(w.Vouched)
	out.Problems = slices.Clone(w.Problems)
	return out
}

func (s Service) clone() Service {
	s.Ports = slices.Clone(s.Ports)
	s.ClusterIPs = slices.Clone(s.ClusterIPs)
	s.ExternalIPs = slices.Clone(s.ExternalIPs)
	s.Shown = slices.Clone(s.Shown)
	s.Labels = slices.Clone(s.Labels)
	s.Extra = clonePointer(s.Extra, Extra.clone)
	return s
}

func (x Extra) clone() Extra {
	x.Requested = slices.Clone(x.Requested)
	x.Proxied = slices.Clone(x.Proxied)
	x.SourceRanges = slices.Clone(x.SourceRanges)
	x.Annotations = slices.Clone(x.Annotations)
	x.Choosing = clonePointer(x.Choosing, Choosing.clone)
	return x
}

func (c Choosing) clone() Choosing {
	c.Weights = slices.Clone(c.Weights)
	c.Probes.Statuses = slices.Clone(c.Probes.Statuses)
	return c
}

func (s EndpointSlice) clone() EndpointSlice {
	s.Ports = slices.Clone(s.Ports)
	s.Endpoints = cloneEach(s.Endpoints, Endpoint.clone)
	return s
}

func (e Endpoint) clone() Endpoint {
	e.Place = clonePointer(e.Place, Place.clone)
	return e
}

func (p Place) clone() Place {
	p.Hints = slices.Clone(p.Hints)
	return p
}

func (n Node) clone() Node {
	n.Addresses = slices.Clone(n.Addresses)
	n.Taints = slices.Clone(n.Taints)
	n.Labels = slices.Clone(n.Labels)
	n.Proxies = slices.Clone(n.Proxies)
	n.PodCIDRs = slices.Clone(n.PodCIDRs)
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

func (p BFDProfile) clone() BFDProfile { return p }

func (c Community) clone() Community {
	c.Aliases = slices.Clone(c.Aliases)
	return c
}

func (c ConfigMap) clone() ConfigMap {
	c.Data = slices.Clone(c.Data)
	return c
}

func clonePointer[T any](p *T, clone func(T) T) *T {
	if p == nil {
		return nil
	}
	made := clone(*p)
	return &made
}

func cloneObjects[T any](list []*T, clone func(T) T) []*T {
	out := slices.Clone(list)
	for i, o := range out {
		made := clone(*o)
		out[i] = &made
	}
	return out
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
