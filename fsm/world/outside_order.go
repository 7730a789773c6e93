// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"strings"
)

// sortOutside sorts what outside load balancers are made of. The order in which a group names its load balancers is its
// author's: the first one labels it. Entries of a Bind and of lists that are looked up by name are in order of that; of
// two with one name the first stays the first.
func (w *World) sortOutside() {
	for i := range w.Drivers {
		sortBy(&w.Drivers[i].Timeouts, func(a, b Timeout) int {
			return cmp.Or(strings.Compare(a.Webhook, b.Webhook), cmp.Compare(a.Budget, b.Budget))
		})
	}
	for i := range w.LoadBalancers {
		l := w.LoadBalancers[i]
		sortKVs(&l.Spec)
		sortKVs(&l.Attributes)
		sortSet(&l.Scope, strings.Compare)
		l.Status.sort()
	}
	for i := range w.BackendGroups {
		w.BackendGroups[i].sort()
	}
	for i := range w.Binds {
		w.Binds[i].sort()
	}
	for i := range w.BackendRecords {
		r := w.BackendRecords[i]
		for _, list := range []*[]KV{&r.Info, &r.Attributes, &r.Parameters, &r.Injected} {
			sortKVs(list)
		}
	}
	for i := range w.Pods {
		sortKVs(&w.Pods[i].Labels)
		sortSet(&w.Pods[i].Ports, func(a, b PodPort) int {
			return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.Protocol), string(b.Protocol)), cmp.Compare(a.Port, b.Port))
		})
		sortSet(&w.Pods[i].HostPorts, func(a, b HostPort) int {
			return cmp.Or(strings.Compare(string(a.Protocol), string(b.Protocol)), cmp.Compare(a.Port, b.Port))
		})
		sortSet(&w.Pods[i].IPs, compareAddrs)
	}
}

func (w *World) sortOutsideLists() {
	sortBy(&w.Drivers, func(a, b *Driver) int { return a.compare(b.Meta) })
	sortBy(&w.LoadBalancers, func(a, b *OutsideBalancer) int { return a.compare(b.Meta) })
	sortBy(&w.BackendGroups, func(a, b *BackendGroup) int { return a.compare(b.Meta) })
	sortBy(&w.Binds, func(a, b *Bind) int { return a.compare(b.Meta) })
	sortBy(&w.BackendRecords, func(a, b *BackendRecord) int { return a.compare(b.Meta) })
	sortBy(&w.Pods, func(a, b *Pod) int { return a.compare(b.Meta) })
}

func (s *BalancerStatus) sort() {
	sortKVs(&s.Info)
	sortKVs(&s.Attributes)
}

func (b *Balancing) sort() {
	sortKVs(&b.Parameters)
	if p := b.Pods; p != nil {
		sortKVs(&p.Selector)
		sortSet(&p.Except, strings.Compare)
		sortSet(&p.Names, strings.Compare)
		sortSet(&p.Ports, func(a, b BackendPort) int {
			return cmp.Or(cmp.Compare(a.Port, b.Port), strings.Compare(a.Protocol, b.Protocol))
		})
	}
}

func (g *BackendGroup) sort() {
	g.Balancing.sort()
	g.LoadBalancers = orNil(g.LoadBalancers)
	sortSet(&g.Static, strings.Compare)
	if g.Service != nil {
		sortKVs(&g.Service.NodeSelector)
	}
}

func (b *Bind) sort() {
	b.Balancing.sort()
	sortBy(&b.Entries, func(x, y BindEntry) int { return strings.Compare(x.Name, y.Name) })
	for i := range b.Entries {
		sortKVs(&b.Entries[i].Spec)
		sortKVs(&b.Entries[i].Attributes)
	}
	sortBy(&b.Statuses, func(x, y BalancerStatus) int { return strings.Compare(x.Name, y.Name) })
	for i := range b.Statuses {
		b.Statuses[i].sort()
	}
}
