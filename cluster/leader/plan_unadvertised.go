// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// planUnadvertised keeps which pools BGPPeers are sent addresses of only where one of some BGPAdvertisements is about them: those of
// MetalLB, which announces no others, from the first advertisement on: before it nobody has made a choice. It stays so without any, for a
// deletion shall send nothing to anybody. Before format 2 these, too, go to all.
func (p *planner) planUnadvertised(wanted []fsm.Advertisement) {
	h, _ := fsm.Get[*fsm.Advertisement](p.in.Record, fsm.TableAdvertisements, string(fsm.Unadvertised))
	next := fsm.Advertisement{Name: fsm.Unadvertised, Pools: p.onlyAdvertised(h), Terms: fsm.AdvertisementTerms{Fallback: true}}
	sentToNobody(&next)
	if len(next.Pools) == 0 && h != nil {
		next.Pools = []fsm.PoolName{fsm.NoPool} // pools that come once more are no more announced than before they went
	}
	switch {
	case len(next.Pools) > 0 && p.format >= formatBGP && (h == nil || !sameAdvertisement(h, &next)):
		p.propose("pools of MetalLB's", &fsm.PutAdvertisement{Advertisement: next})
	}
	for _, pool := range p.seen.pools {
		p.explainUnadvertised(pool, wanted)
	}
}

// onlyAdvertised lists the pools that are announced only where they are advertised. One that is not shown stays so while it is in the record,
// or Services have addresses of it.
func (p *planner) onlyAdvertised(h *fsm.Advertisement) (out []fsm.PoolName) {
	if !p.advertises() {
		return nil
	}
	shown := map[fsm.PoolName]bool{}
	for _, pool := range p.seen.pools {
		shown[fsm.PoolName(pool.Name)] = true
		if pool.OnlyAdvertised || p.awaitsAdvertisement(fsm.PoolName(pool.Name), h) {
			out = append(out, fsm.PoolName(pool.Name))
		}
	}
	if h != nil {
		for _, name := range h.Pools {
			if name != fsm.NoPool && !shown[name] && (p.hasPool(name) || slices.Contains(p.survived(), name)) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// awaitsAdvertisement tells of a pool that came beside a BGPAdvertisement that cannot be used: it may be the one about the pool, and leave most
// peers out. What was announced before goes on.
func (p *planner) awaitsAdvertisement(name fsm.PoolName, h *fsm.Advertisement) bool {
	if !p.seen.misadvertisedBGP {
		return false
	}
	_, before := fsm.Get[*fsm.Pool](p.in.Record, fsm.TablePools, string(name))
	return !before || h != nil && slices.Contains(h.Pools, name)
}

// advertises tells whether there is any advertisement, or the record has one: a BGPAdvertisement, an L2Advertisement or Unadvertised. One that
// cannot be used is there all the same: who wrote it chose that not all be sent everything.
func (p *planner) advertises() bool {
	return p.seen.misadvertised || len(p.seen.advertisements)+len(p.seen.l2Advertisements) > 0 ||
		p.in.Record.Count(fsm.TableAdvertisements)+p.in.Record.Count(fsm.TableL2Advertisements) > 0
}

// explainUnadvertised tells of a pool about which there is no BGPAdvertisement where its user may think otherwise of what comes of that.
func (p *planner) explainUnadvertised(pool *world.Pool, wanted []fsm.Advertisement) {
	if slices.ContainsFunc(wanted, func(ad fsm.Advertisement) bool { return ad.OfPool(fsm.PoolName(pool.Name)) }) {
		return
	}
	segment := slices.ContainsFunc(p.seen.l2Advertisements, func(ad *world.L2Advertisement) bool { return ad.Selects(pool.Name, pool.Labels) })
	text := ""
	h, _ := fsm.Get[*fsm.Advertisement](p.in.Record, fsm.TableAdvertisements, string(fsm.Unadvertised))
	switch {
	case !pool.OnlyAdvertised && p.format >= formatBGP && p.awaitsAdvertisement(fsm.PoolName(pool.Name), h):
		text = "a BGPAdvertisement cannot be used, and may be about it: no BGPPeer is sent its addresses until that is mended or removed, or another one names the pool"
	case len(p.seen.peers) == 0 && (segment || !pool.OnlyAdvertised):
		return
	case pool.OnlyAdvertised && !p.advertises():
		text = "no BGPAdvertisement is about its addresses: all BGPPeers are sent them, until there is a first BGPAdvertisement or L2Advertisement, and nobody " +
			"from then on, as with MetalLB; add a BGPAdvertisement that names the pool in spec.ipAddressPools"
	case pool.OnlyAdvertised && p.format < formatBGP:
		text = "no BGPAdvertisement is about its addresses: all BGPPeers are sent them until `fairlead raft finalize`, and nobody from then on, as with MetalLB; " +
			"add one that names the pool in spec.ipAddressPools if they shall be"
	case pool.OnlyAdvertised && !segment:
		text = "no BGPAdvertisement and no L2Advertisement is about its addresses: nobody is told of them, as with MetalLB; add one that names the pool in spec.ipAddressPools"
	case !pool.OnlyAdvertised && segment:
		text = "an L2Advertisement is about its addresses and no BGPAdvertisement: nodes answer for them, and all BGPPeers are sent them as well; " +
			"add a BGPAdvertisement that names the pool, and in spec.peers who shall be sent them"
	default:
		return
	}
	p.explain(fsm.TablePools, pool.Name, WaitsForAdvertisement, text)
}
