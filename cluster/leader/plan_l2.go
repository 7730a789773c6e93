// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// formatL2 is the first format that knows fsm.L2Advertisement.
const formatL2 = 2

// planL2 keeps which addresses are answered for on segments. Selectors are resolved here: the record knows names only.
func (p *planner) planL2() {
	have := map[fsm.AdvertisementName]*fsm.L2Advertisement{}
	for _, h := range fsm.List[*fsm.L2Advertisement](p.in.Record, fsm.TableL2Advertisements) {
		have[h.Name] = h
	}
	for _, w := range p.seen.l2Advertisements {
		next := p.l2Of(w, have[fsm.AdvertisementName(w.Name)])
		if p.format < formatL2 {
			p.explain(fsm.TableL2Advertisements, w.Name, WaitsForMend, "the record's format is too old to hold it; run `fairlead raft finalize` once all members are of this release")
			continue
		}
		if h := have[next.Name]; h == nil || !sameL2(h, &next) {
			p.propose("L2Advertisement "+w.Name, &fsm.PutL2Advertisement{Advertisement: next})
		}
		delete(have, next.Name)
	}
	for _, name := range sortedKeys(have) {
		if !p.seen.mayRemove(world.KindL2Advert, world.ID{Name: string(name)}) {
			p.explainKeptAsWas(fsm.TableL2Advertisements, world.KindL2Advert, string(name), have[name].Object)
			continue
		}
		p.propose("L2Advertisement is gone", &fsm.DeleteL2Advertisement{Name: name})
	}
}

// l2Of resolves an advertisement. Pools and nodes that no source shows now stay what they were in it, nodes while their absence
// is no evidence.
func (p *planner) l2Of(w *world.L2Advertisement, old *fsm.L2Advertisement) fsm.L2Advertisement {
	next := fsm.L2Advertisement{
		Name: fsm.AdvertisementName(w.Name), EveryNode: len(w.NodeSelectors) == 0, Interfaces: w.Interfaces, Version: w.Version,
		Object: objectRef(&w.Meta, w.Homed),
	}
	p.explainPools(fsm.TableL2Advertisements, w.Name, w.Pools)
	shown := map[fsm.PoolName]*world.Pool{}
	for _, pool := range p.seen.pools {
		shown[fsm.PoolName(pool.Name)] = pool
	}
	for _, pool := range p.pools {
		seen := shown[pool.name]
		was := old != nil && slices.Contains(old.Pools, pool.name)
		if seen == nil && was || seen != nil && w.Selects(seen.Name, seen.Labels) {
			next.Pools = append(next.Pools, pool.name)
			if seen != nil && seen.KeepAnswering || seen == nil && slices.Contains(old.Kept, pool.name) {
				next.Kept = append(next.Kept, pool.name)
			}
		}
	}
	for _, name := range p.survived() {
		was := old != nil && slices.Contains(old.Pools, name)
		everyPool := len(w.Pools)+len(w.PoolSelectors) == 0
		if everyPool || slices.Contains(w.Pools, string(name)) || was && len(w.PoolSelectors) > 0 {
			next.Pools = append(next.Pools, name)
			if old != nil && slices.Contains(old.Kept, name) {
				next.Kept = append(next.Kept, name)
			}
		}
	}
	slices.Sort(next.Pools)
	slices.Sort(next.Kept)
	if len(next.Pools) == 0 && len(w.PoolSelectors) > 0 {
		p.explain(fsm.TableL2Advertisements, w.Name, WaitsForMend,
			"no pool has labels that spec.ipAddressPoolSelectors choose: it is about no address; label a pool, or name pools in spec.ipAddressPools")
	}
	if !next.EveryNode {
		var chosen []fsm.NodeID
		if old != nil {
			chosen = old.Nodes
		}
		if next.Nodes = p.nodesOf(w.NodeSelectors, chosen); len(next.Nodes) == 0 {
			p.explain(fsm.TableL2Advertisements, w.Name, WaitsForMend, "no node has labels that spec.nodeSelectors choose: nobody answers by it; label a node")
		}
	}
	return next
}

// survived names the pools that are gone and of which Services have addresses, in order: they keep them, and somebody has to answer there.
func (p *planner) survived() []fsm.PoolName {
	if p.survivors == nil {
		p.survivors = p.findSurvivors()
	}
	return p.survivors
}

// findSurvivors looks through all allocations, and gives a list that is not nil.
func (p *planner) findSurvivors() []fsm.PoolName {
	there, out := map[fsm.PoolName]bool{"": true}, []fsm.PoolName{}
	for _, pool := range p.pools {
		there[pool.name] = true
	}
	for _, al := range p.allocations {
		if !al.Releasing && !there[al.Pool()] {
			there[al.Pool()] = true
			out = append(out, al.Pool())
		}
	}
	slices.Sort(out)
	return out
}

// sameL2 compares all but the version.
func sameL2(a, b *fsm.L2Advertisement) bool {
	return slices.Equal(a.Pools, b.Pools) && slices.Equal(a.Kept, b.Kept) && slices.Equal(a.Nodes, b.Nodes) && a.EveryNode == b.EveryNode &&
		slices.Equal(a.Interfaces, b.Interfaces) && a.Object == b.Object
}
