// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
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
// has may be announced yet: clients shall find one of the two all along. That is waited for only while an agent is about to
// carry the other one out. Without one it could take for ever, and nobody else would get the address.
func (p *planner) isReplaced(a netip.Addr) bool {
	if !p.isAnnounceable(a) {
		return false // nobody is sent there now, or nobody should be
	}
	for _, h := range p.ownersOf[a] {
		i, ok := slices.BinarySearchFunc(p.services, h.Service, func(s *wish, id fsm.ServiceID) int { return strings.Compare(string(s.id), string(id)) })
		if !ok || p.services[i].going {
			continue
		}
		announced, coming := false, false
		for _, c := range p.services[i].claims {
			if c.address.BitLen() == a.BitLen() {
				announced = announced || p.isAnnounceable(c.address)
				coming = coming || p.isComing(c.address)
			}
		}
		if coming && !announced {
			return true
		}
	}
	return false
}

// isComing tells whether an address comes to be announceable by itself: an agent that runs is about to acknowledge it, or
// nobody is asked to.
func (p *planner) isComing(a netip.Addr) bool {
	prefix := fsm.HostPrefix(a)
	return slices.ContainsFunc(p.servingAny(a), func(id fsm.NodeID) bool {
		f := p.fitOf(prefix, id)
		return f.use == used && !f.acknowledged && (p.settings.Unsteered || p.nodes[id].mayAcknowledge(prefix))
	})
}

// isAnnounceable tells whether an address has a healthy next hop that may be on the wire by the record.
func (p *planner) isAnnounceable(a netip.Addr) bool {
	r := p.routeOf[a]
	return r != nil && slices.ContainsFunc(r.NextHops, func(h fsm.NextHop) bool {
		n := p.nodes[h.Node()]
		return n != nil && n.next.Eligible && n.liveness != fsm.NodeDown && fsm.Announceable(r.Prefix, h, n.have, p.settings)
	})
}

func isWanted(h fsm.NextHop) bool { return !h.Withdrawing }

func (p *planner) planRoute(a netip.Addr) {
	prefix := fsm.HostPrefix(a)
	d := p.decide(a)
	if d.silent {
		p.explain(fsm.TableRoutes, prefix.String(), WaitsForLiveness, "it leads to silent nodes still: no other one may be announced")
	}
	if len(d.bridged) > 0 {
		p.explain(fsm.TableRoutes, prefix.String(), WaitsForRules, "its old next hops stay until one of the new nodes acknowledged its rules")
	}
	if d.aside {
		p.explain(fsm.TableRoutes, prefix.String(), WaitsForOther, "it leads to nodes that new flows shall go past still: no other one may be announced")
	}
	if len(d.want) == 0 {
		why := p.whyNoHop(a)
		p.explain(fsm.TableRoutes, prefix.String(), string(why.Code), why.Text)
	}
	p.explainMove(prefix, &d.move)
	have := p.routeOf[a]
	if showsJust(have, d.want) {
		if have != nil && p.forgets(have) {
			p.propose("no node passes on what was given up", &fsm.SetRoute{Prefix: prefix, Hops: d.want})
		}
		return
	}
	c := &fsm.SetRoute{Prefix: prefix, Hops: d.want}
	added := slices.ContainsFunc(d.want, func(spec fsm.HopSpec) bool { _, has := hopOf(have, spec); return !has })
	owned := slices.ContainsFunc(p.claims[a], func(c *claim) bool { return c.have != nil && !c.have.Releasing })
	if reason := "nodes that serve its owners"; added || !owned && len(d.want) > 0 {
		p.propose(reason, c) // it may need the address first, which is Bulk
	} else {
		p.proposeUrgent(reason, c)
	}
}

// decision is which next hops an address shall have.
type decision struct {
	want []fsm.HopSpec // in order
	// silent says that nodes are among them that do not answer: no other one may be announced.
	silent bool
	// aside says the same of nodes that new flows shall go past.
	aside bool
	// bridged are those among them that serve the address no more, and stay until one that does may be announced.
	bridged []fsm.HopSpec
	move    move
}

// decide finds the next hops of an address that somebody owns.
func (p *planner) decide(a netip.Addr) (d decision) {
	prefix := fsm.HostPrefix(a)
	d = p.hops(prefix, p.servingAny(a))
	d.bridged = p.bridge(prefix, d.want)
	if len(d.bridged) > 0 {
		d.want = append(d.want, d.bridged...)
		slices.SortStableFunc(d.want, compareSpecs)
	}
	return d
}

// servingAny lists the nodes where any of the owners of an address is served that are not being drained, and the one that it was
// moved to if that may pass it on, each once, in order.
func (p *planner) servingAny(a netip.Addr) []fsm.NodeID {
	nodes := p.servingItself(a)
	if to := p.movedTo(a); to != "" && p.passes(a) {
		nodes = append(nodes, to)
		slices.Sort(nodes)
	}
	return slices.Compact(nodes)
}

// servingItself lists the nodes where any of the owners of an address is served that are not being drained, in order.
func (p *planner) servingItself(a netip.Addr) (nodes []fsm.NodeID) {
	for _, c := range p.led(p.claims[a]) {
		nodes = append(nodes, p.serving(c.owner.next, a)...)
	}
	slices.Sort(nodes)
	return nodes
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
		if n == len(want) || want[n] != (fsm.HopSpec{Node: h.Node(), Address: h.Address()}) {
			return false
		}
		n++
	}
	return n == len(want)
}

// serving lists the nodes where a Service is served. Where none of them may be a next hop, those are among them whose endpoints rest for failed probes
// (K50): unless the policy is Local they pass traffic on to the endpoints that answer, and without them nothing would.
func (p *planner) serving(s *fsm.Service, a netip.Addr) []fsm.NodeID {
	sel := selectEndpoints(s, a)
	if sel.everywhere {
		return p.nodeIDs
	}
	out := p.nodesWith(sel.endpoints, sel.usable)
	eligible := func(id fsm.NodeID) bool { n := p.nodes[id]; return n != nil && n.next.Eligible }
	if len(out) > 0 && !s.Local && !slices.ContainsFunc(out, eligible) {
		out = append(out, p.nodesWith(sel.endpoints, func(e *fsm.Endpoint) bool { return e.Failing })...)
	}
	return out
}

// nodesWith lists the nodes of some endpoints, one as often as it has such.
func (p *planner) nodesWith(endpoints []fsm.Endpoint, such func(*fsm.Endpoint) bool) (out []fsm.NodeID) {
	for i := range endpoints {
		if e := &endpoints[i]; such(e) {
			if node := p.nodeOfEndpoint(e); node != "" {
				out = append(out, node)
			}
		}
	}
	return out
}

// selection is which endpoints of a Service its address leads to.
type selection struct {
	endpoints  []fsm.Endpoint // of the address's family
	usable     func(*fsm.Endpoint) bool
	everywhere bool // their nodes do not matter: every node passes traffic on
}

// selectEndpoints chooses the ready endpoints; if none is ready anywhere, those that still serve while they end
// (KEP-1669). Under the policy Local a node could do nothing for new connections with endpoints of weight 0, so they count
// only if there are no others: then for the connections that they have (K40).
func selectEndpoints(s *fsm.Service, a netip.Addr) selection {
	out := selection{endpoints: ofFamily(s.Endpoints, a)}
	ready := func(e *fsm.Endpoint) bool { return e.Ready || s.PublishNotReady && !e.Failing }
	ending := func(e *fsm.Endpoint) bool { return e.Serving && e.Terminating }
	for _, alsoQuiesced := range []bool{!s.Local, true} {
		for _, condition := range []func(*fsm.Endpoint) bool{ready, ending} {
			out.usable = func(e *fsm.Endpoint) bool { return condition(e) && (alsoQuiesced || !e.Quiesced) }
			if slices.ContainsFunc(out.endpoints, func(e fsm.Endpoint) bool { return out.usable(&e) }) {
				out.everywhere = s.AllNodes && !s.Local
				return out
			}
		}
	}
	return out
}

// ofFamily lists the endpoints of an address's family: nothing on a node leads packets of the other one to them (K35).
func ofFamily(endpoints []fsm.Endpoint, a netip.Addr) []fsm.Endpoint {
	same := func(e fsm.Endpoint) bool { return e.Address.BitLen() == a.BitLen() }
	first := slices.IndexFunc(endpoints, same) // sorted by address, so that a family is one run
	if first < 0 {
		return nil
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

// fit is what the plan makes of a node that serves an address.
type fit struct {
	hop  fsm.HopSpec // without address: it has none of the family
	code Code        // why it is a next hop, or is not
	use  use
	// aside says that new flows shall go past it.
	aside bool
	// acknowledged says that it may be announced by the record.
	acknowledged bool
}

// use is whether a node is a next hop.
type use uint8

const (
	unused use = iota
	spare      // it is one and is silent: it stays only while no other one may be announced
	used
)

// fitOf judges a node that serves an address. One without its agent is no new next hop, and stays one whose rules it
// acknowledged.
func (p *planner) fitOf(prefix netip.Prefix, id fsm.NodeID) fit {
	f := fit{hop: fsm.HopSpec{Node: id}}
	n := p.nodes[id]
	switch {
	case n == nil:
		f.code = NodeUnknown
		return f
	case !n.next.Eligible:
		f.code = NodeIneligible
		return f
	}
	var ok bool
	if f.hop, ok = n.hop(prefix.Addr()); !ok {
		f.hop.Node, f.code = id, NodeLacksFamily
		return f
	}
	if !p.advertised(prefix.Addr(), id) {
		f.code = NodeNotChosen
		return f
	}
	f.aside = p.aside(n).Code != ""
	h, has := hopOf(p.routeOf[prefix.Addr()], f.hop)
	f.acknowledged = has && fsm.Announceable(prefix, h, n.have, p.settings)
	switch {
	case n.liveness == fsm.NodeUp, n.liveness == fsm.AgentDown && f.acknowledged:
		f.use, f.code = used, Serves
		return f
	case n.liveness == fsm.AgentDown:
		f.code = NodeAgentDown
	default:
		f.code = NodeDown
	}
	if has {
		f.use = spare
	}
	return f
}

// hops picks from the nodes that serve an address those that may be a next hop. Those that new flows shall go past, and then
// those that are silent, leave only once somebody else may be announced: the last ones are never removed for liveness
// alone (design §6), nor for a drain. Where an operator moved the address it leads to that node alone, once that is ready and as
// long as it can.
func (p *planner) hops(prefix netip.Prefix, nodes []fsm.NodeID) (d decision) {
	if d.move = p.moveOf(prefix, nodes); d.move.alone {
		d.want = []fsm.HopSpec{d.move.fit.hop}
		return d
	}
	d.want = make([]fsm.HopSpec, 0, len(nodes))
	var aside, silent []fsm.HopSpec
	var ready, asideReady bool
	for _, id := range nodes {
		switch f := p.fitOf(prefix, id); {
		case f.use == spare:
			silent = append(silent, f.hop)
		case f.use == used && f.aside:
			aside = append(aside, f.hop)
			asideReady = asideReady || f.acknowledged
		case f.use == used:
			d.want = append(d.want, f.hop)
			ready = ready || f.acknowledged
		}
	}
	if !ready && len(aside) > 0 {
		d.want, d.aside, ready = append(d.want, aside...), true, asideReady
	}
	if !ready && len(silent) > 0 {
		d.want, d.silent = append(d.want, silent...), true
	}
	slices.SortStableFunc(d.want, compareSpecs)
	return d
}

// bridge lists the old next hops of an address that stay until a new one may be announced, so that it is never without
// a route while its pods move. A node without an endpoint passes traffic on; one that is not eligible is not kept.
func (p *planner) bridge(prefix netip.Prefix, want []fsm.HopSpec) (old []fsm.HopSpec) {
	route := p.routeOf[prefix.Addr()]
	if route == nil || len(want) == 0 {
		return nil
	}
	for _, h := range route.NextHops {
		n := p.nodes[h.Node()]
		if n == nil || !fsm.Announceable(prefix, h, n.have, p.settings) {
			continue
		}
		spec := fsm.HopSpec{Node: h.Node(), Address: h.Address()}
		if slices.Contains(want, spec) {
			return nil
		}
		if own, ok := n.hop(prefix.Addr()); ok && own == spec && n.next.Eligible && n.liveness != fsm.NodeDown {
			old = append(old, spec)
		}
	}
	return old
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
		if h.Node() == spec.Node && h.Address() == spec.Address && !h.Withdrawing {
			return h, true
		}
	}
	return fsm.NextHop{}, false
}

// whyNoHop finds the reason that a person can do something about.
func (p *planner) whyNoHop(a netip.Addr) Reason {
	if len(p.led(p.claims[a])) == 0 {
		return Reason{ServiceDrained, drainedText(p.claims[a])}
	}
	for _, id := range p.servingItself(a) {
		f := p.fitOf(fsm.HostPrefix(a), id)
		return Reason{WaitsForNextHop, "node " + string(id) + ", which carries an endpoint, " + p.sayFit(f, a)}
	}
	why := "no " + familyText(p.claims[a], a) + "endpoint of " + ownersText(p.claims[a]) + " is ready on a node"
	if p.unplaced(a) {
		why += ", and those that are ready name none; write nodeName in their EndpointSlice, or have all nodes announce the address: fairlead.io/nextHops: all"
	}
	return Reason{WaitsForNextHop, why}
}

// familyText is "IPv6 " where the owners of an address have endpoints of another family alone.
func familyText(claims []*claim, a netip.Addr) string {
	own, other := false, false
	for _, c := range claims {
		of := ofFamily(c.owner.next.Endpoints, a)
		own, other = own || len(of) > 0, other || len(of) < len(c.owner.next.Endpoints)
	}
	if own || !other {
		return ""
	}
	return string(world.FamilyOf(a)) + " "
}

// unplaced tells whether an address leads to endpoints of which nobody said at which node they are, by a Service that could ask for all.
func (p *planner) unplaced(a netip.Addr) bool {
	return slices.ContainsFunc(p.led(p.claims[a]), func(c *claim) bool {
		sel := selectEndpoints(c.owner.next, a)
		return !c.owner.next.Local && !c.owner.next.AllNodes && slices.ContainsFunc(sel.endpoints, func(e fsm.Endpoint) bool { return sel.usable(&e) && e.Node == "" })
	})
}
