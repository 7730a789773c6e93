// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// s14 holds where calls at the sockets of nodes get to against the record. Once a node acknowledged a revision, no row of its tables leads
// a call to a backend that was taken from that place at that revision or before, and is not there anew. A backend that the record never had at a
// place no row leads to at all.
//
// Likewise no proxy port of a node leads to a pod that is not behind it.
//
// An address that a Service gives up, and its node ports, nodes go on to serve for the drain delay as they did last: L1 sees to it that this ends.
//
// Which backends a place has is read from rows of the record, without who counts before whom: a row that leads to those of another policy
// is found by L1. That a row names only what is there the model of the tables sees to.
type s14 struct {
	idle
	*judge
	counts map[socketPair]int          // of what leads a place to a backend, by the record as it is
	gone   map[socketPair]fsm.Revision // when the last of it went
	had    map[string][]socketPair     // by row
	// at are the places of Services, and served how many there are at each.
	at     map[fsm.ServiceID][]dialled
	served map[dialled]int
	since  map[dialled]fsm.Revision // when a place came to be somebody's
	// outside are addresses that Services ever had outside the cluster.
	outside map[netip.Addr]bool
	// forgot is set once the record became another one: what that one had, nobody knows.
	forgot bool
	// unsure are nodes that came back with an older disk, until they acknowledge something.
	unsure map[string]bool
}

// socketPair is that a node leads a place to a backend; of a Service any node does.
type socketPair struct {
	node    string
	at      dialled
	backend string
}

func newS14(j *judge) rule {
	return &s14{judge: j, counts: map[socketPair]int{}, gone: map[socketPair]fsm.Revision{}, had: map[string][]socketPair{},
		at: map[fsm.ServiceID][]dialled{}, served: map[dialled]int{}, since: map[dialled]fsm.Revision{}, outside: map[netip.Addr]bool{}, unsure: map[string]bool{}}
}

func (r *s14) hear(e event.Stamped) {
	switch x := e.Event.(type) {
	case event.Wiped:
		r.unsure[x.Machine] = true
	case event.Resolves:
		r.row(x.Node, socketRow{x, e.Number})
	case event.Proxies:
		r.proxies(proxiesRow{x, e.Number})
	}
}

func (r *s14) step(s *step) {
	if !r.topology.Sockets.Any() {
		return
	}
	if s.replaced {
		r.forgot = true
		clear(r.counts)
		clear(r.gone)
		clear(r.had)
		clear(r.at)
		clear(r.served)
		clear(r.since)
	}
	before := s.before
	if s.replaced {
		before = nil
	}
	services := map[fsm.ServiceID]bool{}
	fsm.Changes(before, s.after, fsm.TableServices, func(was, is *fsm.Service) {
		for _, one := range []*fsm.Service{was, is} {
			if one != nil {
				services[one.ID] = true
			}
		}
	})
	fsm.Changes(before, s.after, fsm.TableAllocations, func(was, is *fsm.Allocation) {
		for _, one := range []*fsm.Allocation{was, is} {
			if one != nil {
				services[one.Service] = true
			}
		}
	})
	at := s.after.Revision()
	for _, id := range sortedKeys(services) {
		pairs, places := r.ofService(s.after, id)
		r.put("service "+string(id), pairs, at)
		r.serves(id, places, at)
	}
	fsm.Changes(before, s.after, fsm.TablePolicies, func(was, is *fsm.Policy) {
		if is == nil {
			r.put("redirect "+string(was.ID), nil, at)
			r.put("proxies "+string(was.ID), nil, at)
		} else {
			r.put("redirect "+string(is.ID), r.ofRedirect(is), at)
			r.put("proxies "+string(is.ID), ofProxies(is), at)
		}
	})
	fsm.Changes(before, s.after, fsm.TableNodes, func(was, is *fsm.Node) {
		if is == nil || was != nil && was.Acknowledged == is.Acknowledged {
			return
		}
		delete(r.unsure, string(is.ID))
		tables := r.scene.tables(string(is.ID))
		for _, at := range tables.places() {
			r.row(string(is.ID), tables.rows[at])
		}
		end := r.scene.end(string(is.ID))
		for _, at := range slices.SortedFunc(maps.Keys(end.ports), comparePlaces) {
			r.proxies(end.ports[at])
		}
	})
}

// put takes in what a row of the record leads to from now on.
func (r *s14) put(row string, now []socketPair, at fsm.Revision) {
	was := r.had[row]
	r.had[row] = now
	for _, p := range now {
		r.counts[p]++
		delete(r.gone, p)
	}
	for _, p := range was {
		if r.counts[p]--; r.counts[p] == 0 {
			delete(r.counts, p)
			r.gone[p] = at
		}
	}
	if len(now) == 0 {
		delete(r.had, row)
	}
}

// serves takes in at which places a Service is.
func (r *s14) serves(id fsm.ServiceID, now []dialled, when fsm.Revision) {
	for _, at := range now {
		if r.served[at]++; r.served[at] == 1 {
			r.since[at] = when
		}
	}
	for _, at := range r.at[id] {
		r.served[at]--
	}
	r.at[id] = now
}

// drains tells whether a place outside the cluster is nobody's any more, or was not by what a node acknowledged.
func (r *s14) drains(at dialled, acknowledged fsm.Revision) bool {
	return (r.served[at] == 0 || acknowledged.Before(r.since[at])) && (at.address == anyNode4 || at.address == anyNode6 || r.outside[at.address])
}

// ofService are the endpoints that take connections, or did a moment ago, at each place of a Service.
func (r *s14) ofService(v *fsm.View, id fsm.ServiceID) (out []socketPair, places []dialled) {
	s, ok := fsm.Get[*fsm.Service](v, fsm.TableServices, string(id))
	if !ok {
		return nil, nil
	}
	for _, f := range s.Frontends {
		protocol := protocolName(f.Port)
		var at []dialled
		for _, a := range s.ClusterIPs {
			at = append(at, dialled{a, f.Port.Number, protocol})
		}
		for _, a := range v.Addresses(id) {
			r.outside[a.Address] = true
			at = append(at, dialled{a.Address, f.Port.Number, protocol})
		}
		if f.NodePort != 0 && (s.HasNodePorts() || len(v.Addresses(id)) > 0) {
			at = append(at, dialled{anyNode4, f.NodePort, protocol}, dialled{anyNode6, f.NodePort, protocol})
		}
		places = append(places, at...)
		for _, e := range s.Endpoints {
			for _, p := range e.Ports() {
				if p.Name != f.Name || p.Port.Protocol != f.Port.Protocol || !e.Ready && !(e.Serving && e.Terminating) {
					continue
				}
				for _, where := range at {
					out = append(out, socketPair{at: where, backend: netip.AddrPortFrom(e.Address, p.Port.Number).String()})
				}
			}
		}
	}
	return out, places
}

// anyNode4 and anyNode6 stand for every address of every node.
var (
	anyNode4 = netip.AddrFrom4([4]byte{255, 255, 255, 255})
	anyNode6 = netip.AddrFrom16([16]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255})
)

// ofRedirect are the backends that a policy has on each node: those that are ready, or all of them while none is and it leads to others than
// the node's own.
func (r *s14) ofRedirect(d *fsm.Policy) (out []socketPair) {
	for _, n := range r.topology.Nodes {
		if !d.EffectiveOn(fsm.NodeID(n.Name)) {
			continue
		}
		for _, c := range d.Captures {
			mine := slices.DeleteFunc(slices.Clone(d.Backends), func(b fsm.PolicyBackend) bool {
				return b.Address.Is4() != c.Address.Is4() || d.Mode == "local" && string(b.Node) != n.Name
			})
			ready := slices.DeleteFunc(slices.Clone(mine), func(b fsm.PolicyBackend) bool { return !b.Ready })
			if len(ready) > 0 || d.Mode == "local" {
				mine = ready
			}
			for _, b := range mine {
				out = append(out, socketPair{n.Name, dialled{c.Address, c.Port.Number, protocolName(c.Port)}, netip.AddrPortFrom(b.Address, c.Target).String()})
			}
		}
	}
	return out
}

// row judges a row of a node's tables.
func (r *s14) row(node string, row socketRow) {
	if !row.There || r.unsure[node] {
		return
	}
	n, ok := fsm.Get[*fsm.Node](r.record.View(), fsm.TableNodes, node)
	if !ok || string(n.Boot) != r.scene.boots[node] || row.Boot != r.scene.boots[node] {
		return // its boot has said nothing yet
	}
	at := dialled{row.Address, row.Port, row.Protocol}
	if r.drains(at, n.Acknowledged) {
		return
	}
	for _, b := range slices.Compact(slices.Concat(row.Way.Backends, row.Beyond.Backends)) {
		r.pair(n, at, b, fmt.Sprintf("%s on %s to %s", at, node, b), row.number)
	}
}

// proxies judges what a port at an address of a node's tunnel leads to.
func (r *s14) proxies(row proxiesRow) {
	n, ok := fsm.Get[*fsm.Node](r.record.View(), fsm.TableNodes, row.Node)
	if !ok || !row.There || r.unsure[row.Node] || string(n.Boot) != r.scene.boots[row.Node] || row.Boot != r.scene.boots[row.Node] {
		return
	}
	at := dialled{port: row.Port, protocol: row.Protocol}
	for _, to := range row.To {
		r.pair(n, at, to, fmt.Sprintf("%s/%s at %s to %s", netip.AddrPortFrom(row.Address, row.Port), row.Protocol, row.Node, to), row.number)
	}
}

// ofProxies are the pods behind a policy's proxy ports, whose addresses are all nodes'.
func ofProxies(d *fsm.Policy) (out []socketPair) {
	for _, pod := range d.Proxied {
		for _, p := range pod.Ports {
			out = append(out, socketPair{at: dialled{port: p.Port.Number, protocol: protocolName(p.Port)}, backend: netip.AddrPortFrom(pod.Address, p.Target).String()})
		}
	}
	return out
}

// pair judges that a place on a node leads to a backend.
func (r *s14) pair(n *fsm.Node, at dialled, b, subject string, number uint64) {
	mine, any := socketPair{string(n.ID), at, b}, socketPair{at: at, backend: b}
	r.checked()
	if r.counts[mine]+r.counts[any] > 0 {
		return
	}
	gone, was := r.gone[mine]
	if of, ever := r.gone[any]; ever && (!was || gone.Before(of)) {
		gone, was = of, true
	}
	switch {
	case was && !n.Acknowledged.Before(gone):
		r.broken(subject, fmt.Sprintf("calls get there, and it went at %s; the node has acknowledged %s", gone, n.Acknowledged), number)
	case !was && !r.forgot:
		r.broken(subject, "calls get there, and the record never had it there", number)
	}
}
