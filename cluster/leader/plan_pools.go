// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// poolPlan is a pool as the record shall hold it, with what only the source knows.
type poolPlan struct {
	name       fsm.PoolName
	ranges     []fsm.Range
	autoAssign bool
	// Only a pool that a source shows gives out new addresses: the others' terms are not known.
	shown     bool
	avoidEnds bool
	drain     bool // it gives out nothing, and keeps what it gave
	priority  int
	terms     *world.Pool  // whom it is for; nil for a pool that no source shows
	next      []netip.Addr // per range, where the search for a free address goes on
	withheld  []withheld   // what it does not give out, since the cluster itself has addresses of it
}

func (pool *poolPlan) contains(a netip.Addr) bool {
	return slices.ContainsFunc(pool.ranges, func(r fsm.Range) bool { return r.Contains(a) })
}

// reserved tells whether a pool is for some Services only.
func (pool *poolPlan) reserved() bool {
	t := pool.terms
	return t != nil && len(t.Namespaces)+len(t.NamespaceSelectors)+len(t.ServiceSelectors) > 0
}

// serves tells whether a pool is for a Service: by its namespace, and by its labels.
func (p *planner) serves(pool *poolPlan, s *world.Service) bool {
	return p.servesNamespace(pool, s.Namespace) && (len(pool.terms.ServiceSelectors) == 0 || world.AnyMatches(pool.terms.ServiceSelectors, s.Labels))
}

// servesNamespace tells whether a pool that a source shows is for a namespace. One whose labels nobody knows has none that a
// selector could choose it by.
func (p *planner) servesNamespace(pool *poolPlan, name string) bool {
	t := pool.terms
	if len(t.Namespaces)+len(t.NamespaceSelectors) == 0 || slices.Contains(t.Namespaces, name) {
		return true
	}
	n := p.seen.namespaces[name]
	return n != nil && world.AnyMatches(t.NamespaceSelectors, n.Labels)
}

// planPools brings the record's pools to what the sources show. Of two pools with an address in common the one that
// was not edited counts, then the one that the record holds already, then the one whose name comes first.
func (p *planner) planPools() {
	have := map[fsm.PoolName]*fsm.Pool{}
	for _, h := range fsm.List[*fsm.Pool](p.in.Record, fsm.TablePools) {
		have[h.Name] = h
	}
	shown := map[fsm.PoolName]*world.Pool{}
	for _, w := range p.seen.pools {
		shown[fsm.PoolName(w.Name)] = w
	}
	removed := p.keepAbsentPools(have, shown)
	plans := map[fsm.PoolName]*poolPlan{}
	unchanged := func(name fsm.PoolName) bool {
		return have[name] != nil && slices.Equal(have[name].Ranges, plans[name].ranges)
	}
	for name, w := range shown {
		plans[name] = newPool(w)
	}
	names := sortedKeys(shown)
	slices.SortStableFunc(names, func(a, b fsm.PoolName) int {
		return cmp.Or(firstIf(unchanged(a), unchanged(b)), firstIf(have[a] != nil, have[b] != nil))
	})
	var changed []fsm.Pool
	for _, name := range names {
		next := plans[name]
		if len(next.ranges) == 0 {
			p.explain(fsm.TablePools, string(name), WaitsForMend, "it has no usable addresses; list at least one range")
			continue
		}
		if other := p.overlapping(next); other != nil {
			p.explain(fsm.TablePools, string(name), WaitsForOverlap,
				"it has addresses of pool "+string(other.name)+"; let every address be in one pool only")
			h := have[name]
			if h == nil {
				continue
			}
			if next.ranges = h.Ranges; p.overlapping(next) != nil {
				removed = append(removed, name)
				continue
			}
			p.pools = append(p.pools, next) // it stays as it was
			continue
		}
		p.pools = append(p.pools, next)
		if rec := next.record(p.referable(objectRef(&shown[name].Meta, shown[name].Homed)), shown[name].Version); have[name] == nil || !samePool(have[name], &rec) {
			changed = append(changed, rec)
		}
	}
	p.emitPools(have, removed, changed)
	p.explainDrains()
	slices.SortStableFunc(p.pools, func(a, b *poolPlan) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), firstIf(a.reserved(), b.reserved()), strings.Compare(string(a.name), string(b.name)))
	})
}

// keepAbsentPools keeps the pools that are absent without evidence, and names the others.
func (p *planner) keepAbsentPools(have map[fsm.PoolName]*fsm.Pool, shown map[fsm.PoolName]*world.Pool) (removed []fsm.PoolName) {
	for _, name := range sortedKeys(have) {
		if shown[name] != nil {
			continue
		}
		if p.seen.mayRemove(world.KindPool, world.ID{Name: string(name)}) {
			removed = append(removed, name)
			continue
		}
		h := have[name]
		p.pools = append(p.pools, &poolPlan{name: name, ranges: h.Ranges, autoAssign: h.AutoAssign, priority: math.MaxInt})
		p.explainKeptAsWas(fsm.TablePools, world.KindPool, string(name), h.Object)
	}
	return removed
}

// explainDrains tells how far pools are that are being emptied.
func (p *planner) explainDrains() {
	for _, pool := range p.pools {
		if !pool.drain {
			continue
		}
		var left []string
		for _, h := range p.allocations {
			if h.Pool() == pool.name {
				left = append(left, h.Address.String()+" of Service "+string(h.Service))
			}
		}
		slices.Sort(left)
		switch n := len(left); {
		case n > drainNames:
			p.explain(fsm.TablePools, string(pool.name), WaitsForDrain, fmt.Sprintf("it is being emptied; %d addresses are left, the first are %s; "+
				"create these Services anew, or name other addresses in them", n, strings.Join(left[:drainNames], ", ")))
		case n > 0:
			p.explain(fsm.TablePools, string(pool.name), WaitsForDrain, "it is being emptied; what is left: "+strings.Join(left, ", ")+
				"; create these Services anew, or name other addresses in them")
		}
	}
}

// drainNames is how many addresses of a pool are named that is being emptied: the text is for a person to read.
const drainNames = 5

func (p *planner) overlapping(next *poolPlan) *poolPlan {
	for _, other := range p.pools {
		if rangesOverlap(other.ranges, next.ranges) {
			return other
		}
	}
	return nil
}

// emitPools removes before it adds. A pool whose old addresses are another's new ones is taken off first and put
// back as it shall be; addresses that were given out stay with their owners all the while.
func (p *planner) emitPools(have map[fsm.PoolName]*fsm.Pool, removed []fsm.PoolName, changed []fsm.Pool) {
	for _, name := range removed {
		p.propose("IPAddressPool is gone or in conflict", &fsm.DeletePool{Name: name})
	}
	for i := range changed {
		h := have[changed[i].Name]
		inTheWay := func(o fsm.Pool) bool { return o.Name != h.Name && rangesOverlap(o.Ranges, h.Ranges) }
		if h != nil && slices.ContainsFunc(changed, inTheWay) {
			p.propose("IPAddressPool makes way", &fsm.DeletePool{Name: h.Name})
		}
	}
	for i := range changed {
		p.propose("IPAddressPool "+string(changed[i].Name), &fsm.PutPool{Pool: changed[i]})
	}
}

func newPool(w *world.Pool) *poolPlan {
	pool := &poolPlan{
		name: fsm.PoolName(w.Name), autoAssign: w.AutoAssign, shown: true, avoidEnds: w.AvoidBuggyIPs, drain: w.Drain,
		priority: w.Priority, terms: w,
	}
	if pool.priority == 0 {
		pool.priority = math.MaxInt // asked for nothing: last
	}
	for _, r := range w.Ranges {
		next := fsm.Range{From: r.From, To: r.To}
		ok := r.From.IsValid() && r.From.BitLen() == r.To.BitLen() && r.From.Compare(r.To) <= 0
		if ok && !rangesOverlap(pool.ranges, []fsm.Range{next}) {
			pool.ranges = append(pool.ranges, next)
		}
	}
	return pool
}

func (pool *poolPlan) record(from fsm.ObjectRef, version uint64) fsm.Pool {
	return fsm.Pool{Name: pool.name, Ranges: pool.ranges, AutoAssign: pool.autoAssign, Object: from, Version: version}
}

// lowestFree gives the lowest address of a family that is not taken. What is taken stays so within a plan, so that
// the search never starts over.
func (pool *poolPlan) lowestFree(family world.Family, taken func(netip.Addr) bool) (netip.Addr, bool) {
	if pool.next == nil {
		for _, r := range pool.ranges {
			pool.next = append(pool.next, r.From)
		}
	}
	for i, r := range pool.ranges {
		if world.FamilyOf(r.From) != family {
			continue
		}
		for a := pool.next[i]; a.IsValid() && r.Contains(a); a = a.Next() {
			pool.next[i] = a
			if w := pool.withholds(a); w != nil {
				a = world.RangeOf(w.prefix).To
				continue
			}
			if !taken(a) && !pool.avoids(a) {
				return a, true
			}
		}
		pool.next[i] = r.To
	}
	return netip.Addr{}, false
}

// avoids tells whether a pool keeps an address back. Who has it already, by the record or as users know it, keeps it.
func (pool *poolPlan) avoids(a netip.Addr) bool { return pool.avoidEnds && endsBadly(a) }

// endsBadly tells of addresses that old equipment takes for a network's or a broadcast's.
func endsBadly(a netip.Addr) bool {
	if !a.Is4() {
		return false
	}
	last := a.As4()[3]
	return last == 0 || last == 255
}

func samePool(a, b *fsm.Pool) bool {
	return slices.Equal(a.Ranges, b.Ranges) && a.AutoAssign == b.AutoAssign && a.Object == b.Object
}

func rangesOverlap(a, b []fsm.Range) bool {
	for _, x := range a {
		for _, y := range b {
			if x.From.BitLen() == y.From.BitLen() && x.From.Compare(y.To) <= 0 && y.From.Compare(x.To) <= 0 {
				return true
			}
		}
	}
	return false
}
