// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// mergingOutside merges what outside load balancers are planned from, again and again. Of what is as it was it keeps the lists.
type mergingOutside struct {
	services  collected[world.Service]
	nodes     collected[world.Node]
	drivers   collected[world.Driver]
	balancers collected[world.OutsideBalancer]
	groups    collected[world.BackendGroup]
	binds     collected[world.Bind]
	records   collected[world.BackendRecord]
	pods      collected[world.Pod]
}

func (c *mergingOutside) merge(views []Admitted) *merged {
	m := &merged{}
	for _, a := range views {
		if a.World == nil {
			a = Admitted{World: &world.World{}}
		}
		m.views = append(m.views, a)
	}
	m.services = c.services.collect(m.views, func(w *world.World) []*world.Service { return w.Services }, func(o *world.Service) world.ID { return o.ID })
	m.nodes = c.nodes.collect(m.views, func(w *world.World) []*world.Node { return w.Nodes }, func(o *world.Node) world.ID { return o.ID })
	m.drivers = c.drivers.collect(m.views, func(w *world.World) []*world.Driver { return w.Drivers }, func(o *world.Driver) world.ID { return o.ID })
	m.balancers = c.balancers.collect(m.views, func(w *world.World) []*world.OutsideBalancer { return w.LoadBalancers },
		func(o *world.OutsideBalancer) world.ID { return o.ID })
	m.groups = c.groups.collect(m.views, func(w *world.World) []*world.BackendGroup { return w.BackendGroups },
		func(o *world.BackendGroup) world.ID { return o.ID })
	m.binds = c.binds.collect(m.views, func(w *world.World) []*world.Bind { return w.Binds }, func(o *world.Bind) world.ID { return o.ID })
	m.records = c.records.collect(m.views, func(w *world.World) []*world.BackendRecord { return w.BackendRecords },
		func(o *world.BackendRecord) world.ID { return o.ID })
	m.pods = c.pods.collect(m.views, func(w *world.World) []*world.Pod { return w.Pods }, func(o *world.Pod) world.ID { return o.ID })
	return m
}

// listed tells whether every source that yields a kind has listed it in full. Of a kind that none yields there is nothing.
func (m *merged) listed(kind world.Kind) bool {
	for _, a := range m.views {
		if v, yields := a.World.View(kind); yields && !v.Listed || len(a.World.Kinds) == 0 {
			return false
		}
	}
	return len(m.views) > 0
}

// away tells whether a source cannot read a kind just now.
func (m *merged) away(kind world.Kind) bool {
	return slices.ContainsFunc(m.views, func(a Admitted) bool {
		v, _ := a.World.View(kind)
		return v.Away
	})
}

// outsideLike compares views of a source by all that outside load balancers are planned from, given the record. What a
// container does, and what we write ourselves, comes all the time and changes nothing.
func outsideLike(record *fsm.View) func(a, b world.World) bool {
	over := func(id world.ID, mirror string) bool { // it is a BackendRecord of ours, and its binding ended
		_, there := fsm.Get[*fsm.Binding](record, fsm.TableBindings, id.String())
		return mirror != "" && !there
	}
	return func(a, b world.World) bool { return outsideAlike(a, b, over) }
}

func outsideAlike(a, b world.World, over func(id world.ID, mirror string) bool) bool {
	return same(a.Drivers, b.Drivers) && same(a.LoadBalancers, b.LoadBalancers) && same(a.BackendGroups, b.BackendGroups) &&
		same(a.Binds, b.Binds) && same(a.Services, b.Services) && !deletionsDiffer(a.Deleted, b.Deleted, over) &&
		!differ(a.Nodes, b.Nodes, func(n *world.Node) world.ID { return n.ID }, likeNode) &&
		!differ(a.Pods, b.Pods, func(p *world.Pod) world.ID { return p.ID }, likePod) &&
		!recordsDiffer(a.BackendRecords, b.BackendRecords, over)
}

// deletionsDiffer leaves out what the mirror deletes.
func deletionsDiffer(a, b []world.Deletion, over func(id world.ID, mirror string) bool) bool {
	if same(a, b) {
		return false
	}
	mirrored := func(d world.Deletion) bool { return d.Kind == world.KindBackendRecord && over(d.ID, d.Mirror) }
	return !slices.Equal(slices.DeleteFunc(slices.Clone(a), mirrored), slices.DeleteFunc(slices.Clone(b), mirrored))
}

// differ tells whether two lists differ in their names or, for any of them, in what matters.
func differ[T any](a, b []*T, id func(*T) world.ID, alike func(a, b *T) bool) bool {
	if same(a, b) {
		return false
	}
	if len(a) != len(b) {
		return true
	}
	for i := range a {
		if a[i] != b[i] && (id(a[i]) != id(b[i]) || !alike(a[i], b[i])) {
			return true
		}
	}
	return false
}

func likePod(a, b *world.Pod) bool {
	return a.Version == b.Version || a.UID == b.UID && a.Deleting == b.Deleting && a.IP == b.IP && a.Ready == b.Ready && a.Running == b.Running &&
		slices.Equal(a.Labels, b.Labels) && slices.Equal(a.IPs, b.IPs)
}

func likeNode(a, b *world.Node) bool {
	return a.Version == b.Version || a.UID == b.UID && a.Deleting == b.Deleting && slices.Equal(a.Addresses, b.Addresses) && slices.Equal(a.Labels, b.Labels) &&
		a.Ready == b.Ready && slices.Equal(a.Proxies, b.Proxies) && a.NodeID == b.NodeID
}

// recordsDiffer tells whether a record came that is not ours, went, or is to go. What else happens to ours we did, and when
// its binding has ended all of it.
func recordsDiffer(a, b []*world.BackendRecord, over func(id world.ID, mirror string) bool) bool {
	if same(a, b) {
		return false
	}
	went := func(r *world.BackendRecord) bool { return !over(r.ID, r.Mirror) }
	for _, r := range b {
		n := 0
		for n < len(a) && a[n].ID.Compare(r.ID) < 0 {
			n++
		}
		if slices.ContainsFunc(a[:n], went) {
			return true
		}
		a = a[n:]
		switch {
		case len(a) == 0 || a[0].ID != r.ID:
			if r.Mirror == "" {
				return true
			}
		case !likeRecord(a[0], r) && !over(r.ID, r.Mirror):
			return true
		default:
			a = a[1:]
		}
	}
	return slices.ContainsFunc(a, went)
}

func likeRecord(a, b *world.BackendRecord) bool {
	return a.Version == b.Version || a.UID == b.UID && a.Deleting == b.Deleting && a.Finalizer == b.Finalizer && a.Mirror == b.Mirror && b.Mirror != ""
}
