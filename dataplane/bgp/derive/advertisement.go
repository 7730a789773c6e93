// SPDX-License-Identifier: Apache-2.0

package derive

import (
	"maps"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
)

// about lists the advertisements that are about an address. Of one that Services share one of them is enough, also where another one
// has it of another pool, or names it in spec.externalIPs.
func (a attributes) about(prefix netip.Prefix) (out []*fsm.Advertisement) {
	address := prefix.Addr()
	pool, mixed := a.pools[address], a.mixed[address]
	for _, ad := range a.advertisements {
		if mixed && a.choosesOwner(ad, address) || !mixed && ad.OfPool(pool) && a.chooses(ad, address) {
			out = append(out, ad)
		}
	}
	return out
}

// choosesOwner tells whether an advertisement is about an address as one of its owners has it.
func (a attributes) choosesOwner(ad *fsm.Advertisement, address netip.Addr) bool {
	return slices.ContainsFunc(a.view.Owners(address.String()), func(owner *fsm.Allocation) bool {
		s, ok := fsm.Get[*fsm.Service](a.view, fsm.TableServices, string(owner.Service))
		return ad.OfPool(owner.Pool()) && (!ad.Terms.OnlyServices || ok && ad.Chooses(s))
	})
}

// chooses tells whether an advertisement chooses a Service that has an address.
func (a attributes) chooses(ad *fsm.Advertisement, address netip.Addr) bool {
	return !ad.Terms.OnlyServices || slices.ContainsFunc(a.view.Owners(address.String()), func(owner *fsm.Allocation) bool {
		s, ok := fsm.Get[*fsm.Service](a.view, fsm.TableServices, string(owner.Service))
		return ok && ad.Chooses(s)
	})
}

// choosing are those of some advertisements that are about a next hop. Where none is, all are: the leader takes such a hop
// away, and lets it go when others may be announced, or there would be a gap.
func choosing(about []*fsm.Advertisement, node fsm.NodeID) (out []*fsm.Advertisement) {
	for _, ad := range about {
		if ad.Admits(node) {
			out = append(out, ad)
		}
	}
	if len(out) == 0 {
		return about
	}
	return out
}

// announcement is a path under all advertisements that are about it. A peer is announced it under those that name the peer, and
// those that name none; without any of these it is not. A path that no advertisement is about goes to every peer.
func announcement(prefix netip.Prefix, about []*fsm.Advertisement) bgp.Path {
	path := bgp.Path{Prefix: prefix}
	var forAll []*fsm.Advertisement
	named := map[fsm.PeerName]bool{}
	for _, ad := range about {
		if len(ad.Peers) == 0 {
			forAll = append(forAll, ad)
		}
		for _, peer := range ad.Peers {
			named[peer] = true
		}
	}
	joined(forAll).put(&path)
	path.Withheld = len(about) > 0 && len(forAll) == 0
	for _, peer := range slices.Sorted(maps.Keys(named)) {
		own := bgp.Path{Prefix: prefix}
		joined(about, peer).put(&own)
		if !path.Withheld && own.Equal(bgp.Path{
			Prefix: prefix, MED: path.MED, LocalPref: path.LocalPref, Communities: path.Communities, LargeCommunities: path.LargeCommunities,
		}) {
			continue
		}
		own = own.Normal()
		path.Terms = append(path.Terms, bgp.Terms{
			Peer: string(peer), MED: own.MED, LocalPref: own.LocalPref, Communities: own.Communities, LargeCommunities: own.LargeCommunities,
		})
	}
	return path
}

// joint is what several advertisements say together: all communities, the highest local preference, the lowest MED.
type joint struct{ ads []*fsm.Advertisement }

// joined are the advertisements for every peer and, of the others, those that name one of some peers.
func joined(list []*fsm.Advertisement, peers ...fsm.PeerName) (j joint) {
	for _, ad := range list {
		if len(ad.Peers) == 0 || slices.ContainsFunc(peers, func(p fsm.PeerName) bool { return slices.Contains(ad.Peers, p) }) {
			j.ads = append(j.ads, ad)
		}
	}
	return j
}

func (j joint) put(path *bgp.Path) {
	for _, ad := range j.ads {
		for _, c := range ad.Communities {
			path.Communities = append(path.Communities, bgp.Community(c))
		}
		for _, c := range ad.Terms.LargeCommunities {
			path.LargeCommunities = append(path.LargeCommunities, bgp.LargeCommunity(c))
		}
		if ad.LocalPref != 0 { // records of earlier releases have lower ones than there are
			path.LocalPref = max(path.LocalPref, ad.LocalPref, bgp.LowestLocalPref)
		}
		if ad.Terms.MED != 0 && (path.MED == 0 || ad.Terms.MED < path.MED) {
			path.MED = ad.Terms.MED
		}
	}
}
