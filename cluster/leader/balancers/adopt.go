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
// that went because somebody took its finalizer off needs no call any more (lbcf §5.7).
func (p *planner) heedHands() {
	for _, r := range p.otherRecords() {
		if !r.Deleting {
			continue
		}
		if l := p.lineOf(r.ID); l != nil && mirrors(r.Mirror, r.UID, l.Binding) {
			p.handled[l.Owner] = true
			l.forced = true
		}
	}
	for _, d := range p.in.Deleted {
		if d.Kind != world.KindBackendRecord || d.How != world.ByWatch {
			continue
		}
		// We take our finalizer off only once the binding is gone: while it is there, somebody else did.
		if l := p.lineOf(d.ID); l != nil && !l.ended && mirrors(d.Mirror, d.UID, l.Binding) {
			p.handled[l.Owner] = true
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
	for _, r := range p.otherRecords() {
		l := p.lineOf(r.ID)
		switch {
		case l == nil && p.adoptable(r):
			p.strange[r.ID] = r
			if c := p.adoption(r); c != nil {
				p.propose("known by its BackendRecord only", c)
			}
		case l != nil && !l.ended && p.replaced(r, l):
			p.replace(r, l)
		}
	}
	for _, r := range p.unaskedRecords() {
		if l := p.lineOf(r.ID); !l.ended && p.replaced(r, l) {
			p.replace(r, l)
		}
	}
}

// recordsKnown tells whether a BackendRecord that is not seen is not there. What LBCF registered while nobody of ours could
// read them would be registered anew, or be left behind on a load balancer that goes.
func (p *planner) recordsKnown() bool {
	return p.in.Listed(world.KindBackendRecord) && !p.in.Away(world.KindBackendRecord)
}

func (p *planner) adoptable(r *world.BackendRecord) bool {
	if !r.Finalizer || r.Deleting && r.Address == "" {
		return false // nobody promised to deregister it; or its driver never heard of it
	}
	if p.mirrored(r) {
		return p.quarantined // otherwise its binding ended, and it is about to go
	}
	return p.trace(r) != fsm.TraceTaken || p.quarantined
}

func originOf(r *world.BackendRecord) fsm.Origin {
	return fsm.Origin{UID: r.UID, Made: int64(r.Created)}
}

func (p *planner) trace(r *world.BackendRecord) fsm.Trace {
	return p.in.Record.TraceOf(fsm.BindingID(r.ID.String()), originOf(r))
}

// replaced tells whether another controller had the cluster since a binding was made. Either it deleted the BackendRecord, for
// which it deregistered the backend, and made one of the same name: whatever we make says that it is ours from the first. Or
// it registered the backend that we had only made the object of.
func (p *planner) replaced(r *world.BackendRecord, l *line) bool {
	if mirrors(r.Mirror, r.UID, l.Binding) {
		return r.Registered && !l.Asked
	}
	return r.Finalizer && !p.mirrored(r) && p.trace(r) != fsm.TraceTaken
}

// replace goes on from what the other controller made of a binding. At the same address that is a matter of the record
// alone; otherwise what the binding says is taken off once more first, in case the other one left it.
func (p *planner) replace(r *world.BackendRecord, l *line) {
	p.handled[l.Owner] = true
	c := p.adoption(r)
	alike := l.Identity == fsm.IdentityOf(r.DriverID.String(), kvs(r.Info)) && (r.Address == l.Address || r.Address == "" || l.Address == "")
	switch {
	case c == nil:
		return
	case alike && c.Binding.Address == "":
		c.Binding.Address = l.Address // where it was, in case it still is
	case !alike:
		l.forced = l.forced || c.Binding.Address != ""
		return
	}
	if c.Leaving && c.Binding.Address == "" {
		return // nothing is known to have been registered by either
	}
	l.ended = true
	p.strange[r.ID] = r
	p.propose("another controller had the cluster", &fsm.Forget{ID: l.ID})
	p.propose("as another controller left it", c)
}

// adoption is what takes over the backend of a BackendRecord. It is nil while something about it is not known or not there yet.
func (p *planner) adoption(r *world.BackendRecord) *fsm.AdoptBinding {
	if len(r.Info) == 0 || r.DriverID.Name == "" {
		p.explain(world.KindBackendRecord, r.ID.String(), WaitsForMend, "it does not say which load balancer of which driver it is on")
		return nil
	}
	for _, kind := range []world.Kind{world.KindLoadBalancer, world.KindBind, world.KindBackendGroup, world.KindPod, world.KindService, world.KindNode} {
		if !p.in.Listed(kind) {
			p.explainOne(world.KindBackendRecord, "", WaitsForAdoption, "BackendRecord "+r.ID.String()+" is taken over once every "+string(kind)+" is known")
			return nil
		}
	}
	identity := fsm.IdentityOf(r.DriverID.String(), kvs(r.Info))
	row, wait := p.balancerOf(r, identity)
	if wait {
		return nil
	}
	if row == nil {
		id := orphanID(r, identity)
		p.awaited[id] = true
		if row = p.rows[id]; row == nil {
			p.addOrphan(r, id)
			return nil
		}
	}
	p.awaited[row.ID] = true
	return p.adoptionOn(row, r)
}

// credible tells whether a backend is registered if its BackendRecord says so. Where nobody can tell any more whether that is
// over, it is ensured.
func (p *planner) credible(r *world.BackendRecord) bool {
	return p.mirrored(r) || p.quarantined || p.trace(r) == fsm.TraceNone
}

// adoptionOn is adoption once the load balancer is in the record.
func (p *planner) adoptionOn(row *fsm.LoadBalancer, r *world.BackendRecord) *fsm.AdoptBinding {
	c := &fsm.AdoptBinding{Binding: fsm.PutBinding{
		ID: fsm.BindingID(r.ID.String()), Balancer: row.ID, Owner: ownerOf(r), Address: r.Address, Parameters: kvs(r.Parameters),
		Backend: p.backendOf(r), Attributes: kvs(r.Attributes), Ensure: fsm.EnsurePolicy(r.Ensure),
	}, UID: r.UID, Returned: kvs(r.Injected), Registered: r.Registered && p.credible(r), Leaving: r.Deleting}
	if _, binding := splitMark(r.Mirror); binding != "" {
		c.UID = binding
	}
	if !p.mirrored(r) {
		c.Origin = originOf(r)
	}
	if c.Binding.Backend.Kind == kindStatic && c.Binding.Address == "" {
		c.Binding.Address = r.Static
	}
	return c
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
