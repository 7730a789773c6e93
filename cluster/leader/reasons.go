// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
)

// Code names a reason, for programs. Codes are never renamed; docs/why.md has all of them, each with its remedy.
type Code string

// Reason is why something is as it is.
type Reason struct {
	Code Code
	Text string // a sentence for people, without its full stop
}

// Where an address comes from.
const (
	FromPool        Code = "from-pool"    // the lowest free one of a pool
	FromPoolEarlier Code = "kept"         // of a pool, too; it was given out earlier and stays
	FromReturning   Code = "taken-back"   // its own one of earlier, which was on its way back to the pool
	FromShared      Code = "shared"       // of a pool, from Services that share it with it
	FromRequested   Code = "requested"    // the Service names it, and it is in a pool
	FromExternal    Code = "external-ips" // the Service names it in spec.externalIPs, which need no pool
	FromReleased    Code = "released"     // the Service gave it up, and a path to it may be left
)

// Why a node is a next hop of an address.
const (
	Serves    Code = "serves"      // an endpoint that the address leads to is there
	ServesAll Code = "every-node"  // the Service asks for every node
	PassesOn  Code = "passes-on"   // its endpoints do not answer probes, and those that do are at nodes that can be none
	Bridges   Code = "bridge"      // it serves no more, and stays until one that does may be announced
	LastHop   Code = "silent-last" // it does not answer, and no other one may be announced
	LastAside Code = "aside-last"  // new flows shall go past it, and no other one may be announced
	MovedHere Code = "moved-here"  // by an operator
)

// Why a node is none.
const (
	NoEndpoint       Code = "no-endpoint"         // no endpoint of the Service is there
	EndpointNotReady Code = "endpoint-not-ready"  // there are, and none that the address leads to
	NodeUnknown      Code = "node-unknown"        // an endpoint names it, and no source does
	NodeIneligible   Code = "node-ineligible"     // the cluster has something against it that this release has no word for
	NodeNotReady     Code = "node-not-ready"      // condition Ready
	NodeCutOff       Code = "network-unavailable" // condition NetworkUnavailable
	NodeExcluded     Code = "node-excluded"       // by label
	NodeDeleting     Code = "node-deleting"
	NodeGone         Code = "node-gone"
	NodeNoAddress    Code = "node-no-address"
	NodeLacksFamily  Code = "node-lacks-family" // it has no address of the family
	NodeAgentDown    Code = "agent-down"        // it answers, its agent does not
	NodeDown         Code = "node-down"
	NodeNotChosen    Code = "not-advertised" // no BGPAdvertisement of the address chooses the node
	NodeDrained      Code = "node-drained"   // by an operator
	NodeCordoned     Code = "node-cordoned"  // and the group heeds that
	NodeTainted      Code = "node-tainted"   // with a taint that the group heeds
	ServiceDrained   Code = "service-drained"
	MovedAway        Code = "moved-away" // to another node, by an operator
	GivenUp          Code = "given-up"   // nobody owns the address any more
	Replaced         Code = "replaced"   // the same, but the address in its place may not be announced yet
)

// Why a Service is not served by the group.
const (
	NotLoadBalancer Code = "not-load-balancer"
	OtherClass      Code = "other-class"
	Unclassed       Code = "unclassed" // it has no class, and those are left to others
	Foreign         Code = "foreign"   // left to another service proxy by label
	Headless        Code = "headless"
	Deleting        Code = "deleting"
)

// Moved is said of a Service that an operator moved to a node: by whom, when and why.
const Moved Code = "moved"

// Codes lists the codes of reasons, in the order of the constants, with those of Explanation and of fsm.Pending.
func Codes() []Code {
	return []Code{
		FromPool, FromPoolEarlier, FromReturning, FromShared, FromRequested, FromExternal, FromReleased,
		Serves, ServesAll, PassesOn, Bridges, LastHop, LastAside, MovedHere,
		NoEndpoint, EndpointNotReady, NodeUnknown, NodeIneligible, NodeNotReady, NodeCutOff, NodeExcluded, NodeDeleting, NodeGone,
		NodeNoAddress, NodeLacksFamily, NodeAgentDown, NodeDown, NodeNotChosen, NodeDrained, NodeCordoned, NodeTainted, ServiceDrained, MovedAway, GivenUp, Replaced,
		NotLoadBalancer, OtherClass, Unclassed, Foreign, Headless, Deleting, Moved,
		PendingNoPool, PendingExhausted, PendingOutside, PendingTaken, PendingInvalid, PendingQuota, PendingForbidden, PendingPort, PendingNodePort,
		WaitsForEvidence, WaitsForOperator, WaitsForHolder, WaitsForMember, WaitsForRoute, WaitsForQuarantine, WaitsForOverlap, WaitsForNextHop, WaitsForLiveness,
		WaitsForOther, WaitsForMove, WaitsForRules, WaitsForMend, WaitsForAggregate, WaitsForPolicy, WaitsForDrain, WaitsForAdvertisement, WaitsForHandover,
	}
}

// What the record says of a node that is not eligible, and under which code it is told.
const (
	whyNotReady      = "not ready"
	whyCutOff        = "network unavailable"
	whyExcluded      = "labelled node.kubernetes.io/exclude-from-external-load-balancers"
	whyDeleting      = "being deleted"
	whyNoAddressType = "without an address of type "
)

// ineligible is the code for what is in a node's way, the first where it is several.
func ineligible(why string) Code {
	first, _, _ := strings.Cut(why, ", ")
	switch {
	case first == whyNotReady:
		return NodeNotReady
	case first == whyCutOff:
		return NodeCutOff
	case first == whyExcluded:
		return NodeExcluded
	case first == whyDeleting:
		return NodeDeleting
	case first == nodeGone:
		return NodeGone
	case strings.HasPrefix(first, whyNoAddressType):
		return NodeNoAddress
	}
	return NodeIneligible
}

// sayFit tells of a node what was made of it, as the end of a sentence that begins with the node.
func (p *planner) sayFit(f fit, a netip.Addr) string {
	switch f.code {
	case NodeUnknown:
		return "is not known"
	case NodeIneligible:
		return "is not eligible: " + p.nodes[f.hop.Node].next.Why
	case NodeLacksFamily:
		return "has no address of the family of " + a.String()
	case NodeNotChosen:
		return "is chosen by no BGPAdvertisement that is about " + a.String()
	}
	return "is " + p.nodes[f.hop.Node].liveness.String()
}

// NodeReason is what the plan makes of one node for one address, and why.
type NodeReason struct {
	Node   fsm.NodeID
	Hop    netip.Addr // that it is, or would be; invalid if it has none of the family
	Wanted bool       // as a next hop
	Reason
}

// nodeReasons tells of every node that the sources, the record or an endpoint name what the plan makes of it for an
// address, in order and each once. It is true once the routes were planned.
func (p *planner) nodeReasons(a netip.Addr) []NodeReason {
	var d decision
	if len(p.claims[a]) > 0 {
		d = p.decide(a)
	}
	serving := p.servingAny(a)
	ids := slices.Concat(p.nodeIDs, serving)
	if r := p.routeOf[a]; r != nil {
		for _, h := range r.NextHops {
			ids = append(ids, h.Node())
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	out := make([]NodeReason, 0, len(ids))
	for _, id := range ids {
		_, serves := slices.BinarySearch(serving, id)
		r := p.nodeReason(a, id, serves, &d)
		r.Wanted = r.Code == Replaced || slices.ContainsFunc(d.want, func(s fsm.HopSpec) bool { return s.Node == id })
		out = append(out, r)
	}
	return out
}

func (p *planner) nodeReason(a netip.Addr, id fsm.NodeID, serves bool, d *decision) NodeReason {
	r := NodeReason{Node: id}
	n := p.nodes[id]
	if n != nil {
		hop, _ := n.hop(a)
		r.Hop = hop.Address
	}
	moved, is := p.moveReason(id, serves, d)
	switch {
	case len(p.claims[a]) == 0:
		r.Reason = p.noOwner(a, id)
	case is:
		r.Reason = moved
	case slices.ContainsFunc(d.bridged, func(s fsm.HopSpec) bool { return s.Node == id }):
		r.Reason = Reason{Bridges, "it serves the address no more, and stays until a node that does acknowledged its rules"}
	case !serves:
		r.Reason = p.notServing(a, id)
		if n != nil && !n.next.Eligible {
			r.Text += "; nor is it eligible: " + n.next.Why
		}
	default:
		r.Reason = p.fitReason(a, id, d)
	}
	return r
}

// noOwner is said of a node's part in an address that nobody owns any more.
func (p *planner) noOwner(a netip.Addr, id fsm.NodeID) Reason {
	r := p.routeOf[a]
	stays := r != nil && slices.ContainsFunc(r.NextHops, func(h fsm.NextHop) bool { return h.Node() == id && isWanted(h) })
	if stays && p.isReplaced(a) {
		return Reason{Replaced, "the Service gives the address up; it stays until the one in its place may be announced"}
	}
	return Reason{GivenUp, "nobody owns the address any more"}
}

// notServing tells why no endpoint of a node counts.
func (p *planner) notServing(a netip.Addr, id fsm.NodeID) Reason {
	var idle []string
	claims := p.led(p.claims[a])
	if len(claims) == 0 {
		return Reason{ServiceDrained, drainedText(p.claims[a])}
	}
	for _, c := range claims {
		for _, e := range selectEndpoints(c.owner.next, a).endpoints {
			if p.nodeOfEndpoint(&e) == id {
				idle = append(idle, e.Address.String()+" "+endpointState(&e))
			}
		}
	}
	if len(idle) == 0 {
		return Reason{NoEndpoint, "no endpoint of " + ownersText(claims) + " is there"}
	}
	slices.Sort(idle)
	return Reason{EndpointNotReady, "no endpoint there is ready: " + fewOf(idle)}
}

func endpointState(e *fsm.Endpoint) string {
	switch {
	case e.Terminating && e.Serving:
		return "ends while others are ready"
	case e.Terminating:
		return "ends"
	case e.Ready && e.Quiesced:
		return "has weight 0"
	case e.Failing:
		return "does not answer probes"
	}
	return "is not ready"
}

// fitReason tells of a node that serves an address why it is a next hop, or is not.
func (p *planner) fitReason(a netip.Addr, id fsm.NodeID, d *decision) Reason {
	f := p.fitOf(fsm.HostPrefix(a), id)
	switch {
	case f.use == spare && d.silent:
		return Reason{LastHop, "it " + p.sayFit(f, a) + ", and no other node may be announced"}
	case f.use == used && f.aside && slices.Contains(d.want, f.hop):
		return Reason{LastAside, "it " + p.aside(p.nodes[id]).Text + ", and no other node may be announced yet"}
	case f.use == used && f.aside:
		why := p.aside(p.nodes[id])
		return Reason{why.Code, "it " + why.Text + ": new flows go to other nodes"}
	case f.code == NodeIneligible:
		return Reason{ineligible(p.nodes[id].next.Why), "it " + p.sayFit(f, a)}
	case f.code == NodeAgentDown:
		return Reason{f.code, "it answers, its agent does not: it gets no new addresses"}
	case f.code == NodeUnknown:
		return Reason{f.code, "an endpoint names it, and no source shows a Node of that name"}
	case f.use != used:
		return Reason{f.code, "it " + p.sayFit(f, a)}
	}
	var there, rest []string
	for _, c := range p.led(p.claims[a]) {
		sel := selectEndpoints(c.owner.next, a)
		for i := range sel.endpoints {
			switch e := &sel.endpoints[i]; {
			case p.nodeOfEndpoint(e) != id:
			case sel.usable(e):
				there = append(there, e.Address.String())
			case e.Failing && !sel.everywhere:
				rest = append(rest, e.Address.String())
			}
		}
	}
	switch {
	case len(there) > 0:
	case len(rest) > 0:
		slices.Sort(rest)
		return Reason{PassesOn, "it passes traffic on: " + fewOf(rest) + " there does not answer probes, and the endpoints that do are at nodes that can be no next hop"}
	default:
		return Reason{ServesAll, "the Service asks for every eligible node"}
	}
	slices.Sort(there)
	return Reason{Serves, "it has " + counted(len(slices.Compact(there)), "endpoint") + " that the address leads to: " + fewOf(there)}
}

// few is how many things of a kind a sentence names.
const few = 3

func fewOf(list []string) string {
	list = slices.Compact(list)
	text := strings.Join(list[:min(few, len(list))], ", ")
	if more := len(list) - few; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func counted(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
