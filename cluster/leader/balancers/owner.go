// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// owner is a group or a Bind: what wants backends on load balancers.
type owner struct {
	id         string // as fsm.Binding.Owner names it
	kind       world.Kind
	meta       *world.Meta
	balancing  *world.Balancing
	group      *world.BackendGroup // nil for a Bind
	parameters []fsm.KV
	ensure     fsm.EnsurePolicy
	uses       []use
	ports      []world.BackendPort
	held       *holding
	// seen are the names of records of backends that are expected and have no binding yet.
	seen     map[string]bool
	expected int32
	wanted   int  // of its bindings
	asks     bool // more than pods and its own policy tells which of its pods stay
	settled  bool // every one of them is wanted as it is, and nothing else
}

// use is a load balancer that an owner's backends may be on now.
type use struct {
	name       string // as the owner has it
	row        *fsm.LoadBalancer
	attributes []fsm.KV
}

// planOwners wants the backends of every group and Bind.
func (p *planner) planOwners() {
	p.gatherOwners()
	p.recallSettled()
	p.pods = p.indexPods()
	for _, o := range p.owners {
		if o.meta.Deleting || o.settled {
			continue
		}
		switch {
		case o.group == nil || o.group.Service == nil && o.balancing.Pods != nil:
			p.wantPods(o)
		case o.group.Service != nil:
			p.wantNodes(o)
		default:
			p.wantStatic(o)
		}
	}
	p.rememberSettled()
}

func (p *planner) gatherOwners() {
	for _, g := range p.in.BackendGroups {
		o := p.addOwner(world.KindBackendGroup, &g.Meta, &g.Balancing)
		o.group = g
		o.ensure = fsm.EnsurePolicy(g.Ensure)
		for _, name := range g.LoadBalancers {
			p.useLoadBalancer(o, name)
		}
	}
	for _, b := range p.in.Binds {
		o := p.addOwner(world.KindBind, &b.Meta, &b.Balancing)
		o.ensure = bindPolicy(b.Ensure)
		for _, e := range b.Entries {
			p.useEntry(o, e.Name)
		}
	}
}

func (p *planner) addOwner(kind world.Kind, m *world.Meta, b *world.Balancing) *owner {
	o := &owner{id: balancerID(kind, m), kind: kind, meta: m, balancing: b, parameters: kvs(b.Parameters), seen: map[string]bool{}}
	if o.held = p.index.owners[o.id]; o.held == nil {
		o.held = &holding{}
	}
	if b.Pods != nil {
		o.ports = b.Pods.Ports
	}
	p.owners = append(p.owners, o)
	p.ownerOf[o.id] = o
	return o
}

// bindPolicy is the policy of a Bind as its BackendRecords have it: what is not Always is IfNotSucc (lbcf §2.4).
func bindPolicy(e world.EnsurePolicy) fsm.EnsurePolicy {
	if e.Policy == "" || e.Policy == "Always" {
		return fsm.EnsurePolicy(e)
	}
	return fsm.EnsurePolicy{Policy: "IfNotSucc"}
}

// lookUp finds the LoadBalancer that a group means by a name: one in its own namespace, else a shared one (section
// 1.4). Held tells that one in its own namespace is absent but not surely gone, so that nobody knows.
func (p *planner) lookUp(name, namespace string) (o *object, held bool) {
	for _, id := range places(name, namespace) {
		if o := p.named[id]; o != nil {
			return o, false
		}
		for _, row := range p.recorded[id] {
			if row.State != fsm.BalancerDeleting && !p.gone(world.KindLoadBalancer, id, placeOf(string(row.ID)).uid) {
				return nil, true
			}
		}
	}
	return nil, false
}

// Where objects live that all namespaces may use, and what their names begin with.
const (
	sharedNamespace = "kube-system"
	sharedPrefix    = "lbcf-"
)

// places are where a LoadBalancer of a name may be, in order.
func places(name, namespace string) []world.ID {
	out := []world.ID{{Namespace: namespace, Name: name}}
	if strings.HasPrefix(name, sharedPrefix) && namespace != sharedNamespace {
		out = append(out, world.ID{Namespace: sharedNamespace, Name: name})
	}
	return out
}

func (p *planner) useLoadBalancer(o *owner, name string) {
	l, held := p.lookUp(name, o.meta.Namespace)
	who := o.meta.ID.String()
	switch {
	case held:
		p.explain(o.kind, who, WaitsForEvidence, "LoadBalancer "+name+" is absent, and not certain to be gone")
	case l == nil:
		p.explain(o.kind, who, WaitsForLoadBalancer, "there is no LoadBalancer "+name)
	case l.going:
		p.explain(o.kind, who, WaitsForUsable, "LoadBalancer "+name+" is being deleted")
	case !l.admits(o.meta.Namespace):
		p.explain(o.kind, who, WaitsForScope, "LoadBalancer "+name+" is not for namespace "+o.meta.Namespace+": see its spec.scope")
	case !l.ready() && l.row != nil && l.row.Failing():
		p.explain(o.kind, who, WaitsForUsable, "LoadBalancer "+name+" cannot be created: see its Events")
	case !l.ready():
		p.explain(o.kind, who, WaitsForLoadBalancer, "LoadBalancer "+name+" is not created yet")
	default:
		o.addUse(use{name: name, row: l.row, attributes: l.attributes})
	}
}

func (p *planner) useEntry(o *owner, name string) {
	l := p.objectOf[fsm.BalancerID(o.id+"/"+name)]
	switch {
	case l.going:
	case !l.ready():
		p.explain(o.kind, o.meta.ID.String(), WaitsForLoadBalancer, "load balancer "+name+" is not created yet")
	default:
		o.addUse(use{name: name, row: l.row, attributes: l.row.Synced})
	}
}

func (o *owner) addUse(u use) {
	if !slices.ContainsFunc(o.uses, func(v use) bool { return v.row == u.row }) {
		o.uses = append(o.uses, u)
	}
}

// want is one backend that is expected on a load balancer now. Name gives that of its record; it is asked only where
// the binding is not known.
func (p *planner) want(o *owner, u *use, b fsm.Backend, address string, name func() string) {
	l := p.lineFor(o, u, b, address)
	if l == nil {
		id := world.ID{Namespace: o.meta.Namespace, Name: name()}
		if o.seen[id.Name] {
			return // a port or an address that is listed twice
		}
		if l = p.lineOf(id); l == nil || !l.fits(o, u, b) {
			o.seen[id.Name] = true
			o.expected++
			p.add(o, u, b, address, id)
			return
		}
	}
	if l.wanted || l.why != "" {
		return
	}
	o.expected++
	switch {
	case l.NodePort() != b.NodePort || l.Backend.Target != "" && l.Backend.Target != b.Target:
		l.why = "its address changed"
		return
	case l.leaving():
		p.explainBinding(l, WaitsForDeregister, "wanted again once it is off")
	}
	l.wanted = true
	o.wanted++
	if l.leaving() || l.forced || l.ended {
		return
	}
	if l.State == fsm.BindingDraining || !slices.Equal(l.Parameters, o.parameters) || !slices.Equal(l.Attributes, u.attributes) || l.Ensure != o.ensure {
		p.put(o, u, l.Backend, address, l.ID, "as its owner and its load balancer say")
	}
}

// NodePort is that of its backend.
func (l *line) NodePort() uint32 { return l.Backend.NodePort }

// fits tells whether the binding of a backend's name is that backend, taken over at a time when its pod was not there
// to tell its UID.
func (l *line) fits(o *owner, u *use, b fsm.Backend) bool {
	b.UID = ""
	return l.Owner == o.id && l.Backend.UID == "" && l.same(u.row.ID, b)
}

// add wants a backend that has no binding.
func (p *planner) add(o *owner, u *use, b fsm.Backend, address string, id world.ID) {
	taken, by := p.taken(id)
	if at := placeOf(by); taken && (at.kind != o.kind || at.id != o.meta.ID) {
		id.Name = Apart(id.Name, o.meta.UID)
		taken, _ = p.taken(id)
	}
	if taken {
		p.explainOne(o.kind, o.meta.ID.String(), WaitsForDeregister, "binding "+id.String()+": made anew once what has its name is off")
		return
	}
	p.claimed[id] = o.id
	p.put(o, u, b, address, fsm.BindingID(id.String()), "a backend that is ready")
}

// taken tells whether the name of a record is in use, and by whose backend.
func (p *planner) taken(id world.ID) (bool, string) {
	if l := p.lineOf(id); l != nil {
		return true, l.Owner
	}
	if r := p.strange[id]; r != nil {
		return true, ownerOf(r)
	}
	by, ok := p.claimed[id]
	return ok, by
}

func (p *planner) put(o *owner, u *use, b fsm.Backend, address string, id fsm.BindingID, why string) {
	if !p.recordsKnown() {
		p.explain(o.kind, o.meta.ID.String(), WaitsForAdoption, "nothing is registered before every BackendRecord is known")
		return
	}
	p.puts = append(p.puts, p.proposal(why, &fsm.PutBinding{
		ID: id, Balancer: u.row.ID, Owner: o.id, Address: address, Parameters: o.parameters, Backend: b, Attributes: u.attributes, Ensure: o.ensure,
	}))
}

// count gives the numbers of the status.
func (p *planner) count() {
	for _, o := range p.owners {
		p.out.Counts[o.id] = Counts{Backends: o.expected, Registered: int32(o.held.registered)}
	}
}
