// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm/world"
)

// alike holds what many objects say in the same way, so that they share one copy of it: decoding gives each its own. It lives for
// one reading of the folder, and nothing depends on what it has forgotten.
type alike struct {
	words         map[string]string
	addresses     map[mark[netip.Addr]][]netip.Addr
	families      map[mark[world.Family]][]world.Family
	servicePorts  map[mark[world.ServicePort]][]world.ServicePort
	endpointPorts map[mark[world.EndpointPort]][]world.EndpointPort
	kvs           map[mark[world.KV]][]world.KV
}

// alikeAtMost is how many of each are remembered. A Service, its slices and its pods stand near each other, and there are more nodes in few
// clusters. When there are more, it begins anew.
const alikeAtMost = 4096

// mark is that of lists that may well be equal.
type mark[T comparable] struct {
	first, last T
	len         int
}

// kept gives what m holds under k, and holds v from now on if that is nothing.
func kept[K comparable, V any](m *map[K]V, k K, v V) V {
	if have, ok := (*m)[k]; ok {
		return have
	}
	if *m == nil || len(*m) >= alikeAtMost {
		*m = map[K]V{}
	}
	(*m)[k] = v
	return v
}

// sameList gives a list equal to list, which is the caller's own.
func sameList[T comparable](m *map[mark[T]][]T, list []T) []T {
	if len(list) == 0 {
		return list
	}
	list = slices.Clip(list) // whoever appends to it does so in a copy
	have := kept(m, mark[T]{list[0], list[len(list)-1], len(list)}, list)
	if !slices.Equal(have, list) {
		return list
	}
	return have
}

// word has s share its bytes with equal ones.
func (a *alike) word(s *string) { *s = kept(&a.words, *s, *s) }

// same has a value, which is the caller's own and canonical, share what it can with those before. It knows the kinds of which there are
// very many.
func (a *alike) same(value any) {
	switch v := value.(type) {
	case *world.Service:
		a.sameService(v)
	case *world.EndpointSlice:
		a.sameSlice(v)
	case *world.Pod:
		a.sameMeta(&v.Meta)
		a.word(&v.Node)
		v.Labels = a.sameKVs(v.Labels)
	}
}

func (a *alike) sameMeta(m *world.Meta) {
	a.word(&m.Namespace)
	a.word(&m.Name)
}

func (a *alike) sameKVs(list []world.KV) []world.KV {
	for i := range list {
		a.word(&list[i].Key)
		a.word(&list[i].Value)
	}
	return sameList(&a.kvs, list)
}

func (a *alike) sameService(s *world.Service) {
	a.sameMeta(&s.Meta)
	for _, text := range []*string{&s.Pool, &s.SharingKey, &s.Class, &s.FamilyPolicy} {
		a.word(text)
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		a.word(&p.Name)
		a.word(&p.TargetPort)
		a.word(&p.AppProtocol)
	}
	s.Ports = sameList(&a.servicePorts, s.Ports)
	for _, list := range []*[]netip.Addr{&s.ClusterIPs, &s.ExternalIPs, &s.Requested, &s.Shown, &s.Intercepted} {
		*list = sameList(&a.addresses, *list) // what is asked for is what is shown, most often
	}
	s.Families = sameList(&a.families, s.Families)
	s.Annotations, s.Labels = a.sameKVs(s.Annotations), a.sameKVs(s.Labels)
}

func (a *alike) sameSlice(s *world.EndpointSlice) {
	a.sameMeta(&s.Meta)
	a.word(&s.Service.Namespace)
	a.word(&s.Service.Name)
	for i := range s.Ports {
		a.word(&s.Ports[i].Name)
	}
	s.Ports = sameList(&a.endpointPorts, s.Ports)
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		for _, text := range []*string{&e.Node, &e.Zone, &e.Pod} {
			a.word(text)
		}
		for j := range e.Hints {
			a.word(&e.Hints[j].Node)
			a.word(&e.Hints[j].Zone)
		}
	}
}
