// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
)

// planRoutes brings the next hops of every owned address to where its Services are served, and takes those of all
// others back.
func (p *planner) planRoutes() {
	for _, a := range p.claimed {
		p.planRoute(a)
	}
	for _, r := range p.routes {
		a := r.Prefix.Addr()
		if len(p.claims[a]) > 0 || !slices.ContainsFunc(r.NextHops, isWanted) {
			continue
		}
		if p.isReplaced(a) {
			p.explain(fsm.TableRoutes, r.Prefix.String(), WaitsForRules, "given up; it stays until the address in its place may be announced")
			continue
		}
		p.proposeUrgent("nobody owns "+a.String()+" any more", &fsm.SetRoute{Prefix: r.Prefix})
	}
}

// isReplaced tells whether the Service that gives an address up gets another one of its family for it, and none that it
// has may be announced yet: clients shall find one of the two all along.
func (p *planner) isReplaced(a netip.Addr) bool {
	if !p.isAnnounceable(a) {
		return false // nobody is sent there now, or nobody should be
	}
	for _, h := range p.ownersOf[a] {
		i, ok := slices.BinarySearchFunc(p.services, h.Service, func(s *wish, id fsm.ServiceID) int { return strings.Compare(string(s.id), string(id)) })
		if !ok || p.services[i].going {
			continue
		}
		same := func(c *claim) bool { return c.address.BitLen() == a.BitLen() }
		claims := p.services[i].claims
		if slices.ContainsFunc(claims, same) && !slices.ContainsFunc(claims, func(c *claim) bool { return same(c) && p.isAnnounceable(c.address) }) {
			return true
		}
	}
	return false
}

// isAnnounceable tells whether an address has a healthy next hop that may be on the wire by the record.
func (p *planner) isAnnounceable(a netip.Addr) bool {
	r := p.routeOf[a]
	return r != nil && slices.ContainsFunc(r.NextHops, func(h fsm.NextHop) bool {
		n := p.nodes[h.Node]
		return n != nil && n.next.Eligible && n.liveness != fsm.NodeDown && fsm.Announceable(r.Prefix, h, n.have, p.settings)
	})
}

func isWanted(h fsm.NextHop) bool { return !h.Withdrawing }

func (p *planner) planRoute(a netip.Addr) {
	prefix := fsm.HostPrefix(a)
	var nodes []fsm.NodeID
	for _, c := range p.claims[a] {
		nodes = append(nodes, p.serving(&c.owner.next, a)...)
	}
	slices.Sort(nodes)
	want := p.bridge(prefix, p.hops(prefix, slices.Compact(nodes)))
	if len(want) == 0 {
		p.explain(fsm.TableRoutes, prefix.String(), WaitsForNextHop, p.whyNoHop(p.claims[a]))
	}
	have := p.routeOf[a]
	if showsJust(have, want) {
		return
	}
	c := &fsm.SetRoute{Prefix: prefix, Hops: want}
	added := slices.ContainsFunc(want, func(spec fsm.HopSpec) bool { _, has := hopOf(have, spec); return !has })
	owned := slices.ContainsFunc(p.claims[a], func(c *claim) bool { return c.have != nil && !c.have.Releasing })
	if reason := "nodes that serve " + ownersText(p.claims[a]); added || !owned && len(want) > 0 {
		p.propose(reason, c) // it may need the address first, which is Bulk
	} else {
		p.proposeUrgent(reason, c)
	}
}

func ownersText(claims []*claim) string {
	names := make([]string, 0, len(claims))
	for _, c := range claims {
		names = append(names, string(c.owner.id))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// showsJust tells whether the hops of a route that are not being withdrawn are those of a list. Both are in order.
func showsJust(r *fsm.Route, want []fsm.HopSpec) bool {
	if r == nil {
		return len(want) == 0
	}
	n := 0
	for _, h := range r.NextHops {
		if h.Withdrawing {
			continue
		}
		if n == len(want) || want[n] != (fsm.HopSpec{Node: h.Node, Address: h.Address}) {
			return false
		}
		n++
	}
	return n == len(want)
}

// serving lists the nodes where a Service is served: those of its ready endpoints; if none is ready anywhere, those
// of endpoints that still serve while they end (KEP-1669).
func (p *planner) serving(s *fsm.Service, a netip.Addr) []fsm.NodeID {
	endpoints := ofFamily(s.Endpoints, a)
	usable := func(e *fsm.Endpoint) bool { return e.Ready || s.PublishNotReady }
	any := slices.ContainsFunc(endpoints, func(e fsm.Endpoint) bool { return usable(&e) })
	if !any {
		usable = func(e *fsm.Endpoint) bool { return e.Serving && e.Terminating }
		any = slices.ContainsFunc(endpoints, func(e fsm.Endpoint) bool { return usable(&e) })
	}
	if any && s.AllNodes && !s.Local {
		return p.nodeIDs
	}
	var out []fsm.NodeID
	for i := range endpoints {
		if e := &endpoints[i]; usable(e) {
			if node := p.nodeOfEndpoint(e); node != "" {
				out = append(out, node)
			}
		}
	}
	return out
}

// ofFamily lists the endpoints of an address's family, and all of them when the Service has none of it: what runs on
// the node may translate.
func ofFamily(endpoints []fsm.Endpoint, a netip.Addr) []fsm.Endpoint {
	same := func(e fsm.Endpoint) bool { return e.Address.BitLen() == a.BitLen() }
	first := slices.IndexFunc(endpoints, same) // sorted by address, so that a family is one run
	if first < 0 {
		return endpoints
	}
	last := first
	for last < len(endpoints) && same(endpoints[last]) {
		last++
	}
	return endpoints[first:last]
}

// nodeOfEndpoint tells where an endpoint is. One that names no node counts only if it is a node itself.
func (p *planner) nodeOfEndpoint(e *fsm.Endpoint) fsm.NodeID {
	if e.Node != "" {
		return e.Node
	}
	return p.nodeWith[e.Address]
}

// hops picks from the nodes that serve an address those that may be a next hop. A node without its agent is no new
// one, and stays one whose rules it acknowledged. Others leave for their silence only once somebody else may be
// announced: the last ones are never removed for liveness alone (DESIGN §6).
func (p *planner) hops(prefix netip.Prefix, nodes []fsm.NodeID) []fsm.HopSpec {
	route := p.routeOf[prefix.Addr()]
	var live, silent []fsm.HopSpec
	ready := false
	for _, id := range nodes {
		n := p.nodes[id]
		if n == nil || !n.next.Eligible {
			continue
		}
		hop, ok := n.hop(prefix.Addr())
		if !ok {
			continue
		}
		h, has := hopOf(route, hop)
		acknowledged := has && fsm.Announceable(prefix, h, n.have, p.settings)
		switch {
		case n.liveness == fsm.NodeUp, n.liveness == fsm.AgentDown && acknowledged:
			live = append(live, hop)
			ready = ready || acknowledged
		case has:
			silent = append(silent, hop)
		}
	}
	if !ready && len(silent) > 0 {
		live = append(live, silent...)
		p.explain(fsm.TableRoutes, prefix.String(), WaitsForLiveness, "it leads to silent nodes still: no other one may be announced")
	}
	slices.SortFunc(live, compareSpecs)
	return live
}

// bridge keeps the old next hops of an address until a new one may be announced, so that it is never without a route
// while its pods move. A node without an endpoint passes traffic on; one that is not eligible is not kept.
func (p *planner) bridge(prefix netip.Prefix, want []fsm.HopSpec) []fsm.HopSpec {
	route := p.routeOf[prefix.Addr()]
	if route == nil || len(want) == 0 {
		return want
	}
	var old []fsm.HopSpec
	for _, h := range route.NextHops {
		n := p.nodes[h.Node]
		if n == nil || !fsm.Announceable(prefix, h, n.have, p.settings) {
			continue
		}
		spec := fsm.HopSpec{Node: h.Node, Address: h.Address}
		if slices.Contains(want, spec) {
			return want
		}
		if own, ok := n.hop(prefix.Addr()); ok && own == spec && n.next.Eligible && n.liveness != fsm.NodeDown {
			old = append(old, spec)
		}
	}
	if len(old) == 0 {
		return want
	}
	p.explain(fsm.TableRoutes, prefix.String(), WaitsForRules, "its old next hops stay until one of the new nodes acknowledged its rules")
	want = append(want, old...)
	slices.SortFunc(want, compareSpecs)
	return want
}

func compareSpecs(a, b fsm.HopSpec) int {
	return cmp.Or(strings.Compare(string(a.Node), string(b.Node)), a.Address.Compare(b.Address))
}

// hop is a node as the next hop of an address.
func (n *nodePlan) hop(a netip.Addr) (fsm.HopSpec, bool) {
	for _, own := range n.next.Addresses {
		if own.BitLen() == a.BitLen() {
			return fsm.HopSpec{Node: n.id, Address: own}, true
		}
	}
	return fsm.HopSpec{}, false
}

// hopOf finds a hop of a route that is not being withdrawn.
func hopOf(r *fsm.Route, spec fsm.HopSpec) (fsm.NextHop, bool) {
	if r == nil {
		return fsm.NextHop{}, false
	}
	for _, h := range r.NextHops {
		if h.Node == spec.Node && h.Address == spec.Address && !h.Withdrawing {
			return h, true
		}
	}
	return fsm.NextHop{}, false
}

// whyNoHop finds the reason that a person can do something about.
func (p *planner) whyNoHop(claims []*claim) string {
	a := claims[0].address
	for _, c := range claims {
		for _, id := range p.serving(&c.owner.next, a) {
			n := p.nodes[id]
			switch {
			case n == nil:
				return fmt.Sprintf("node %s, which carries an endpoint, is not known", id)
			case !n.next.Eligible:
				return fmt.Sprintf("node %s, which carries an endpoint, is not eligible: %s", id, n.next.Why)
			case n.liveness != fsm.NodeUp:
				return fmt.Sprintf("node %s, which carries an endpoint, is %s", id, n.liveness)
			}
			return fmt.Sprintf("node %s, which carries an endpoint, has no address of the family of %s", id, a)
		}
	}
	return "no endpoint of " + ownersText(claims) + " is ready on a node"
}
