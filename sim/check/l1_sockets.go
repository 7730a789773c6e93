// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"maps"
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// sockets compares what calls get on each node with what the objects ask for, at every place that anybody captures or serves, and at those that
// tables ever had a row for. Left out are Services with endpoints on nodes that the group holds down, or on the way from one address to
// another, tables without room for all of it, policies of which a former life counts still, whatever waits for an operator, and nodes without power or agent.
func (r *l1) sockets(v *fsm.View) {
	on := r.topology.Sockets
	if !on.Any() || on.Room > 0 || r.scene.now < r.atSockets.changed+r.bounds.L1 {
		return
	}
	if slices.ContainsFunc(fsm.List[*fsm.Hold](v, fsm.TableHolds), func(h *fsm.Hold) bool { return !h.Released }) {
		return
	}
	m := resolution{r.atSockets, on, v}
	if m.formerLife() {
		return
	}
	places := m.places()
	for _, n := range r.topology.Nodes {
		for at := range r.scene.tables(n.Name).ever {
			if at.address != anyNode4 && at.address != anyNode6 {
				places[at] = true
			}
		}
	}
	all := slices.SortedFunc(maps.Keys(places), comparePlaces)
	for _, n := range r.topology.Nodes {
		if !r.able(v, n.Name) {
			continue
		}
		tables := r.scene.tables(n.Name)
		if !tables.attached {
			r.broken("sockets of "+n.Name, "no programs work there")
			continue
		}
		for _, at := range all {
			r.resolved(v, m, n.Name, at)
		}
	}
}

// places are those that anybody asks for.
func (m resolution) places() map[dialled]bool {
	out := map[dialled]bool{}
	for _, p := range m.policies {
		if !p.gone {
			for _, c := range m.captures(p) {
				out[c.dialled] = true
			}
		}
	}
	for id, s := range m.services {
		for _, p := range s.ports {
			for _, a := range s.addresses {
				out[dialled{a, p.Port, p.Protocol}] = true
			}
			for _, a := range m.view.Addresses(fsm.ServiceID(id)) {
				out[dialled{a.Address, p.Port, p.Protocol}] = true
			}
			for _, n := range m.nodes {
				for _, a := range n.addresses {
					if p.NodePort != 0 && !n.gone {
						out[dialled{a, p.NodePort, p.Protocol}] = true
					}
				}
			}
		}
	}
	return out
}

func (r *l1) resolved(v *fsm.View, m resolution, node string, at dialled) {
	row, there := r.scene.tables(node).row(at)
	want := m.answer(node, at, false)
	r.same(v, fmt.Sprintf("calls on %s to %s", node, at), at, want, row.Way, there, row.number)
	if !r.unclear(v, want.by) {
		r.reached(v, m, node, at, want)
	}
	if spares := m.spares(want); spares != row.Way.Spares && there && !r.unclear(v, want.by) {
		r.broken(fmt.Sprintf("calls on %s to %s", node, at), fmt.Sprintf("backends of %s are spared: %v, and shall be: %v", want.by, row.Way.Spares, spares), row.number)
	} else if spares && !row.Limited {
		r.same(v, fmt.Sprintf("calls of backends of %s on %s to %s", want.by, node, at), at, m.pastBalancing(node, at), row.Beyond, there, row.number)
	}
	if limited := m.limited(node, at); limited != row.Limited {
		r.broken(fmt.Sprintf("calls on %s to %s", node, at), fmt.Sprintf("they are limited: %v, and shall be: %v", row.Limited, limited), row.number)
	} else if limited {
		r.same(v, fmt.Sprintf("calls on %s to %s beyond the limit", node, at), at, m.answer(node, at, true), row.Beyond, there, row.number)
	}
}

// same compares what calls get with what they shall.
func (r *l1) same(v *fsm.View, subject string, at dialled, want answer, have event.Way, there bool, number uint64) {
	if !there {
		have.Verdict = "pass"
	}
	if want.verdict == "pass" && r.drains(at) && !r.due(r.bounds.Drain) {
		return
	}
	if r.unclear(v, want.by) {
		return
	}
	got := map[string]int{}
	for _, b := range have.Backends {
		got[b]++
	}
	if have.Verdict != want.verdict || !proportional(got, want.backends) {
		r.broken(subject, fmt.Sprintf("they get %s %v, and shall get %s %v of %s", have.Verdict, got, want.verdict, want.backends, want.by), number)
		return
	}
	if d, ok := fsm.Get[*fsm.Policy](v, fsm.TablePolicies, want.by); ok && d.Number != have.Rule {
		r.broken(subject, fmt.Sprintf("they are counted for rule %d, and %s is %d", have.Rule, d.ID, d.Number), number)
	}
}

// drains tells whether a place is one that nodes go on to serve for a while when nobody has it any more: at addresses outside the cluster.
func (r *l1) drains(at dialled) bool {
	node := slices.ContainsFunc(r.topology.Nodes, func(n Node) bool { return slices.Contains(n.Addresses, at.address) })
	return node || r.given[at.address]
}

// unclear tells whether it depends on what is not judged here what a Service has, or a policy whose nodes are not all up.
func (r *l1) unclear(v *fsm.View, service string) bool {
	if p := r.atSockets.policies[service]; p != nil && p.byProxies() {
		return slices.ContainsFunc(r.topology.Nodes, func(n Node) bool {
			known, ok := fsm.Get[*fsm.Node](v, fsm.TableNodes, n.Name)
			return !ok || known.Liveness != fsm.NodeUp || !r.scene.runs[n.Name]
		})
	}
	s, ok := fsm.Get[*fsm.Service](v, fsm.TableServices, service)
	if !ok {
		return false
	}
	down := slices.ContainsFunc(s.Endpoints, func(e fsm.Endpoint) bool {
		n, ok := fsm.Get[*fsm.Node](v, fsm.TableNodes, string(e.Node))
		return ok && n.Liveness != fsm.NodeUp
	})
	return down || slices.ContainsFunc(v.Addresses(fsm.ServiceID(service)), func(a *fsm.Allocation) bool { return a.Releasing })
}

// proportional tells whether two accounts of shares are of the same backends, each with the same part.
func proportional(a, b map[string]int) bool {
	sumA, sumB := 0, 0
	for _, n := range a {
		sumA += n
	}
	for _, n := range b {
		sumB += n
	}
	return maps.EqualFunc(a, b, func(x, y int) bool { return x*sumB == y*sumA })
}
