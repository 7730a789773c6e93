// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// l1 compares everything with everything once the last fault has ended and nobody has changed anything for L1: what
// users want by the API server, what the record says, what switches forward, what kernels steer, what is on outside
// balancers.
//
// Left out is what cannot be there by then: Services that a pool has nothing for, what an operator is asked about,
// nodes without power or agent, nodes that the group still holds down since they flapped (a minute), addresses that
// are served nowhere else, rules that are kept for Bounds.Drain, and withdrawals as long as a member is missing, or holds a switch back of which its speakers died.
type l1 struct {
	idle
	*judge
	quiet   time.Duration // since when nothing was changed
	looked  time.Duration
	outside *l1Outside
	wished  *l1Wishes
	given   map[netip.Addr]bool // addresses that Services ever had outside the cluster
}

// flapHold is for how long a node that flapped may be held down.
const flapHold = time.Minute

func newL1(j *judge) rule {
	return &l1{judge: j, outside: newL1Outside(j), wished: newL1Wishes(j), given: map[netip.Addr]bool{}}
}

func (r *l1) step(s *step) {
	if s.replaced || fsm.Differ(s.before, s.after, fsm.TableDrains, fsm.TableMoves) {
		r.quiet = s.At
	}
	fsm.Changes(s.before, s.after, fsm.TableAllocations, func(_, is *fsm.Allocation) {
		if is != nil {
			r.given[is.Address] = true
		}
	})
	r.outside.step(s)
	r.wished.step(s)
}

func (r *l1) hear(e event.Stamped) {
	r.outside.hear(e)
	r.wished.hear(e)
	switch x := e.Event.(type) {
	case event.Object:
		s := r.kube.services[x.Namespace+"/"+x.Name]
		if s != nil && s.changed == e.At || x.Kind == "EndpointSlice" || r.kube.nodesAt == e.At || r.kube.configured == e.At {
			r.quiet = e.At // not so with what kubelets and we write all the time
		}
	case event.Calm, event.MachineDown, event.MachineUp, event.Started, event.Ended:
		r.quiet = e.At
	}
}

// due tells whether everything must agree by now, with a time on top.
func (r *l1) due(more time.Duration) bool {
	return r.scene.calm != never && len(r.scene.faults) == 0 && r.scene.now >= max(r.quiet, r.scene.calm)+r.bounds.L1+more
}

func (r *l1) tick() {
	if !r.due(0) || r.scene.now-r.looked < lookEvery {
		return
	}
	r.looked = r.scene.now
	r.checked()
	v := r.record.View()
	if have := v.Group().Format; r.format != 0 && have != r.format {
		r.broken("the record", fmt.Sprintf("its format is %d; an operator had it raised to %d", have, r.format))
	}
	wanted := map[netip.Addr][]string{} // by address, who wants it
	for _, id := range r.kube.names {
		if r.kube.wanted(id) && r.known(v, id) {
			r.service(v, id, wanted)
		}
	}
	waiting := heldNow(v)
	held := slices.ContainsFunc(fsm.List[*fsm.Hold](v, fsm.TableHolds), func(h *fsm.Hold) bool { return !h.Released })
	if !held && len(r.kube.services) > 0 {
		r.leftovers(v)
	}
	for _, a := range sortedAddresses(wanted) {
		if !slices.ContainsFunc(wanted[a], func(id string) bool { return waiting[id] }) {
			r.address(v, a, wanted[a])
		}
	}
	for _, f := range fsm.List[*fsm.Route](v, fsm.TableRoutes) {
		r.forwarded(v, f.Prefix)
	}
	for _, n := range r.topology.Nodes {
		r.kernel(v, n.Name)
	}
	for _, key := range r.scene.routes() {
		f := r.scene.ways.all[key]
		if len(f.NextHops) == 0 || !r.complete() {
			continue
		}
		for _, a := range addresses(key.prefix) {
			if _, ok := fsm.Get[*fsm.Route](v, fsm.TableRoutes, fsm.HostPrefix(a).String()); !ok {
				r.broken(key.prefix.String()+" at "+key.at, "it forwards an address that the record has no route for: "+a.String(), f.number)
			}
		}
	}
	r.aggregates(v)
	r.outside.compare(v)
	r.wished.compare(v)
	r.sockets(v)
}

// known tells whether the record may hold a Service: before format 2 it has load balancers only.
func (j *judge) known(v *fsm.View, id string) bool {
	return j.kube.services[id].LoadBalancer || v.Group().Format > formerFormat
}

func (r *l1) service(v *fsm.View, id string, wanted map[netip.Addr][]string) {
	s := r.kube.services[id]
	row, ok := fsm.Get[*fsm.Service](v, fsm.TableServices, id)
	if !ok {
		r.broken("service "+id, "users want it, and the record does not know it", s.number)
		return
	}
	if row.Pending.Code != "" {
		return
	}
	var have []netip.Addr
	for _, a := range v.Addresses(fsm.ServiceID(id)) {
		if a.Releasing {
			continue
		}
		wanted[a.Address] = append(wanted[a.Address], id)
		if !slices.Contains(row.External(), a.Address) {
			have = append(have, a.Address)
		}
	}
	if len(have)+len(row.External()) == 0 {
		r.broken("service "+id, "it has no address, and nothing is said to be missing", s.number)
	}
	slices.SortFunc(have, netip.Addr.Compare)
	told := slices.SortedFunc(slices.Values(s.status), netip.Addr.Compare)
	have = slices.DeleteFunc(have, func(a netip.Addr) bool { // an address is shown once it can be used
		return (len(r.carriers(id, a)) == 0 || r.nowhere(v, a)) && !slices.Contains(told, a)
	})
	if !slices.Equal(have, told) {
		r.broken("service "+id, fmt.Sprintf("its addresses are %v, and users are told %v", have, told), s.number)
	}
}

// carriers are the nodes that serve a Service and have an address of the family of one of its addresses: a next hop.
func (j *judge) carriers(id string, a netip.Addr) []string {
	return slices.DeleteFunc(slices.Clone(j.kube.serving(id)), func(name string) bool {
		i := slices.IndexFunc(j.topology.Nodes, func(n Node) bool { return n.Name == name })
		return i >= 0 && !slices.ContainsFunc(j.topology.Nodes[i].Addresses, func(own netip.Addr) bool { return own.Is4() == a.Is4() })
	})
}

// leftovers finds what nobody wants any more.
func (r *l1) leftovers(v *fsm.View) {
	complete := r.complete()
	for _, a := range fsm.List[*fsm.Allocation](v, fsm.TableAllocations) {
		if !a.Releasing && r.kube.services[string(a.Service)] != nil && !r.kube.wanted(string(a.Service)) {
			r.broken("address "+a.Key(), "nobody wants it any more, and it is not released")
		}
		if a.Releasing && complete {
			r.broken("address "+a.Key(), "it is released, and not free yet")
		}
	}
	for _, rt := range fsm.List[*fsm.Route](v, fsm.TableRoutes) {
		for _, h := range rt.NextHops {
			if h.Withdrawing && complete {
				r.broken(hopText(rt.Prefix, h), "it is withdrawn, and that has not ended")
			}
		}
	}
}

// complete tells whether every member runs and holds no switch back: what is withdrawn waits for those that do not, and for what the switch may hold.
func (r *l1) complete() bool {
	return !slices.ContainsFunc(r.scene.members(), func(m string) bool {
		return !r.scene.runs[m] || slices.ContainsFunc(r.topology.Switches, func(sw string) bool { return r.scene.holdsBack(m, sw) })
	})
}

// address compares the next hops of an address with the nodes that serve it.
func (r *l1) address(v *fsm.View, a netip.Addr, owners []string) {
	var want []string
	for _, id := range owners {
		if row, ok := fsm.Get[*fsm.Service](v, fsm.TableServices, id); ok && row.AllNodes {
			return // every eligible node is as good
		}
		for _, n := range r.carriers(id, a) {
			if !r.able(v, n) {
				return // what becomes of an address that is served there depends on the others
			}
			want = append(want, n)
		}
	}
	serving := slices.Clone(want)
	want = slices.DeleteFunc(want, func(n string) bool { return drainedBeside(v, n, serving) })
	if to := movedTo(v, a); to != "" && onSegments(v, a) {
		r.leased(v, a)
		if !slices.Contains(serving, to) {
			return // it may be a next hop beside those that serve, so that it can answer
		}
	} else if to != "" {
		takes, told := r.takes(v, a, to, serving)
		switch {
		case !told:
			return
		case takes:
			want = []string{to}
		}
	}
	slices.Sort(want)
	want = slices.Compact(want)
	var have []string
	if rt, ok := fsm.Get[*fsm.Route](v, fsm.TableRoutes, fsm.HostPrefix(a).String()); ok {
		for _, h := range rt.NextHops {
			if !h.Withdrawing {
				have = append(have, string(h.Node()))
			}
		}
	}
	slices.Sort(have)
	if have = slices.Compact(have); !slices.Equal(have, want) {
		r.broken("route "+a.String(), fmt.Sprintf("it is served on %v, and its next hops are %v", want, have))
	}
}

// able tells whether a node can do its work, and the group has had the time to see so.
func (r *l1) able(v *fsm.View, name string) bool {
	if !r.scene.runs[name] || r.scene.dark[name] {
		return false
	}
	n, ok := fsm.Get[*fsm.Node](v, fsm.TableNodes, name)
	return !ok || n.Liveness == fsm.NodeUp || r.due(flapHold)
}

// forwarded compares switches and kernels with the next hops of a route.
func (r *l1) forwarded(v *fsm.View, prefix netip.Prefix) {
	rt, ok := fsm.Get[*fsm.Route](v, fsm.TableRoutes, prefix.String())
	if !ok {
		return
	}
	ready := committed(v, prefix)
	for _, h := range rt.NextHops {
		if _, is := ready[h.Address()]; h.Withdrawing || !r.able(v, string(h.Node())) {
			continue
		} else if !is {
			r.broken(hopText(prefix, h), "its node has not said that it is ready")
		}
		if !v.Group().Settings.Unsteered && !r.scene.steersNow(string(h.Node()), prefix.Addr()) {
			r.broken(hopText(prefix, h), "its kernel does not steer the address", r.scene.steered[string(h.Node())].number)
		}
	}
	for _, sw := range r.topology.Switches {
		if !slices.ContainsFunc(r.scene.members(), func(m string) bool { return r.scene.sessions[link{sw, m}].up }) {
			r.broken(sw, "no member has a session with it")
			continue
		}
		is, sure := r.addressed(v, sw, prefix.Addr())
		if !sure || !r.scene.exchanges(sw, prefix.Addr()) {
			continue
		}
		f := r.scene.ways.to(sw, prefix.Addr())
		want := sortedAddresses(ready)
		if !is {
			want = nil
		}
		have := slices.SortedFunc(slices.Values(f.NextHops), netip.Addr.Compare)
		if !slices.Equal(want, slices.Compact(have)) {
			r.broken(prefix.String()+" at "+sw, fmt.Sprintf("it is to have next hops %v, and forwards to %v by %s", want, have, f.Prefix), f.number)
		}
	}
}

// kernel finds addresses that a node steers for nobody. Every node is made ready for every address, so that it can
// become a next hop without a moment's wait: it is enough that the address is somebody's, or has a route to anybody.
func (r *l1) kernel(v *fsm.View, node string) {
	if !r.due(r.bounds.Drain) || !r.able(v, node) {
		return
	}
	for _, a := range sortedAddresses(r.scene.steered[node].now) {
		if _, ok := fsm.Get[*fsm.Route](v, fsm.TableRoutes, fsm.HostPrefix(a).String()); !ok && len(v.Owners(a.String())) == 0 {
			r.broken(a.String()+" on "+node, "its kernel steers an address that is nobody's and has no route", r.scene.steered[node].number)
		}
	}
}
