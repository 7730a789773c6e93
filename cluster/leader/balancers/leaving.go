// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"slices"
	"strings"
	"sync"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// removeBindings has those backends taken off that nobody expects, as far as the evidence for that goes.
func (p *planner) removeBindings() {
	puts := sync.OnceValue(p.putsBySpot)
	for _, l := range p.unwanted() {
		why, held := "its BackendRecord was deleted", ""
		if !l.forced {
			why, held = p.leaves(l)
		}
		heir, found := p.heirOf(l, puts)
		if found && held != "" && l.Backend.Kind == kindPod && !p.lives(l) {
			why, held = "its address is that of "+heir.Name+" now", ""
		}
		switch {
		case held != "":
			p.explainBinding(l, WaitsForEvidence, held)
		case found && !heir.addressed && l.Address != "":
			p.explainBinding(l, WaitsForHeir, heir.awaited(l))
		case p.quarantined:
			p.explainBinding(l, WaitsForQuarantine, quarantineText)
		default:
			p.propose(why, &fsm.RemoveBinding{ID: l.ID})
		}
	}
}

// spot is a place on a load balancer, as far as Kubernetes can tell before a driver said its address.
type spot struct {
	balancer fsm.BalancerID
	target   string
	port     uint32 // the node port of a Service
	protocol string
}

// spotOf is the place of a pod that has an address, or of a node.
func spotOf(balancer fsm.BalancerID, b fsm.Backend) (spot, bool) {
	s := spot{balancer, b.Target, b.Port, b.Protocol}
	if b.Kind == kindService {
		s.port = b.NodePort
	}
	return s, b.Kind != kindStatic && b.Target != ""
}

// heir is what is wanted where a backend was that nobody expects: another pod that has its address now, or the same backend for another
// owner.
type heir struct {
	fsm.Backend
	owner     string
	addressed bool // the driver said its address: the record knows that both are one
}

// awaited tells what a backend stays for.
func (h *heir) awaited(l *line) string {
	if h.Kind == kindPod && h.UID != l.Backend.UID {
		return "its address is that of " + h.Name + " now, which is about to be registered under it"
	}
	at := placeOf(h.owner)
	return string(at.kind) + " " + at.id.String() + " wants it too, and is about to register it"
}

// heirOf is what is wanted at the place of a backend. Two pods that live never have one place: who was there before is gone, whatever
// shows that or not. Nothing is taken off before its heir has the address, too: then nothing is taken off at all (lbcf §5.6).
func (p *planner) heirOf(l *line, puts func() map[spot]heir) (out heir, found bool) {
	at, ok := spotOf(l.Balancer, l.Backend)
	if !ok {
		return heir{}, false
	}
	for _, b := range p.index.spots[at] {
		if b.ID != l.ID && p.wants(b) && b.State < fsm.BindingDraining && !out.addressed {
			out, found = heir{b.Backend, b.Owner, b.Address != ""}, true
		}
	}
	if put, ok := puts()[at]; ok && !found {
		return put, true
	}
	return out, found
}

// putsBySpot are the backends that this plan wants anew or otherwise, by their places.
func (p *planner) putsBySpot() map[spot]heir {
	out := map[spot]heir{}
	for _, put := range p.puts {
		c := put.Command.(*fsm.PutBinding)
		if at, ok := spotOf(c.Balancer, c.Backend); ok {
			out[at] = heir{Backend: c.Backend, owner: c.Owner}
		}
	}
	return out
}

// wants tells whether a backend is expected as its binding has it.
func (p *planner) wants(b *bound) bool {
	o := p.ownerOf[b.Owner]
	return o != nil && o.settled || p.line(b).wanted
}

// unwanted are the bindings that nobody expects and that are not on their way out, in order.
func (p *planner) unwanted() []*line {
	var out []*line
	for id, held := range p.index.owners {
		if o := p.ownerOf[id]; o != nil && o.settled {
			continue
		}
		for _, some := range held.of {
			for _, b := range some {
				l := p.line(b)
				if l.ended || l.State >= fsm.BindingDraining || !l.forced && (l.wanted || l.kept) {
					continue
				}
				out = append(out, l)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b *line) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return out
}

// lives tells whether the pod of a binding is there and has the address that it had: then nobody inherits it.
func (p *planner) lives(l *line) bool {
	pod := p.pod(l.id.Namespace, l.Backend.Name)
	return l.Backend.Kind == kindPod && pod != nil && pod.UID == l.Backend.UID && pod.IP == l.Backend.Target
}

// leaves tells why a binding that is not expected goes, or what its removal is held for. What is present and says no
// is reason enough, whatever else is not known.
func (p *planner) leaves(l *line) (why, held string) {
	at := placeOf(string(l.Balancer))
	if why := p.leavesBalancer(at, l); why != "" {
		return why, ""
	}
	if l.Owner == "" {
		return "nobody owns it", ""
	}
	o := p.ownerOf[l.Owner]
	if o == nil {
		by := placeOf(l.Owner)
		if p.gone(by.kind, by.id, by.uid) {
			return string(by.kind) + " " + by.id.String() + " is gone", ""
		}
		return "", string(by.kind) + " " + by.id.String() + " is absent, and not certain to be gone"
	}
	if o.meta.Deleting {
		return string(o.kind) + " " + o.meta.ID.String() + " is being deleted", ""
	}
	if !slices.ContainsFunc(o.uses, func(u use) bool { return u.row.ID == l.Balancer }) {
		return p.leavesUse(o, at)
	}
	if l.why != "" {
		return l.why, ""
	}
	switch l.Backend.Kind {
	case kindPod:
		return p.leavesPod(o, l)
	case kindService:
		return p.leavesNode(o, l)
	}
	return "no longer listed", ""
}

// leavesBalancer tells that a binding goes because its load balancer does.
func (p *planner) leavesBalancer(at place, l *line) string {
	if o := p.objectOf[l.Balancer]; o != nil {
		if o.going || o.row.State == fsm.BalancerDeleting {
			return "its load balancer is being deleted"
		}
		return ""
	}
	if at.kind == orphanKind {
		return ""
	}
	if p.gone(at.kind, at.id, at.uid) {
		return "its load balancer is gone"
	}
	if at.kind == world.KindBind && p.present(at.kind, at.id) != nil {
		return "its load balancer is no longer in its Bind"
	}
	return ""
}

// leavesUse tells whether an owner that is there surely does not mean a load balancer that it does not use.
func (p *planner) leavesUse(o *owner, at place) (why, held string) {
	const no = "its owner does not use the load balancer"
	if o.group == nil || !slices.Contains(o.group.LoadBalancers, at.id.Name) || !slices.Contains(places(at.id.Name, o.meta.Namespace), at.id) {
		return no, ""
	}
	if p.named[at.id] == nil && !p.gone(world.KindLoadBalancer, at.id, "") {
		return "", "LoadBalancer " + at.id.String() + " is absent, and not certain to be gone"
	}
	return no, ""
}

func (p *planner) leavesPod(o *owner, l *line) (why, held string) {
	if !slices.ContainsFunc(o.ports, func(port world.BackendPort) bool {
		return uint32(port.Port) == l.Backend.Port && port.Protocol == l.Backend.Protocol
	}) {
		return "its port is no longer listed", ""
	}
	id := world.ID{Namespace: l.id.Namespace, Name: l.Backend.Name}
	switch pod := p.pod(id.Namespace, id.Name); {
	case pod == nil && p.gone(world.KindPod, id, l.Backend.UID):
		return "pod " + id.String() + " is gone", ""
	case pod == nil:
		return "", "pod " + id.String() + " is absent, and not certain to be gone"
	case pod.UID != l.Backend.UID:
		return "pod " + id.String() + " is another one now", ""
	case pod.Deleting:
		return "pod " + id.String() + " is being deleted", ""
	case !pod.Available():
		return "pod " + id.String() + " is not ready", ""
	}
	return "pod " + id.String() + " is no longer selected", ""
}

func (p *planner) leavesNode(o *owner, l *line) (why, held string) {
	if o.group == nil {
		return "a Bind has pods alone", ""
	}
	s := o.group.Service
	if s == nil || s.Name != l.Backend.Name || uint32(s.Port.Port) != l.Backend.Port || s.Port.Protocol != l.Backend.Protocol {
		return "its Service or port is another one now", ""
	}
	id := world.ID{Namespace: l.id.Namespace, Name: s.Name}
	if p.present(world.KindService, id) == nil {
		if !p.gone(world.KindService, id, "") {
			return "", "Service " + id.String() + " is absent, and not certain to be gone"
		}
		return "Service " + id.String() + " is gone", ""
	}
	if _, ok := p.nodePort(o); !ok {
		return "Service " + id.String() + " has no node port for it", ""
	}
	id = world.ID{Name: l.Backend.Node}
	switch node := find(p.in.Nodes, id, func(n *world.Node) world.ID { return n.ID }); {
	case node == nil && p.gone(world.KindNode, id, ""):
		return "node " + id.Name + " is gone", ""
	case node == nil:
		return "", "node " + id.Name + " is absent, and not certain to be gone"
	case s.NotExcluded && node.Excluded:
		return "node " + id.Name + " is to have no traffic of load balancers", ""
	case s.OnlyReady && !node.Ready:
		return "node " + id.Name + " is not ready", ""
	}
	return "node " + id.Name + " is no longer selected", ""
}
