// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"net/netip"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// nodePlan is a node as the record shall hold it, with what the group knows of it.
type nodePlan struct {
	id       fsm.NodeID
	next     fsm.PutNode
	have     *fsm.Node // nil if new
	shown    bool      // some source shows it
	gone     bool      // its absence may be acted on
	liveness fsm.Liveness
	drained  bool // by an operator
}

const nodeGone = "deleted from the cluster"

// planNodes brings the record's nodes to what the sources show. A node that is gone is first no longer eligible;
// the record of it goes when no route names it.
func (p *planner) planNodes() {
	p.nodes = map[fsm.NodeID]*nodePlan{}
	p.nodeWith = map[netip.Addr]fsm.NodeID{}
	for _, h := range fsm.List[*fsm.Node](p.in.Record, fsm.TableNodes) {
		p.nodes[h.ID] = &nodePlan{
			id: h.ID, have: h, liveness: h.Liveness,
			next: fsm.PutNode{ID: h.ID, UID: h.UID, Version: h.Version, Addresses: h.Addresses, Eligible: h.Eligible, Why: h.Why, Zone: h.Zone, Leaving: h.Leaving, Others: h.Others},
		}
	}
	for _, w := range p.seen.nodes {
		id := fsm.NodeID(w.Name)
		n := p.nodes[id]
		if n == nil {
			n = &nodePlan{id: id}
			p.nodes[id] = n
		}
		n.shown = true
		n.next = p.nodeOf(w, n.have)
	}
	p.nodeIDs = sortedKeys(p.nodes)
	drained := drainsOf(p.in.Record, fsm.DrainNode)
	for _, id := range p.nodeIDs {
		n := p.nodes[id]
		n.drained = drained[string(id)]
		if !n.shown {
			p.judgeAbsentNode(n)
		}
		if n.have == nil || !sameNode(n.have, &n.next) {
			p.propose("Node "+string(id), &n.next)
		}
		for _, a := range n.next.Addresses {
			if _, taken := p.nodeWith[a]; !taken {
				p.nodeWith[a] = id
			}
		}
	}
}

func (p *planner) judgeAbsentNode(n *nodePlan) {
	if !p.seen.mayRemove(world.KindNode, world.ID{Name: string(n.id)}) {
		if n.next.Why != nodeGone {
			p.explainAbsent(fsm.TableNodes, world.KindNode, world.ID{Name: string(n.id)})
		}
		return
	}
	n.gone = true
	n.next.Eligible, n.next.Why = false, nodeGone
}

// nodeOf says what the record shall hold of a node. The version never runs back: what may be acted on is the
// guard's decision, and it was made for the whole view.
func (p *planner) nodeOf(w *world.Node, have *fsm.Node) fsm.PutNode {
	next := fsm.PutNode{ID: fsm.NodeID(w.Name), UID: w.UID, Version: w.Version}
	if have != nil && have.UID == w.UID {
		next.Version = max(next.Version, have.Version)
	}
	for _, family := range []world.Family{world.IPv4, world.IPv6} {
		if a, ok := w.Address(p.in.Options.nodeAddress(), family); ok {
			next.Addresses = append(next.Addresses, a)
		}
	}
	if p.format >= formatTranslation {
		next.Zone, next.Leaving = zoneOf(w), slices.Contains(w.Taints, taintAutoscaler)
		next.Others = othersOf(w, next.Addresses)
	}
	var why []string
	note := func(is bool, what string) {
		if is {
			why = append(why, what)
		}
	}
	note(!w.Ready, whyNotReady)
	note(w.NetworkUnavailable, whyCutOff)
	note(w.Excluded, whyExcluded)
	note(w.Deleting, whyDeleting)
	note(len(next.Addresses) == 0, whyNoAddressType+string(p.in.Options.nodeAddress()))
	next.Why = strings.Join(why, ", ")
	if next.Eligible = next.Why == ""; next.Eligible {
		next.Why = p.in.Options.asideByCluster(w)
	}
	return next
}

// othersOf are the addresses of a node beside some, in order and each once. Loopback is everybody's own.
func othersOf(w *world.Node, known []netip.Addr) (out []netip.Addr) {
	for _, a := range w.Addresses {
		if !slices.Contains(known, a.Address) && !slices.Contains(out, a.Address) && !a.Address.IsLoopback() {
			out = append(out, a.Address)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

// labelZone names the zone that a node is in.
const labelZone = "topology.kubernetes.io/zone"

// taintAutoscaler is on nodes that the cluster's autoscaler is about to delete.
const taintAutoscaler = "ToBeDeletedByClusterAutoscaler"

func zoneOf(w *world.Node) string {
	for _, kv := range w.Labels {
		if kv.Key == labelZone {
			return kv.Value
		}
	}
	return ""
}

// deleteNodes takes nodes that are gone off the record once no route names them.
func (p *planner) deleteNodes() {
	var named map[fsm.NodeID]bool
	for _, id := range p.nodeIDs {
		n := p.nodes[id]
		if !n.gone {
			continue
		}
		if named == nil {
			named = p.nodesNamed()
		}
		switch {
		case named[id]:
			p.explain(fsm.TableNodes, string(id), WaitsForRoute, "gone; its record goes once no path to it can be left")
		case p.quarantined:
			p.explain(fsm.TableNodes, string(id), WaitsForQuarantine, quarantineText)
		default:
			p.propose("Node is gone", &fsm.DeleteNode{ID: id})
		}
	}
}

// nodesNamed are the nodes that a route of the record will name after this plan.
func (p *planner) nodesNamed() map[fsm.NodeID]bool {
	named := map[fsm.NodeID]bool{}
	for _, r := range p.routes {
		if p.unrouted[r.Prefix.Addr()] {
			continue
		}
		for _, h := range r.NextHops {
			named[h.Node()] = true
		}
	}
	return named
}

// mayAcknowledge tells whether a node may be waited for to acknowledge the rules of a prefix: its agent registered, and has
// not said that it cannot carry them out.
func (n *nodePlan) mayAcknowledge(prefix netip.Prefix) bool {
	return n.have != nil && n.have.Boot != "" && !slices.Contains(n.have.Failed, prefix)
}

// sameNode compares all but the version: nodes are written by their heartbeats all the time.
func sameNode(have *fsm.Node, next *fsm.PutNode) bool {
	return have.UID == next.UID && slices.Equal(have.Addresses, next.Addresses) && have.Eligible == next.Eligible && have.Why == next.Why && have.Zone == next.Zone &&
		have.Leaving == next.Leaving && slices.Equal(have.Others, next.Others)
}
