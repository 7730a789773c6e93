// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

func unKVs(list []fsm.KV) []world.KV {
	var out []world.KV
	for _, kv := range list {
		out = append(out, world.KV(kv))
	}
	return out
}

// asLeftByLBCF writes what the record holds as the objects of another controller, and forgets the record.
func (d *drawn) asLeftByLBCF() {
	v := d.record.state.Read()
	info := map[fsm.BalancerID]*fsm.LoadBalancer{}
	for _, l := range fsm.List[*fsm.LoadBalancer](v, fsm.TableBalancers) {
		info[l.ID] = l
	}
	status := func(id fsm.BalancerID, entry string) world.BalancerStatus {
		s := world.BalancerStatus{Name: entry}
		if l := info[id]; l != nil && len(l.Info) > 0 {
			s.Info, s.Created, s.Synced, s.Attributes, s.DriverID = unKVs(l.Info), true, true, unKVs(l.Synced), splitID(l.Driver)
		}
		return s
	}
	for _, lb := range d.lbs {
		lb.Status = status(fsm.BalancerID(balancerID(world.KindLoadBalancer, &lb.Meta)), "")
		lb.Status.DriverID = world.ID{}
	}
	for _, b := range d.binds {
		b.Statuses = nil
		for _, e := range b.Entries {
			b.Statuses = append(b.Statuses, status(fsm.BalancerID(balancerID(world.KindBind, &b.Meta)+"/"+e.Name), e.Name))
		}
	}
	for _, b := range fsm.List[*fsm.Binding](v, fsm.TableBindings) {
		d.records = append(d.records, leftRecord(b, info[b.Balancer]))
	}
	d.record = newRecord(d.t)
}

func leftRecord(b *fsm.Binding, l *fsm.LoadBalancer) *world.BackendRecord {
	owner, lb := placeOf(b.Owner), placeOf(string(b.Balancer))
	r := &world.BackendRecord{
		Meta:      world.Meta{ID: splitID(string(b.ID)), UID: b.UID, Deleting: b.State == fsm.BindingDeregistering},
		OwnerKind: string(owner.kind), Owner: owner.id.Name, OwnerUID: owner.uid, LoadBalancer: lb.id.Name, DriverID: splitID(l.Driver),
		Info: unKVs(l.Info), Attributes: unKVs(b.Attributes), Parameters: unKVs(b.Parameters), Ensure: world.EnsurePolicy(b.Ensure),
		Kind: b.Backend.Kind, Name: b.Backend.Name, Port: world.BackendPort{Port: uint16(b.Backend.Port), Protocol: b.Backend.Protocol},
		NodePort: uint16(b.Backend.NodePort), Node: b.Backend.Node, Finalizer: true, Address: b.Address, Injected: unKVs(b.Returned), Registered: b.Registered,
	}
	if lb.kind == world.KindBind {
		r.LoadBalancer = lb.entry
	}
	if r.Kind == kindStatic {
		r.Static = b.Address
	}
	return r
}

// Section 13, INV-6: what another controller left is taken over as it is. Nothing of it is registered, ensured or
// created anew, in whatever order the kinds become known, for the first time or after a while without them; what went meanwhile is deregistered, and nothing else.
func TestPropertyTakeoverCallsNoDriverForWhatIsThere(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		d := newDrawn(t)
		for _, name := range drawnNames {
			if rapid.IntRange(0, 9).Draw(t, "there") > 0 {
				d.see(name, d.line(t, name))
			}
		}
		d.record.settle(d.input())
		for d.record.work() {
			d.record.settle(d.input())
		}
		d.asLeftByLBCF()
		things := map[string]bool{} // every record and every address; fewer where records share one
		for _, r := range d.records {
			things[r.ID.String()] = true
			things[string(fsm.IdentityOf(r.DriverID.String(), kvs(r.Info)))+" "+r.Address] = true
		}
		for _, name := range []string{"pod shop/p0", "pod shop/p1", "group shop/g0", "node n0", "lb shop/edge"} {
			if kind, rest, _ := strings.Cut(name, " "); rapid.IntRange(0, 3).Draw(t, "went") == 0 {
				d.remove(kindOf[kind], splitName(rest))
			}
		}
		e := d.expect()
		kinds := rapid.Permutation(world.Kinds()).Draw(t, "kinds")
		for _, k := range kinds {
			d.unlisted[k] = true
		}
		if rapid.Bool().Draw(t, "cut off") { // since before the other controller had made its records
			d.unlisted[world.KindBackendRecord], d.away[world.KindBackendRecord] = false, true
		}
		for _, k := range kinds {
			d.unlisted[k], d.away[k] = false, false
			d.partly(func() { d.record.settle(d.input()) })
			d.record.work()
		}
		for d.record.work() {
			d.record.settle(d.input())
		}
		d.record.settle(d.input())
		shared := len(things) < 2*len(d.records)
		for _, call := range d.record.calls {
			if shared && strings.HasPrefix(call, "ensure") {
				continue // one of two that want the same address left: the other is ensured instead of a deregistration (lbcf §5.6)
			}
			if !strings.HasPrefix(call, "deregister ") && !strings.HasPrefix(call, "delete-balancer ") {
				t.Fatalf("called: %v", d.record.calls)
			}
		}
		for _, r := range d.records {
			b, there := fsm.Get[*fsm.Binding](d.record.state.Read(), fsm.TableBindings, r.ID.String())
			switch {
			case !there && wanted(e, r, d):
				t.Fatalf("%s %s is gone: %v", r.Kind, r.Name, d.record.calls)
			case there && (b.UID != r.UID || b.State != fsm.BindingBound):
				t.Fatalf("%s is %s under %s", b.ID, b.State, b.UID)
			}
		}
	})
}

// partly hides the objects of kinds that were not listed yet.
func (d *drawn) partly(do func()) {
	whole := *d.cluster
	if d.unlisted[world.KindPod] {
		d.pods = nil
	}
	if d.unlisted[world.KindLoadBalancer] {
		d.lbs = nil
	}
	if d.unlisted[world.KindBackendGroup] {
		d.groups = nil
	}
	if d.unlisted[world.KindBind] {
		d.binds = nil
	}
	if d.unlisted[world.KindNode] {
		d.nodes = nil
	}
	if d.unlisted[world.KindService] {
		d.services = nil
	}
	if d.unlisted[world.KindDriver] {
		d.drivers = nil
	}
	if d.unlisted[world.KindBackendRecord] || d.away[world.KindBackendRecord] {
		d.records = nil
	}
	do()
	record := d.record
	*d.cluster = whole
	d.record = record
}

// wanted tells whether the model expects the backend of a record on a load balancer that is still there.
func wanted(e expectation, r *world.BackendRecord, d *drawn) bool {
	for what := range e.expected {
		owner, rest, _ := strings.Cut(what, " on ")
		id, backend, _ := strings.Cut(rest, ": ")
		at, on := placeOf(owner), placeOf(id)
		name := on.id.Name
		if on.entry != "" {
			name = on.entry
		}
		if at.uid != r.OwnerUID || name != r.LoadBalancer || at.id.Name != r.Owner {
			continue
		}
		lb, _ := fsm.Get[*fsm.LoadBalancer](d.record.state.Read(), fsm.TableBalancers, id)
		if lb == nil || lb.Identity != fsm.IdentityOf(r.DriverID.String(), kvs(r.Info)) {
			continue
		}
		f := strings.Fields(backend)
		if r.Kind == kindStatic && f[0] == kindStatic && f[len(f)-1] == r.Static {
			return true
		}
		if slices.Contains(f, r.Name) && strings.Contains(backend, " "+number(r.Port.Port)+"/"+r.Port.Protocol+" "+r.Node+":") {
			return true
		}
	}
	return false
}
