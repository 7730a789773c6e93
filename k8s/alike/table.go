// SPDX-License-Identifier: Apache-2.0

// Package alike has values of fsm/world share what they say in the same way: decoding gives each object its own copy of the namespace, of the
// names of nodes and ports, of a Service's name in its slice. It promises to change nothing of what they say. Start reading at Table.
package alike

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"

	"fairlead.io/fairlead/fsm/world"
)

// Table holds what many objects say in the same way, so that they share one copy of it. It is bounded, and nothing depends on what it has
// forgotten. The zero value holds nothing. Its methods may be called from any goroutine.
type Table struct {
	mu sync.Mutex
	// words are those of which a cluster has few; names, of objects and in labels, would drive them out.
	words, names  map[string]string
	servicePorts  map[mark[world.ServicePort]][]world.ServicePort
	endpointPorts map[mark[world.EndpointPort]][]world.EndpointPort
	podPorts      map[mark[world.PodPort]][]world.PodPort
	kvs           map[mark[world.KV]][]world.KV
	places        map[placeMark]*world.Place
	extras        map[extraMark]*world.Extra
}

// How many texts and lists of each kind are remembered. A list of objects has what is alike near each other, most often, and there are more
// nodes in few clusters. When there are more, it begins anew.
const (
	textsAtMost = 4096
	listsAtMost = 1024
)

// mark is that of lists that may well be equal.
type mark[T comparable] struct {
	first, last T
	len         int
}

func markOf[T comparable](list []T) (m mark[T]) {
	if m.len = len(list); m.len > 0 {
		m.first, m.last = list[0], list[m.len-1]
	}
	return m
}

// extraMark is that of extras that may well be equal.
type extraMark struct {
	pool, key, class string
	annotations      mark[world.KV]
}

// placeMark is that of places that may well be equal.
type placeMark struct {
	node, zone string
	hints      mark[world.Hint]
}

// kept gives what m holds under k, and holds v from now on if that is nothing. It holds no more than atMost.
func kept[K comparable, V any](m *map[K]V, atMost int, k K, v V) V {
	if have, ok := (*m)[k]; ok {
		return have
	}
	if *m == nil || len(*m) >= atMost {
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
	have := kept(m, listsAtMost, markOf(list), list)
	if !slices.Equal(have, list) {
		return list
	}
	return have
}

// word has s share its bytes with equal ones.
func (t *Table) word(s *string) { *s = kept(&t.words, textsAtMost, *s, *s) }

// name is word for what most often only few objects say.
func (t *Table) name(s *string) { *s = kept(&t.names, textsAtMost, *s, *s) }

// Same has a value, which is the caller's own and canonical, share what it can with those before. It knows the kinds of which there are
// very many.
func (t *Table) Same(value any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch v := value.(type) {
	case *world.Service:
		t.service(v)
	case *world.EndpointSlice:
		t.slice(v)
	case *world.Pod:
		t.pod(v)
	}
}

func (t *Table) service(s *world.Service) {
	t.word(&s.Namespace)
	t.name(&s.Name)
	for i := range s.Ports {
		p := &s.Ports[i]
		t.word(&p.Name)
		t.word(&p.TargetPort)
		t.word(&p.AppProtocol)
	}
	if !slices.ContainsFunc(s.Ports, func(p world.ServicePort) bool { return p.NodePort != 0 }) { // which no other Service has
		s.Ports = sameList(&t.servicePorts, s.Ports)
	}
	s.Labels = t.sameKVs(s.Labels)
	lists := []*[]netip.Addr{&s.ClusterIPs, &s.ExternalIPs, &s.Shown}
	if x := s.Extra; x != nil {
		lists = append(lists, &x.Requested, &x.Proxied)
	}
	sameAddresses(lists...)
	s.Extra = t.extra(s.Extra)
}

// extra gives one equal to x, which is the caller's own.
func (t *Table) extra(x *world.Extra) *world.Extra {
	if x == nil {
		return nil
	}
	for _, text := range []*string{&x.Pool, &x.SharingKey, &x.Selector, &x.Class} {
		t.word(text)
	}
	x.Annotations = t.sameKVs(x.Annotations)
	if len(x.Requested) > 0 { // which no other Service asks for
		return x
	}
	have := kept(&t.extras, listsAtMost, extraMark{x.Pool, x.SharingKey, x.Class, markOf(x.Annotations)}, x)
	if !reflect.DeepEqual(have, x) {
		return x
	}
	return have
}

func (t *Table) slice(s *world.EndpointSlice) {
	t.word(&s.Namespace)
	if own := s.Name; strings.HasPrefix(own, s.ServiceName) { // as Kubernetes names it
		s.ServiceName = own[:len(s.ServiceName)]
	} else {
		t.name(&s.ServiceName)
	}
	for i := range s.Ports {
		t.word(&s.Ports[i].Name)
	}
	s.Ports = sameList(&t.endpointPorts, s.Ports)
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		t.name(&e.Pod)
		e.Place = t.place(e.Place)
	}
}

// place gives one equal to p, which is the caller's own.
func (t *Table) place(p *world.Place) *world.Place {
	if p == nil {
		return nil
	}
	t.word(&p.Node)
	t.word(&p.Zone)
	for i := range p.Hints {
		t.word(&p.Hints[i].Node)
		t.word(&p.Hints[i].Zone)
	}
	p.Hints = slices.Clip(p.Hints)
	have := kept(&t.places, textsAtMost, placeMark{p.Node, p.Zone, markOf(p.Hints)}, p)
	if !slices.Equal(have.Hints, p.Hints) {
		return p
	}
	return have
}

func (t *Table) pod(p *world.Pod) {
	t.word(&p.Namespace)
	t.name(&p.Name)
	t.word(&p.Node)
	for i := range p.Ports {
		t.word(&p.Ports[i].Name)
	}
	p.Ports, p.Labels = sameList(&t.podPorts, p.Ports), t.sameKVs(p.Labels)
}

func (t *Table) sameKVs(list []world.KV) []world.KV {
	for i := range list {
		t.word(&list[i].Key)
		t.name(&list[i].Value)
	}
	return sameList(&t.kvs, list)
}

// sameAddresses has lists of one Service be one where they are equal: what is asked for is what is shown, most often.
func sameAddresses(lists ...*[]netip.Addr) {
	for i, list := range lists {
		*list = slices.Clip(*list)
		for _, before := range lists[:i] {
			if len(*list) > 0 && slices.Equal(*list, *before) {
				*list = *before
			}
		}
	}
}
