// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// orphanKind begins the ids of load balancers that no object means any more: BackendRecords alone know them.
const orphanKind world.Kind = "BackendRecord"

// orphanID is the id of such a load balancer: "BackendRecord/namespace/name of the LoadBalancer/identity". Name is
// empty for the entry of a Bind.
func orphanID(r *world.BackendRecord, identity fsm.Identity) fsm.BalancerID {
	name := r.LoadBalancer
	if r.OwnerKind == string(world.KindBind) {
		name = ""
	}
	return fsm.BalancerID(string(orphanKind) + "/" + r.Namespace + "/" + name + "/" + string(identity))
}

// heedHands sees to what was done to BackendRecords by hand: one that was deleted has its backend deregistered; one
// that went because somebody took its finalizer off needs no call any more (section 5.7).
func (p *planner) heedHands() {
	for _, r := range p.in.BackendRecords {
		if !r.Deleting {
			continue
		}
		if l := p.lineOf[r.ID]; l != nil && mirrors(r.Mirror, r.UID, l.Binding) {
			l.forced = true
		}
	}
	for _, d := range p.in.Deleted {
		if d.Kind != world.KindBackendRecord || d.How != world.ByWatch {
			continue
		}
		// We take our finalizer off only once the binding is gone: while it is there, somebody else did.
		if l := p.lineOf[d.ID]; l != nil && !l.ended && mirrors(d.Mirror, d.UID, l.Binding) {
			l.ended = true
			p.propose("its BackendRecord went: the finalizer was removed by hand", &fsm.Forget{ID: l.ID})
		}
	}
}

// mirrors tells whether a BackendRecord is that of this life of a binding: it says so, or it is what the binding was
// taken over from.
func mirrors(mark, uid string, b *fsm.Binding) bool {
	_, binding := splitMark(mark)
	return binding == b.UID || mark == "" && uid == b.UID
}

// splitMark takes the annotation of a BackendRecord apart: "group/binding", or the binding alone.
func splitMark(mark string) (group, binding string) {
	if before, after, ok := strings.Cut(mark, "/"); ok {
		return before, after
	}
	return "", mark
}

// adopt takes over the backends that are known by BackendRecords only: those of another controller, and our own where
// the record lost them.
func (p *planner) adopt() {
	if !p.in.Listed(world.KindBackendRecord) {
		return
	}
	for _, r := range p.in.BackendRecords {
		if p.lineOf[r.ID] != nil || !p.adoptable(r) {
			continue
		}
		p.strange[r.ID] = r
		p.adoptOne(r)
	}
}

func (p *planner) adoptable(r *world.BackendRecord) bool {
	if !r.Finalizer || r.Deleting && r.Address == "" {
		return false // nobody promised to deregister it; or its driver never heard of it
	}
	group, _ := splitMark(r.Mirror)
	if r.Mirror != "" && (group == "" || group == string(p.group.ID)) {
		return p.quarantined // otherwise its binding ended, and it is about to go
	}
	_, ended := fsm.Get[*fsm.Grave](p.in.Record, fsm.TableGraves, string(fsm.TableBindings)+"/"+r.ID.String())
	return !ended || p.quarantined
}

func (p *planner) adoptOne(r *world.BackendRecord) {
	if len(r.Info) == 0 || r.DriverID.Name == "" {
		p.explain(world.KindBackendRecord, r.ID.String(), WaitsForMend, "it does not say which load balancer of which driver it is on")
		return
	}
	for _, kind := range []world.Kind{world.KindLoadBalancer, world.KindBind, world.KindBackendGroup, world.KindPod, world.KindService, world.KindNode} {
		if !p.in.Listed(kind) {
			p.explainOne(world.KindBackendRecord, "", WaitsForAdoption, "BackendRecord "+r.ID.String()+" is taken over once every "+string(kind)+" is known")
			return
		}
	}
	identity := fsm.IdentityOf(r.DriverID.String(), kvs(r.Info))
	row, wait := p.balancerOf(r, identity)
	if wait {
		return
	}
	if row == nil {
		id := orphanID(r, identity)
		p.awaited[id] = true
		if row = p.rows[id]; row == nil {
			p.addOrphan(r, id)
			return
		}
	}
	p.awaited[row.ID] = true
	c := &fsm.AdoptBinding{Binding: fsm.PutBinding{
		ID: fsm.BindingID(r.ID.String()), Balancer: row.ID, Owner: ownerOf(r), Address: r.Address, Parameters: kvs(r.Parameters),
		Backend: p.backendOf(r), Attributes: kvs(r.Attributes), Ensure: fsm.EnsurePolicy(r.Ensure),
	}, UID: r.UID, Returned: kvs(r.Injected), Registered: r.Registered, Leaving: r.Deleting}
	if _, binding := splitMark(r.Mirror); binding != "" {
		c.UID = binding
	}
	if c.Binding.Backend.Kind == kindStatic && c.Binding.Address == "" {
		c.Binding.Address = r.Static
	}
	p.propose("known by its BackendRecord only", c)
}

// balancerOf finds the load balancer of a record that is to be taken over: that of the object it names, if that means
// the same one. It waits where that object is there but not in the record yet.
func (p *planner) balancerOf(r *world.BackendRecord, identity fsm.Identity) (row *fsm.LoadBalancer, wait bool) {
	var o *object
	if r.OwnerKind == string(world.KindBind) {
		at := &world.Meta{ID: world.ID{Namespace: r.Namespace, Name: r.Owner}, UID: r.OwnerUID}
		o = p.objectOf[fsm.BalancerID(balancerID(world.KindBind, at)+"/"+r.LoadBalancer)]
	} else {
		var held bool
		if o, held = p.lookUp(r.LoadBalancer, r.Namespace); held {
			p.explain(world.KindBackendRecord, r.ID.String(), WaitsForEvidence, "LoadBalancer "+r.LoadBalancer+" is absent, and not certain to be gone")
			return nil, true
		}
	}
	switch {
	case o == nil:
		return nil, false
	case o.row == nil && o.status.Created:
		p.awaited[o.id] = true
		return nil, true // the load balancer is taken over first
	case o.row != nil && o.row.Identity == identity:
		return o.row, false
	}
	return nil, false
}

func (p *planner) addOrphan(r *world.BackendRecord, id fsm.BalancerID) {
	if p.freshOrphan[id] {
		return
	}
	p.freshOrphan[id] = true
	p.propose("known by BackendRecords only", &fsm.PutLoadBalancer{
		ID: id, Driver: r.DriverID.String(), Info: kvs(r.Info), Attributes: kvs(r.Attributes), UID: r.UID, Synced: true,
	})
}

// ownerOf is how bindings name the owner of a record. One without an owner was orphaned, and is nobody's.
func ownerOf(r *world.BackendRecord) string {
	if r.OwnerKind == "" {
		return ""
	}
	return balancerID(world.Kind(r.OwnerKind), &world.Meta{ID: world.ID{Namespace: r.Namespace, Name: r.Owner}, UID: r.OwnerUID})
}

// backendOf is the backend of a record that is to be taken over. What a record does not say, the pod's UID and what its
// address was made from, is that of the object of the name as long as the name of the record fits it.
func (p *planner) backendOf(r *world.BackendRecord) fsm.Backend {
	b := fsm.Backend{
		Kind: r.Kind, Name: r.Name, Port: uint32(r.Port.Port), Protocol: r.Port.Protocol, NodePort: uint32(r.NodePort), Node: r.Node,
	}
	switch r.Kind {
	case kindPod:
		pod := find(p.in.Pods, world.ID{Namespace: r.Namespace, Name: r.Name}, func(o *world.Pod) world.ID { return o.ID })
		if pod == nil {
			break
		}
		name := PodRecord(r.LoadBalancer, r.Owner, pod.UID, r.Port)
		if r.OwnerKind == string(world.KindBind) {
			name = BindRecord(r.Owner, r.LoadBalancer, pod.Name, pod.IP, r.Port)
		}
		if name == r.ID.Name || Apart(name, r.OwnerUID) == r.ID.Name {
			b.UID, b.Target = pod.UID, pod.IP
		}
	case kindService:
		if node := find(p.in.Nodes, world.ID{Name: r.Node}, func(o *world.Node) world.ID { return o.ID }); node != nil {
			b.Target = addressesOf(node)
		}
	case kindStatic:
		b = fsm.Backend{Kind: kindStatic}
	}
	return b
}

// addressesOf are all addresses of a node, as what a backend's address is made from.
func addressesOf(n *world.Node) string {
	var all []string
	for _, a := range n.Addresses {
		all = append(all, string(a.Type)+"="+a.Address.String())
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}
