// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"reflect"
	"slices"
	"sort"
	"strings"
)

// Compare orders names by namespace, then name.
func (id ID) Compare(o ID) int {
	if c := strings.Compare(id.Namespace, o.Namespace); c != 0 {
		return c
	}
	return strings.Compare(id.Name, o.Name)
}

// Compare orders references by kind, name and UID.
func (r Ref) Compare(o Ref) int {
	return cmp.Or(strings.Compare(string(r.Kind), string(o.Kind)), r.ID.Compare(o.ID), strings.Compare(r.UID, o.UID))
}

// Ref names the object as one of its kind.
func (m Meta) Ref(kind Kind) Ref { return Ref{Kind: kind, ID: m.ID, UID: m.UID} }

func (m Meta) compare(o Meta) int {
	return cmp.Or(m.ID.Compare(o.ID), strings.Compare(m.UID, o.UID), cmp.Compare(m.Version, o.Version))
}

// Sort brings the World, which its caller must own, into its canonical form: lists in order, sets in order and
// without repeats, nothing empty but nil. What has an order of its own (families, node addresses) keeps it.
func (w *World) Sort() {
	w.SortLists()
	for i := range w.Services {
		w.Services[i].sort()
	}
	for i := range w.EndpointSlices {
		w.EndpointSlices[i].sort()
	}
	for i := range w.Nodes {
		n := w.Nodes[i]
		n.Addresses = orNil(n.Addresses)
		sortSet(&n.Taints, strings.Compare)
		sortSet(&n.Proxies, compareAddrs)
		sortSet(&n.PodCIDRs, comparePrefixes)
		sortKVs(&n.Labels)
	}
	for i := range w.Pools {
		p := w.Pools[i]
		sortSet(&p.Ranges, Range.compare)
		sortSet(&p.Namespaces, strings.Compare)
		sortSelectors(&p.NamespaceSelectors)
		sortSelectors(&p.ServiceSelectors)
		sortKVs(&p.Labels)
	}
	for i := range w.Peers {
		sortSelectors(&w.Peers[i].NodeSelectors)
	}
	for i := range w.Advertisements {
		a := w.Advertisements[i]
		sortSet(&a.Communities, strings.Compare)
		sortSet(&a.Pools, strings.Compare)
		sortSet(&a.Peers, strings.Compare)
		sortSelectors(&a.PoolSelectors)
		sortSelectors(&a.NodeSelectors)
		sortSelectors(&a.ServiceSelectors)
	}
	for i := range w.L2Advertisements {
		a := w.L2Advertisements[i]
		sortSet(&a.Pools, strings.Compare)
		sortSelectors(&a.PoolSelectors)
		sortSelectors(&a.NodeSelectors)
		sortSet(&a.Interfaces, strings.Compare)
	}
	for i := range w.AddressPolicies {
		p := w.AddressPolicies[i]
		sortSet(&p.Namespaces, strings.Compare)
		sortSelectors(&p.NamespaceSelectors)
		sortSet(&p.ExternalIPs, Range.compare)
	}
	for i := range w.Namespaces {
		sortKVs(&w.Namespaces[i].Labels)
	}
	for i := range w.Communities {
		sortKVs(&w.Communities[i].Aliases)
	}
	for i := range w.ConfigMaps {
		sortKVs(&w.ConfigMaps[i].Data)
	}
	for i := range w.BalancingPolicies {
		w.BalancingPolicies[i].Redirect.sort()
	}
	for i := range w.LocalRedirectPolicies {
		w.LocalRedirectPolicies[i].Redirect.sort()
	}
	w.sortOutside()
}

// SortLists is Sort for a World of objects that are in canonical form each: it puts the lists in order, which its caller must
// own, and writes to nothing below them, which may be shared.
func (w *World) SortLists() {
	sortBy(&w.Kinds, func(a, b KindView) int { return strings.Compare(string(a.Kind), string(b.Kind)) })
	sortBy(&w.Services, func(a, b *Service) int { return a.compare(b.Meta) })
	sortBy(&w.EndpointSlices, func(a, b *EndpointSlice) int {
		return cmp.Or(a.Service().Compare(b.Service()), a.compare(b.Meta))
	})
	sortBy(&w.Nodes, func(a, b *Node) int { return a.compare(b.Meta) })
	sortBy(&w.Pools, func(a, b *Pool) int { return a.compare(b.Meta) })
	sortBy(&w.Peers, func(a, b *Peer) int { return a.compare(b.Meta) })
	sortBy(&w.Advertisements, func(a, b *Advertisement) int { return a.compare(b.Meta) })
	sortBy(&w.L2Advertisements, func(a, b *L2Advertisement) int { return a.compare(b.Meta) })
	sortBy(&w.AddressPolicies, func(a, b *AddressPolicy) int { return a.compare(b.Meta) })
	sortBy(&w.Namespaces, func(a, b *Namespace) int { return a.compare(b.Meta) })
	sortBy(&w.BFDProfiles, func(a, b *BFDProfile) int { return a.compare(b.Meta) })
	sortBy(&w.Communities, func(a, b *Community) int { return a.compare(b.Meta) })
	sortBy(&w.ConfigMaps, func(a, b *ConfigMap) int { return a.compare(b.Meta) })
	sortBy(&w.BalancingPolicies, func(a, b *BalancingPolicy) int { return a.Meta.compare(b.Meta) })
	sortBy(&w.LocalRedirectPolicies, func(a, b *LocalRedirectPolicy) int { return a.Meta.compare(b.Meta) })
	w.sortOutsideLists()
	sortSet(&w.Unusable, Ref.Compare)
	sortSet(&w.Vouched, Ref.Compare)
	sortSet(&w.Deleted, func(a, b Deletion) int {
		return cmp.Or(a.Ref.Compare(b.Ref), a.Service.Compare(b.Service), cmp.Compare(a.Version, b.Version),
			strings.Compare(string(a.How), string(b.How)))
	})
	sortSet(&w.Problems, compareProblems)
}

func (s *Service) sort() {
	sortBy(&s.Ports, func(a, b ServicePort) int {
		return cmp.Or(strings.Compare(string(a.Protocol), string(b.Protocol)), cmp.Compare(a.Port, b.Port), strings.Compare(a.Name, b.Name))
	})
	s.ClusterIPs = orNil(s.ClusterIPs)
	sortSet(&s.ExternalIPs, compareAddrs)
	sortSet(&s.Shown, compareAddrs)
	sortKVs(&s.Labels)
	if x := s.Extra; x != nil {
		x.sort()
		if reflect.ValueOf(*x).IsZero() {
			s.Extra = nil
		}
	}
}

func (x *Extra) sort() {
	sortSet(&x.Requested, compareAddrs)
	sortSet(&x.Proxied, compareAddrs)
	sortSet(&x.SourceRanges, comparePrefixes)
	sortKVs(&x.Annotations)
	if c := x.Choosing; c != nil {
		c.Weights = orNil(c.Weights)
		sortSet(&c.Probes.Statuses, cmp.Compare[int])
		if reflect.ValueOf(*c).IsZero() {
			x.Choosing = nil
		}
	}
}

func (s *EndpointSlice) sort() {
	sortSet(&s.Ports, func(a, b EndpointPort) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.Protocol), string(b.Protocol)), cmp.Compare(a.Port, b.Port))
	})
	sortBy(&s.Endpoints, func(a, b Endpoint) int {
		return cmp.Or(a.Address.Compare(b.Address), strings.Compare(a.At().Node, b.At().Node))
	})
	for i := range s.Endpoints {
		s.Endpoints[i].sort()
	}
}

func (e *Endpoint) sort() {
	p := e.Place
	if p == nil {
		return
	}
	sortSet(&p.Hints, func(a, b Hint) int { return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Zone, b.Zone)) })
	if p.Node == "" && p.Zone == "" && p.Hints == nil {
		e.Place = nil
	}
}

func compareProblems(a, b Problem) int {
	return cmp.Or(cmp.Compare(a.Severity.rank(), b.Severity.rank()), strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
		a.Object.Compare(b.Object), strings.Compare(a.Field, b.Field), strings.Compare(a.Why, b.Why), strings.Compare(a.Remedy, b.Remedy))
}

// slicesOf finds the half-open run of a Service's slices in a sorted World.
func (w *World) slicesOf(service ID) (from, to int) {
	from = sort.Search(len(w.EndpointSlices), func(i int) bool { return w.EndpointSlices[i].Service().Compare(service) >= 0 })
	for to = from; to < len(w.EndpointSlices) && w.EndpointSlices[to].Service() == service; to++ {
	}
	return from, to
}

// Equal tells whether two sorted Worlds say the same. When it was said does not matter: ages and counts of lists
// are left out.
func (w *World) Equal(o *World) bool {
	a, b := *w, *o
	a.Age, b.Age = 0, 0
	a.Kinds, b.Kinds = timeless(a.Kinds), timeless(b.Kinds)
	return reflect.DeepEqual(a, b)
}

func timeless(views []KindView) []KindView {
	out := slices.Clone(views)
	for i := range out {
		out[i].Lists, out[i].ListAge, out[i].ListedAge, out[i].Age = 0, 0, 0, 0
	}
	return out
}

func sortBy[T any](list *[]T, order func(a, b T) int) {
	*list = orNil(*list)
	slices.SortStableFunc(*list, order)
}

func sortSet[T comparable](list *[]T, order func(a, b T) int) {
	sortBy(list, order)
	*list = slices.Compact(*list)
}

func sortKVs(list *[]KV) {
	sortBy(list, compareKVs)
}

func compareKVs(a, b KV) int {
	return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Value, b.Value))
}

func orNil[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}
