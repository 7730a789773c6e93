// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
)

// s12 asks of each Service, address, next hop and node that the record gives up why: something must have happened to it
// in the API server itself, since the group can first have known of it. What members were shown makes no difference.
//
// A Service and its addresses may go once a user wrote to it after it was created, or to pools; a next hop once the node
// stopped serving the Service, or all its endpoints there rest for failed probes, or the group found the node silent, a moment (Bounds.L3) before at the latest, since a leader may have
// decided by then, unless it is the last one (design §6); a node once it was
// deleted. What may have been on its way when the thing came into the record (Bounds.Late) is forgiven. An operator's word
// excuses what it names: a released hold its subjects, an accepted rewind everything from then on.
//
// The drain of a node excuses that its next hops go, as long as another one is left that works.
//
// A leader that has started amid lists that lack something is forgiven what it cannot know of: see deceived.
//
// Bindings that LBCF's objects asked for are judged likewise, in s12_binding.go.
type s12 struct {
	idle
	*judge
	since    map[string]time.Duration // when a row, or a hop of one, came to be wanted
	up       map[string]time.Duration // when the group found a node up that had been down
	released map[string]bool
	rewound  bool
	deceived deceived
	drains   drains
}

func newS12(j *judge) rule {
	return &s12{judge: j, since: map[string]time.Duration{}, up: map[string]time.Duration{}, released: map[string]bool{}, deceived: newDeceived(), drains: newDrains()}
}

func (r *s12) hear(e event.Stamped) { r.deceived.hear(e) }

func (r *s12) step(s *step) {
	for _, p := range s.proposals {
		switch c := p.Command.(type) {
		case *fsm.ReleaseHold:
			if h, ok := fsm.Get[*fsm.Hold](s.before, fsm.TableHolds, string(c.ID)); ok {
				for _, subject := range h.Subjects {
					r.released[subject] = true
				}
			}
		case *fsm.AcceptRewind:
			r.rewound = true
		}
	}
	if s.replaced || r.rewound {
		return
	}
	r.drains.step(s)
	fsm.Changes(s.before, s.after, fsm.TableServices, func(was, is *fsm.Service) { r.service(s.Number, was, is) })
	fsm.Changes(s.before, s.after, fsm.TableAllocations, func(was, is *fsm.Allocation) { r.allocation(s, was, is) })
	fsm.Changes(s.before, s.after, fsm.TableRoutes, func(was, is *fsm.Route) { r.route(s, was, is) })
	fsm.Changes(s.before, s.after, fsm.TableNodes, func(was, is *fsm.Node) { r.node(s.Number, was, is) })
	fsm.Changes(s.before, s.after, fsm.TablePolicies, func(was, is *fsm.Policy) { r.redirect(s, was, is) })
	changedBindings(s, func(was, is *fsm.Binding) { r.binding(s, was, is) })
}

// begin notes that something is wanted from now on, end judges that it is not any more.
func (r *s12) begin(what string) { r.since[what] = r.scene.now }

func (r *s12) end(kind, what string, number uint64, justified func(since time.Duration) bool, text string, shown ...uint64) {
	since, known := r.since[what]
	delete(r.since, what)
	if !known {
		return
	}
	r.checked()
	if !justified(since) && !r.deceived.is(r.scene.leader, kind, r.scene.now, r.bounds.Retry) {
		r.broken(what, text, append(shown, number)...)
	}
}

// spoken tells whether a user or an operator said anything of a Service that may cost it what it had since a moment.
func (r *s12) spoken(id string, since time.Duration) bool {
	s := r.kube.services[id]
	after := func(at time.Duration) bool { return at != never && at >= r.unseen(since) }
	return s == nil || s.Wishes == nil || !r.kube.wanted(id) || after(s.edited) || after(r.kube.reconfigured) || r.released[id]
}

// unseen is since when what users said may not have been seen by a moment: for Late, or since the API server was out of reach
// that was not back for as long by then.
func (r *s12) unseen(by time.Duration) time.Duration {
	late := by - r.bounds.Late
	struck, ever := r.scene.struck[start.Kubernetes]
	if ever && (r.scene.named[start.Kubernetes] > 0 || r.scene.freed[start.Kubernetes] >= late) {
		return min(late, struck-r.bounds.Late)
	}
	return late
}

func (r *s12) service(number uint64, was, is *fsm.Service) {
	wanted := func(s *fsm.Service) bool { return s != nil && !s.Deleting }
	switch {
	case wanted(is) && !wanted(was):
		r.begin("service " + string(is.ID))
	case wanted(was) && !wanted(is):
		id := string(was.ID)
		r.end("Service", "service "+id, number, func(since time.Duration) bool { return r.spoken(id, since) },
			"it was given up, and nobody deleted or changed it")
	}
}

func (r *s12) allocation(s *step, was, is *fsm.Allocation) {
	wanted := func(a *fsm.Allocation) bool { return a != nil && !a.Releasing }
	switch {
	case wanted(is) && !wanted(was):
		r.begin("address " + is.Key())
	case wanted(was) && !wanted(is):
		r.end("Service", "address "+was.Key(), s.Number, func(since time.Duration) bool {
			return slices.ContainsFunc(s.before.Owners(was.Address.String()), func(o *fsm.Allocation) bool {
				return r.spoken(string(o.Service), since) // a neighbour may have asked for its port
			})
		}, "it was taken from its Service, which nobody changed")
	}
}

func (r *s12) route(s *step, was, is *fsm.Route) {
	hops := func(r *fsm.Route) (out []fsm.NextHop) {
		if r != nil {
			out = slices.DeleteFunc(slices.Clone(r.NextHops), func(h fsm.NextHop) bool { return h.Withdrawing })
		}
		return out
	}
	before, after := hops(was), hops(is)
	has := func(list []fsm.NextHop, h fsm.NextHop) bool {
		return slices.ContainsFunc(list, func(o fsm.NextHop) bool { return o.Node() == h.Node() && o.Address() == h.Address() })
	}
	for _, h := range after {
		if !has(before, h) {
			r.begin(hopText(is.Prefix, h))
		}
	}
	for _, h := range before {
		if !has(after, h) {
			last := len(after) == 0
			text := "it was withdrawn, and its node is up and has served the address all along"
			if last {
				text = "it was withdrawn, the last one, and its node has served the address all along, though it may be silent"
			}
			r.end("EndpointSlice", hopText(was.Prefix, h), s.Number, func(since time.Duration) bool { return r.hopMayGo(s, was.Prefix, h, since, last) }, text)
		}
	}
}

func hopText(prefix netip.Prefix, h fsm.NextHop) string {
	return fmt.Sprintf("next hop %s via %s %s", prefix, h.Node(), h.Address())
}

func (r *s12) hopMayGo(s *step, prefix netip.Prefix, h fsm.NextHop, since time.Duration, last bool) bool {
	for _, v := range []*fsm.View{s.before, s.after} {
		n, ok := fsm.Get[*fsm.Node](v, fsm.TableNodes, string(h.Node()))
		if !ok || n.Liveness != fsm.NodeUp && !last || !slices.Contains(n.Addresses, h.Address()) {
			return true
		}
	}
	if at, was := r.up[string(h.Node())]; was && !last && r.scene.now-at <= r.bounds.L3 {
		return true // the leader decided before that
	}
	if r.drains.excuse(s, prefix, h, r.bounds.Late) {
		return true
	}
	for _, o := range s.before.Owners(prefix.Addr().String()) {
		id := string(o.Service)
		if !o.Releasing && !r.spoken(id, since) && !restAt(s.before, o.Service, h.Node()) && !restAt(s.after, o.Service, h.Node()) && r.kube.steady(hop{id, string(h.Node())}, since, r.bounds.Late) {
			return false
		}
	}
	return true
}

func (r *s12) node(number uint64, was, is *fsm.Node) {
	switch {
	case was == nil:
		r.begin("node " + string(is.ID))
	case is != nil && is.Liveness == fsm.NodeUp && was.Liveness == fsm.NodeDown:
		r.up[string(is.ID)] = r.scene.now
	case is == nil:
		r.end("Node", "node "+string(was.ID), number, func(since time.Duration) bool {
			n := r.kube.nodes[string(was.ID)]
			return n == nil || n.since == never || n.since > since || r.released[string(was.ID)]
		}, "its record was deleted, and the node was not")
	}
}
