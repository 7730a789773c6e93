// SPDX-License-Identifier: Apache-2.0

package derive

import (
	"cmp"
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
	return fsm.Counting(out)
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

// announcement is the path of an address under all advertisements that are about it. A peer is announced it under those that name the
// peer, and those that name none; without any of these it is not. Of these the ones with the longest prefix count: the others have a
// path of their own (summaries). A path that no advertisement is about goes to every peer.
func announcement(prefix netip.Prefix, about []*fsm.Advertisement) bgp.Path {
	to := audience{}
	for _, peer := range append(namedBy(about), everyoneElse) {
		to[peer] = longest(joined(about, peer), prefix.Addr())
	}
	path := to.path(prefix)
	path.Withheld = path.Withheld && len(about) > 0
	return path
}

// everyoneElse stands for the peers that no advertisement names.
const everyoneElse fsm.PeerName = ""

// namedBy lists the peers that some advertisements name, in order.
func namedBy(list []*fsm.Advertisement) []fsm.PeerName {
	named := map[fsm.PeerName]bool{}
	for _, ad := range list {
		for _, peer := range ad.Peers {
			named[peer] = true
		}
	}
	return slices.Sorted(maps.Keys(named))
}

// audience are the advertisements under which each peer is sent a path: those that are named, and everyoneElse.
type audience map[fsm.PeerName][]*fsm.Advertisement

// path is one to a prefix under what a says.
func (a audience) path(prefix netip.Prefix) bgp.Path {
	path := bgp.Path{Prefix: prefix, Withheld: len(a[everyoneElse]) == 0}
	joint(a[everyoneElse]).put(&path)
	for _, peer := range slices.Sorted(maps.Keys(a)) {
		own := bgp.Path{Prefix: prefix}
		joint(a[peer]).put(&own)
		if peer == everyoneElse || path.Withheld && len(a[peer]) == 0 || !path.Withheld && own.Equal(bgp.Path{
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

// joined are the advertisements for every peer and, of the others, those that name one of some peers.
func joined(list []*fsm.Advertisement, peers ...fsm.PeerName) (out []*fsm.Advertisement) {
	for _, ad := range list {
		if len(ad.Peers) == 0 || slices.ContainsFunc(peers, func(p fsm.PeerName) bool { return slices.Contains(ad.Peers, p) }) {
			out = append(out, ad)
		}
	}
	return out
}

// longest are those of some advertisements that want the longest prefix for an address.
func longest(list []*fsm.Advertisement, address netip.Addr) (out []*fsm.Advertisement) {
	bits := 0
	for _, ad := range list {
		bits = max(bits, lengthOf(ad, address))
	}
	return ofLength(list, address, bits)
}

// ofLength are those of some advertisements that want a prefix of a length for an address.
func ofLength(list []*fsm.Advertisement, address netip.Addr, bits int) (out []*fsm.Advertisement) {
	for _, ad := range list {
		if lengthOf(ad, address) == bits {
			out = append(out, ad)
		}
	}
	return out
}

// lengthOf is how long a prefix an advertisement wants for an address: all of it where it asks for none.
func lengthOf(ad *fsm.Advertisement, address netip.Addr) int {
	return cmp.Or(ad.Terms.Aggregate(address), address.BitLen())
}

// joint is what several advertisements say together: all communities, the highest local preference, the lowest MED.
type joint []*fsm.Advertisement

func (j joint) put(path *bgp.Path) {
	for _, ad := range j {
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
