// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// planAdvertisements keeps how addresses are announced.
func (p *planner) planAdvertisements() {
	have := map[fsm.AdvertisementName]*fsm.Advertisement{}
	for _, h := range fsm.List[*fsm.Advertisement](p.in.Record, fsm.TableAdvertisements) {
		if h.Name != fsm.Unadvertised {
			have[h.Name] = h
		}
	}
	var wanted []fsm.Advertisement
	for _, w := range p.seen.advertisements {
		name := fsm.AdvertisementName(w.Name)
		h := have[name]
		delete(have, name)
		next, ok, fault := p.advertisementOf(w, h)
		if ok {
			wanted = append(wanted, next)
		}
		if ok && fault != "" {
			inForce := h != nil && !h.Silent()
			if p.explainFault(w.Name, inForce, fault); inForce {
				continue
			}
			sentToNobody(&next)
		}
		switch {
		case !ok && h != nil:
			p.propose("BGPAdvertisement chooses no pool any more", &fsm.DeleteAdvertisement{Name: name})
		case ok && next.Terms.OnlyServices && (h == nil || !h.Terms.OnlyServices):
			p.selecting = append(p.selecting, p.proposal("BGPAdvertisement "+w.Name, &fsm.PutAdvertisement{Advertisement: next}))
		case ok && (h == nil || !sameAdvertisement(h, &next)):
			p.propose("BGPAdvertisement "+w.Name, &fsm.PutAdvertisement{Advertisement: next})
		}
	}
	for _, name := range sortedKeys(have) {
		if !p.seen.mayRemove(world.KindAdvertisement, world.ID{Name: string(name)}) {
			wanted = append(wanted, *have[name])
			p.explainKeptAsWas(fsm.TableAdvertisements, world.KindAdvertisement, string(name), have[name].Object)
			continue
		}
		p.propose("BGPAdvertisement is gone", &fsm.DeleteAdvertisement{Name: name})
	}
	p.planUnadvertised(wanted)
	p.explainAggregates()
}

// sentToNobody makes an advertisement one that has its addresses sent to nobody. Others about them go on.
func sentToNobody(ad *fsm.Advertisement) {
	ad.Peers, ad.Communities, ad.LocalPref = []fsm.PeerName{fsm.Nobody}, nil, 0
	ad.Terms.LargeCommunities, ad.Terms.MED, ad.Terms.Weighted = nil, 0, false
}

// advertisementOf says what the record shall hold of an advertisement, of which it holds h; false if it is about no address.
// The fault is what of it cannot be used, such as a community that nobody knows; empty for nothing.
func (p *planner) advertisementOf(w *world.Advertisement, h *fsm.Advertisement) (next fsm.Advertisement, ok bool, fault string) {
	next = fsm.Advertisement{Name: fsm.AdvertisementName(w.Name), LocalPref: w.LocalPref, Version: w.Version, Object: p.referable(objectRef(&w.Meta, w.Homed))}
	if next.Pools, ok = p.poolsOf(w, h); !ok {
		p.explain(fsm.TableAdvertisements, w.Name, WaitsForMend,
			"no pool has labels that spec.ipAddressPoolSelectors choose: it is about no address; label a pool, or name pools in spec.ipAddressPools")
		return next, false, ""
	}
	for _, peer := range w.Peers {
		next.Peers = append(next.Peers, fsm.PeerName(peer))
		if _, there := fsm.Get[*fsm.Peer](p.in.Record, fsm.TablePeers, peer); !there {
			p.explain(fsm.TableAdvertisements, w.Name, WaitsForMend, "there is no BGPPeer "+peer+", which spec.peers names; nothing is announced to it")
		}
	}
	next.Terms.MED = w.MED
	if fault = w.Fault; fault == "" {
		fault = p.communitiesOf(w, &next)
	}
	if len(w.NodeSelectors) > 0 {
		var had []fsm.NodeID
		if h != nil {
			had = h.Terms.Nodes
		}
		next.Terms.OnlyNodes, next.Terms.Nodes = true, p.nodesOf(w.NodeSelectors, had)
		if len(next.Terms.Nodes) == 0 {
			p.explain(fsm.TableAdvertisements, w.Name, WaitsForMend, "no node has labels that spec.nodeSelectors choose: it announces nothing; label a node")
		}
	}
	next.Terms.OnlyServices, next.Terms.Weighted = len(w.ServiceSelectors) > 0, w.Weighted
	next.Terms.AggregateV4 = p.aggregable(w.Name, "spec.aggregationLength", w.AggregationLength%32, 32, next.Pools)
	next.Terms.AggregateV6 = p.aggregable(w.Name, "spec.aggregationLengthV6", w.AggregationLengthV6%128, 128, next.Pools)
	if p.format < formatBGP && !next.Terms.IsZero() {
		next.Terms = fsm.AdvertisementTerms{}
		p.explain(fsm.TableAdvertisements, w.Name, WaitsForMend,
			"large communities, MED, weights, aggregates and selectors of nodes and Services need format 2 of the record: `fairlead raft finalize`; it is announced without")
	}
	return next, true, fault
}

// poolsOf names the pools that an advertisement is about, none for all; false if its selectors choose none. One that was chosen
// and is not shown stays so while its absence is no evidence, and as long as Services have addresses of it.
func (p *planner) poolsOf(w *world.Advertisement, h *fsm.Advertisement) (out []fsm.PoolName, ok bool) {
	for _, pool := range w.Pools {
		out = append(out, fsm.PoolName(pool))
	}
	p.explainPools(fsm.TableAdvertisements, w.Name, w.Pools)
	if len(w.PoolSelectors) == 0 {
		return out, true
	}
	shown := map[fsm.PoolName]bool{}
	for _, pool := range p.seen.pools {
		name := fsm.PoolName(pool.Name)
		shown[name] = true
		if world.AnyMatches(w.PoolSelectors, pool.Labels) {
			out = append(out, name)
		}
	}
	if h != nil {
		for _, name := range h.Pools {
			gone := !shown[name] && p.seen.mayRemove(world.KindPool, world.ID{Name: string(name)})
			if !shown[name] && !gone || gone && slices.Contains(p.survived(), name) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out, len(out) > 0
}

// explainPools tells of pools that an advertisement names and that are not there: with a name that is misspelt, addresses go on as if
// the advertisement were not about them.
func (p *planner) explainPools(table fsm.Table, advertisement string, names []string) {
	for _, name := range names {
		_, unusable := p.seen.unusable[objectName{world.KindPool, world.ID{Name: name}}] // that is told of the pool
		if !unusable && !slices.ContainsFunc(p.pools, func(pool *poolPlan) bool { return string(pool.name) == name }) &&
			!slices.ContainsFunc(p.seen.pools, func(pool *world.Pool) bool { return pool.Name == name }) {
			p.explain(table, advertisement, WaitsForMend, "there is no IPAddressPool "+name+", which spec.ipAddressPools names; check its spelling, or add it")
		}
	}
}

// explainFault tells of an advertisement with a mistake. It is not put in force in part: what switches make of a path may hang on the very
// community that lacks, and without it its addresses would go to peers that it leaves out.
func (p *planner) explainFault(name string, inForce bool, fault string) {
	until := "until then nobody is sent an address under it"
	if inForce {
		until = "until then the advertisement stays as it was"
	}
	p.explain(fsm.TableAdvertisements, name, WaitsForMend, fault+"; "+until)
}

// communitiesOf gives an advertisement its communities, and what is wrong with the first that nobody knows.
func (p *planner) communitiesOf(w *world.Advertisement, next *fsm.Advertisement) (fault string) {
	const mend = ", and no Community explains it; add it to one, or write it as AS:value"
	for _, text := range w.Communities {
		value := p.seen.resolve(text)
		if world.IsLargeCommunity(value) {
			c, err := world.ParseLargeCommunity(value)
			if err != nil {
				return err.Error() + mend
			}
			next.Terms.LargeCommunities = append(next.Terms.LargeCommunities, fsm.LargeCommunity(c))
			continue
		}
		c, err := world.ParseCommunity(value)
		if err != nil {
			return err.Error() + mend
		}
		next.Communities = append(next.Communities, c)
	}
	slices.Sort(next.Communities)
	return ""
}

// nodesOf lists the nodes that selectors choose. One of those that they chose before and that is not shown stays so while its
// absence is no evidence.
func (p *planner) nodesOf(selectors []world.Selector, had []fsm.NodeID) (out []fsm.NodeID) {
	shown := map[fsm.NodeID]bool{}
	for _, n := range p.seen.nodes {
		id := fsm.NodeID(n.Name)
		shown[id] = true
		if world.AnyMatches(selectors, n.Labels) {
			out = append(out, id)
		}
	}
	for _, id := range had {
		if !shown[id] && !p.seen.mayRemove(world.KindNode, world.ID{Name: string(id)}) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// advertisementsOf names the advertisements that choose a Service by its labels, in order. One that the record has as choosing, and
// that is gone or chooses by labels no more, stays until the record has it otherwise: meanwhile it is about no others.
func (p *planner) advertisementsOf(w *world.Service, have *fsm.Service) (out []fsm.AdvertisementName) {
	choosing := map[fsm.AdvertisementName]bool{}
	for _, ad := range p.seen.advertisements {
		name := fsm.AdvertisementName(ad.Name)
		choosing[name] = len(ad.ServiceSelectors) > 0
		if choosing[name] && world.AnyMatches(ad.ServiceSelectors, w.Labels) {
			out = append(out, name)
		}
	}
	if have != nil {
		for _, name := range have.Advertisements() {
			ad, ok := fsm.Get[*fsm.Advertisement](p.in.Record, fsm.TableAdvertisements, string(name))
			if ok && ad.Terms.OnlyServices && !choosing[name] {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// advertised tells whether a node may be a next hop of an address: it may unless all advertisements about the address choose
// others. They count once the record has them, so that members announce by the same ones.
func (p *planner) advertised(a netip.Addr, node fsm.NodeID) bool {
	if p.advertisements == nil {
		p.advertisements = append([]*fsm.Advertisement{}, fsm.List[*fsm.Advertisement](p.in.Record, fsm.TableAdvertisements)...)
	}
	about := false
	for _, ad := range p.advertisements {
		// Without another one a fallback admits each node, as none at all does.
		if ad.Terms.Fallback || !slices.ContainsFunc(p.claims[a], func(c *claim) bool {
			return ad.OfPool(c.pool) && ad.Chooses(c.owner.announcedBy())
		}) {
			continue
		}
		if ad.Admits(node) {
			return true
		}
		about = true
	}
	return !about
}

func sameAdvertisement(a, b *fsm.Advertisement) bool {
	return slices.Equal(a.Pools, b.Pools) && slices.Equal(a.Peers, b.Peers) && slices.Equal(a.Communities, b.Communities) &&
		a.LocalPref == b.LocalPref && slices.Equal(a.Terms.LargeCommunities, b.Terms.LargeCommunities) && a.Terms.MED == b.Terms.MED &&
		a.Terms.OnlyNodes == b.Terms.OnlyNodes && a.Terms.OnlyServices == b.Terms.OnlyServices && a.Terms.Weighted == b.Terms.Weighted && slices.Equal(a.Terms.Nodes, b.Terms.Nodes) &&
		a.Terms.AggregateV4 == b.Terms.AggregateV4 && a.Terms.AggregateV6 == b.Terms.AggregateV6 && a.Terms.Fallback == b.Terms.Fallback && a.Object == b.Object
}
