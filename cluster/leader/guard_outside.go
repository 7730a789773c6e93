// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"maps"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// outsideObjects are the objects that the record's drivers, load balancers and bindings are there for. What is on its way
// out is not asked about: that was decided. They are kept from view to view of one State, and always the same as if they
// were looked for anew. The zero value has seen nothing.
type outsideObjects struct {
	record *fsm.View
	rows   map[KnownObject]int // that are there for an object
	news   map[KnownObject]bool
	list   []KnownObject // in order; never written to once it was given out
}

func outsideOf(record *fsm.View) []KnownObject { return new(outsideObjects).follow(record) }

// follow gives the objects of a view, in order and each once.
func (o *outsideObjects) follow(record *fsm.View) []KnownObject {
	if o.rows == nil {
		o.rows = map[KnownObject]int{}
	}
	o.news = map[KnownObject]bool{}
	fsm.Changes(o.record, record, fsm.TableDrivers, func(before, after *fsm.Driver) {
		o.ofDriver(before, -1)
		o.ofDriver(after, +1)
	})
	fsm.Changes(o.record, record, fsm.TableBalancers, func(before, after *fsm.LoadBalancer) {
		o.ofBalancer(before, -1)
		o.ofBalancer(after, +1)
	})
	fsm.Changes(o.record, record, fsm.TableBindings, func(before, after *fsm.Binding) {
		if before != nil && after != nil && stays(before) == stays(after) && before.Owner == after.Owner && before.Backend == after.Backend {
			return // what happens most
		}
		o.ofBinding(before, -1)
		o.ofBinding(after, +1)
	})
	o.record = record
	if len(o.news) > 0 {
		o.list = o.merged()
	}
	return o.list
}

// merged is the list with the news in their places.
func (o *outsideObjects) merged() []KnownObject {
	order := func(a, b KnownObject) int { return subject(a).compare(subject(b)) }
	news := slices.SortedFunc(maps.Keys(o.news), order)
	out := make([]KnownObject, 0, len(o.rows))
	for _, k := range o.list {
		for len(news) > 0 && order(news[0], k) < 0 {
			if o.rows[news[0]] > 0 {
				out = append(out, news[0])
			}
			news = news[1:]
		}
		if len(news) > 0 && news[0] == k {
			continue
		}
		out = append(out, k)
	}
	for _, k := range news {
		if o.rows[k] > 0 {
			out = append(out, k)
		}
	}
	return out
}

func (o *outsideObjects) count(kind world.Kind, id world.ID, uid string, rows int) {
	if id.Name == "" {
		return
	}
	k := KnownObject{kind, id, uid}
	o.news[k] = true
	if o.rows[k] += rows; o.rows[k] == 0 {
		delete(o.rows, k)
	}
}

func (o *outsideObjects) ofDriver(d *fsm.Driver, rows int) {
	if d != nil {
		o.count(world.KindDriver, idOf(fsm.ServiceID(d.Name)), d.UID, rows)
	}
}

func (o *outsideObjects) ofBalancer(l *fsm.LoadBalancer, rows int) {
	if l != nil && l.State != fsm.BalancerDeleting {
		o.named(string(l.ID), rows)
	}
}

// stays tells whether a binding is not on its way out.
func stays(b *fsm.Binding) bool {
	return b.State != fsm.BindingDraining && b.State != fsm.BindingDeregistering
}

func (o *outsideObjects) ofBinding(b *fsm.Binding, rows int) {
	if b == nil || !stays(b) {
		return
	}
	o.named(b.Owner, rows)
	namespace, _, _ := strings.Cut(string(b.ID), "/")
	switch b.Backend.Kind {
	case "Pod":
		o.count(world.KindPod, world.ID{Namespace: namespace, Name: b.Backend.Name}, b.Backend.UID, rows)
	case "Service":
		o.count(world.KindService, world.ID{Namespace: namespace, Name: b.Backend.Name}, "", rows)
		o.count(world.KindNode, world.ID{Name: b.Backend.Node}, "", rows)
	}
}

// named counts an object that is named "kind/namespace/name/uid", with more after it or not.
func (o *outsideObjects) named(text string, rows int) {
	kind, text, _ := strings.Cut(text, "/")
	namespace, text, _ := strings.Cut(text, "/")
	name, text, ok := strings.Cut(text, "/")
	if uid, _, _ := strings.Cut(text, "/"); ok {
		o.count(world.Kind(kind), world.ID{Namespace: namespace, Name: name}, uid, rows)
	}
}
