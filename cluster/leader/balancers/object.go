// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// object is something that means an outside load balancer: a LoadBalancer, or an entry of a Bind.
type object struct {
	id     fsm.BalancerID
	kind   world.Kind
	meta   *world.Meta
	uid    string // as drivers are told it
	driver string
	// driverID is the driver's place.
	driverID   world.ID
	spec       []fsm.KV
	attributes []fsm.KV
	ensure     fsm.EnsurePolicy
	scope      []string
	status     world.BalancerStatus
	going      bool // unwanted: it is being deleted, or no longer in its Bind
	finalizer  bool
	row        *fsm.LoadBalancer // nil for none
}

func (o *object) name() string {
	if o.kind == world.KindBind {
		return o.meta.ID.String() + "/" + o.status.Name
	}
	return o.meta.ID.String()
}

// admits tells whether backends of a namespace may be on it (lbcf §1.4). Its own namespace is nothing special once
// it has a scope.
func (o *object) admits(namespace string) bool {
	if len(o.scope) == 0 {
		return o.meta.Namespace == namespace
	}
	return slices.Contains(o.scope, "*") || slices.Contains(o.scope, namespace)
}

// ready tells whether it can have backends.
func (o *object) ready() bool { return !o.going && o.row != nil && o.row.State == fsm.BalancerReady }

func balancerID(kind world.Kind, m *world.Meta) string {
	return string(kind) + "/" + m.Namespace + "/" + m.Name + "/" + m.UID
}

// place is a BalancerID or an owner, taken apart.
type place struct {
	kind  world.Kind
	id    world.ID
	uid   string
	entry string
}

func placeOf(text string) place {
	f := strings.SplitN(text, "/", 5)
	for len(f) < 5 {
		f = append(f, "")
	}
	return place{kind: world.Kind(f[0]), id: world.ID{Namespace: f[1], Name: f[2]}, uid: f[3], entry: f[4]}
}

// gatherObjects lists everything that means a load balancer, and the rows of the record.
func (p *planner) gatherObjects() {
	for _, row := range fsm.List[*fsm.LoadBalancer](p.in.Record, fsm.TableBalancers) {
		p.rows[row.ID] = row
		if at := placeOf(string(row.ID)); at.kind == world.KindLoadBalancer {
			p.recorded[at.id] = append(p.recorded[at.id], row)
		}
	}
	for _, l := range p.in.LoadBalancers {
		o := &object{
			id: fsm.BalancerID(balancerID(world.KindLoadBalancer, &l.Meta)), kind: world.KindLoadBalancer, meta: &l.Meta, uid: l.UID,
			driver: l.DriverID.String(), driverID: l.DriverID, spec: kvs(l.Spec), attributes: kvs(l.Attributes), ensure: fsm.EnsurePolicy(l.Ensure),
			scope: l.Scope, status: l.Status, going: l.Deleting, finalizer: l.Finalizer,
		}
		p.addObject(o)
		p.named[l.ID] = o
	}
	for _, b := range p.in.Binds {
		p.gatherEntries(b)
	}
}

// gatherEntries lists the load balancers of a Bind: those that it asks for, and those of its status that it no longer
// does.
func (p *planner) gatherEntries(b *world.Bind) {
	prefix := balancerID(world.KindBind, &b.Meta) + "/"
	asked := map[string]bool{}
	for _, e := range b.Entries {
		if asked[e.Name] {
			continue
		}
		asked[e.Name] = true
		o := &object{
			id: fsm.BalancerID(prefix + e.Name), kind: world.KindBind, meta: &b.Meta, uid: b.UID + "-" + e.Name,
			driver: e.DriverID.String(), driverID: e.DriverID, spec: kvs(e.Spec), attributes: kvs(e.Attributes),
			status: world.BalancerStatus{Name: e.Name}, going: b.Deleting, finalizer: b.Finalizer,
		}
		if at := slices.IndexFunc(b.Statuses, func(s world.BalancerStatus) bool { return s.Name == e.Name }); at >= 0 {
			o.status = b.Statuses[at]
		}
		p.addObject(o)
	}
	for _, s := range b.Statuses {
		if asked[s.Name] {
			continue
		}
		asked[s.Name] = true
		p.addObject(&object{
			id: fsm.BalancerID(prefix + s.Name), kind: world.KindBind, meta: &b.Meta, uid: b.UID + "-" + s.Name,
			driver: s.DriverID.String(), driverID: s.DriverID, attributes: kvs(s.Attributes), status: s, going: true, finalizer: b.Finalizer,
		})
	}
}

func (p *planner) addObject(o *object) {
	o.row = p.rows[o.id]
	p.objects = append(p.objects, o)
	p.objectOf[o.id] = o
}

// planBalancers wants what the objects want. What goes is seen to by endBalancers.
func (p *planner) planBalancers() {
	p.gatherObjects()
	for _, o := range p.objects {
		switch {
		case o.row == nil:
			p.addBalancer(o)
		case !o.going:
			p.changeBalancer(o)
		}
	}
}

// addBalancer takes over what somebody else created, and has the driver create anything else.
func (p *planner) addBalancer(o *object) {
	c := &fsm.PutLoadBalancer{
		ID: o.id, Driver: o.driver, Attributes: o.attributes, Spec: o.spec, UID: o.uid, Ensure: o.ensure,
	}
	created := o.status.Created && len(o.status.Info) > 0 && (o.driverID.Name != "" || o.status.DriverID.Name != "")
	_, ended := fsm.Get[*fsm.Grave](p.in.Record, fsm.TableGraves, string(fsm.TableBalancers)+"/"+string(o.id))
	switch {
	case created && (!o.going || o.finalizer && !ended):
		c.Info, c.Synced = kvs(o.status.Info), o.status.Synced
		if o.status.DriverID.Name != "" {
			c.Driver = o.status.DriverID.String()
		}
		if o.kind == world.KindBind {
			// A Bind says what was confirmed. What it asks for by now comes with the next plan, and is ensured then.
			c.Attributes, c.Synced = kvs(o.status.Attributes), true
		}
		p.propose("created already, as its status says", c)
	case o.going:
	case o.driverID.Name == "" || !p.callable(o.driverID):
		p.explain(o.kind, o.name(), WaitsForDriver, "there is no LoadBalancerDriver "+o.driver)
	default:
		p.propose("its object asks for it", c)
	}
}

// changeBalancer has the driver told what changed. Driver and spec of a load balancer stay as they were when it was
// created: another one is another object (lbcf §2.5).
func (p *planner) changeBalancer(o *object) {
	row := o.row
	if row.State == fsm.BalancerDeleting {
		p.explain(o.kind, o.name(), WaitsForDeregister, "wanted again, and created again once it is deleted")
		return
	}
	if row.Driver != o.driver || !slices.Equal(row.Spec, o.spec) {
		if !row.Asked && !p.quarantined {
			p.propose("asked for anew before its driver heard of it", &fsm.DeleteLoadBalancer{ID: o.id})
			return
		}
		p.explain(o.kind, o.name(), WaitsForMend,
			"driver and spec of a load balancer cannot change: it stays as it was created; ask for another one under another name")
	}
	if !slices.Equal(row.Attributes, o.attributes) || row.Ensure != o.ensure || row.UID != o.uid {
		p.propose("as its object says", &fsm.PutLoadBalancer{
			ID: o.id, Driver: row.Driver, Attributes: o.attributes, Spec: row.Spec, UID: o.uid, Ensure: o.ensure,
		})
	}
}

// endBalancers has those deleted that nobody wants any more. Their bindings were removed before: the record lets the
// driver be asked only once they are off (INV-25).
func (p *planner) endBalancers() {
	for _, row := range fsm.List[*fsm.LoadBalancer](p.in.Record, fsm.TableBalancers) {
		why, forget := p.ending(row)
		if why == "" {
			continue
		}
		at := placeOf(string(row.ID))
		name := at.id.String()
		if at.entry != "" && at.kind == world.KindBind {
			name += "/" + at.entry
		}
		switch {
		case p.awaited[row.ID] || !p.recordsKnown():
			p.explain(at.kind, name, WaitsForAdoption, "it goes once the BackendRecords on it are taken over")
		case forget && p.index.used[row.ID] > 0:
			p.explain(at.kind, name, WaitsForBackends, "it goes once its backends are off")
		case forget:
			p.propose(why, &fsm.ForgetLoadBalancer{ID: row.ID})
		case row.State == fsm.BalancerDeleting:
		case p.quarantined:
			p.explainQuarantine(at.kind, name)
		default:
			p.propose(why, &fsm.DeleteLoadBalancer{ID: row.ID})
		}
	}
}

// ending tells why a load balancer is not wanted any more, empty if it is, and whether its driver is not to be asked.
func (p *planner) ending(row *fsm.LoadBalancer) (why string, forget bool) {
	if o := p.objectOf[row.ID]; o != nil {
		switch {
		case !o.going:
			return "", false
		case o.meta.Deleting && !o.finalizer:
			return "its object is being deleted without our finalizer", true
		case o.meta.Deleting:
			return "its object is being deleted", false
		}
		return "no longer in its Bind", false
	}
	at := placeOf(string(row.ID))
	switch at.kind {
	case orphanKind:
		return "its object is gone, and so are its backends", true
	case world.KindBind:
		b := find(p.in.Binds, at.id, func(b *world.Bind) world.ID { return b.ID })
		if b != nil && b.UID == at.uid {
			return "no longer in its Bind", false
		}
	}
	switch {
	case p.stripped[at.uid]:
		return "its object went although it had our finalizer: it was removed by hand", true
	case p.gone(at.kind, at.id, at.uid):
		return "its object is gone", false
	}
	p.explain(at.kind, at.id.String(), WaitsForEvidence, "absent, and not certain to be gone")
	return "", false
}

// present is the object that has a name now; nil for none.
func (p *planner) present(kind world.Kind, id world.ID) *world.Meta {
	switch kind {
	case world.KindLoadBalancer:
		if o := p.named[id]; o != nil {
			return o.meta
		}
	case world.KindBackendGroup:
		if g := find(p.in.BackendGroups, id, func(g *world.BackendGroup) world.ID { return g.ID }); g != nil {
			return &g.Meta
		}
	case world.KindBind:
		if b := find(p.in.Binds, id, func(b *world.Bind) world.ID { return b.ID }); b != nil {
			return &b.Meta
		}
	case world.KindPod:
		if o := find(p.in.Pods, id, func(o *world.Pod) world.ID { return o.ID }); o != nil {
			return &o.Meta
		}
	case world.KindService:
		if o := find(p.in.Services, id, func(o *world.Service) world.ID { return o.ID }); o != nil {
			return &o.Meta
		}
	case world.KindNode:
		if o := find(p.in.Nodes, id, func(o *world.Node) world.ID { return o.ID }); o != nil {
			return &o.Meta
		}
	}
	return nil
}
