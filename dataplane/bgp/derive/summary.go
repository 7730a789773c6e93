// SPDX-License-Identifier: Apache-2.0

package derive

import (
	"maps"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
)

// summaries keeps the prefixes that are announced beside their addresses, by the paths of a Follower. The zero value has seen nothing.
//
// Where several advertisements that want prefixes of different lengths for an address go to one peer, the peer is sent each of
// these prefixes under the advertisements of its own length, as with MetalLB: such as the address with NO_ADVERTISE for the switch
// itself, and the prefix that it passes on. A prefix has the next hops of all those addresses together. No packet to one of them
// goes another way for it, since the peer has the longer prefix too; nothing else keeps it from drawing what is to no address.
type summaries struct {
	beside map[netip.Prefix][]bgp.Path
	any    bool // advertisements want prefixes of different lengths
}

// maySummarize tells whether some address may have prefixes of different lengths.
func (a attributes) maySummarize() bool {
	return slices.ContainsFunc(a.advertisements, func(ad *fsm.Advertisement) bool {
		return slices.ContainsFunc(a.advertisements, func(other *fsm.Advertisement) bool {
			return !ad.Terms.Fallback && !other.Terms.Fallback &&
				(ad.Terms.AggregateV4 != other.Terms.AggregateV4 || ad.Terms.AggregateV6 != other.Terms.AggregateV6)
		})
	})
}

// follow takes in what a Follower did: it gives the prefixes whose paths changed.
func (s *summaries) follow(f *Follower, touched []netip.Prefix, whole bool) (changed map[netip.Prefix]bool) {
	look := map[netip.Prefix]bool{}
	if whole { // advertisements change with all paths
		for block := range s.beside {
			look[block] = true
		}
		if s.any = f.attributes.maySummarize(); s.any {
			touched = slices.Collect(f.paths.Prefixes())
		}
	}
	if s.any {
		for _, p := range touched {
			for _, block := range f.attributes.aggregatesWith(p.Addr()) {
				look[block] = true
			}
		}
	}
	changed = map[netip.Prefix]bool{}
	for block := range look {
		now := f.summary(block)
		if slices.EqualFunc(now, s.beside[block], bgp.Path.Equal) {
			continue
		}
		changed[block] = true
		if s.beside == nil {
			s.beside = map[netip.Prefix][]bgp.Path{}
		}
		if s.beside[block] = now; now == nil {
			delete(s.beside, block)
		}
	}
	return changed
}

// with gives paths, and those of the prefixes that are announced beside them.
func (s *summaries) with(paths bgp.Paths) bgp.Paths {
	return paths.With(slices.Collect(maps.Keys(s.beside)), func(block netip.Prefix) []bgp.Path { return s.beside[block] })
}

// summary gives the paths of a prefix that is announced beside its addresses, in order; none where it is not.
func (f *Follower) summary(block netip.Prefix) (out []bgp.Path) {
	to := map[netip.Addr]audience{} // by next hop
	peers := append(namedBy(f.attributes.advertisements), everyoneElse)
	last := netip.Prefix{}
	for _, p := range f.paths.In(block) {
		if p.Prefix == last {
			continue
		}
		last = p.Prefix
		if r, ok := fsm.Get[*fsm.Route](f.view, fsm.TableRoutes, p.Prefix.String()); ok {
			f.summarize(r, block, peers, to)
		}
	}
	for hop, of := range to {
		if path := of.path(block); !path.Withheld || len(path.Terms) > 0 {
			path.NextHop = hop
			out = append(out, path)
		}
	}
	slices.SortFunc(out, bgp.Path.Compare)
	return out
}

// summarize notes under which advertisements the next hops of an address are those of a prefix that it lies in, too: those of the
// prefix's length that go to a peer beside longer ones.
func (f *Follower) summarize(r *fsm.Route, block netip.Prefix, peers []fsm.PeerName, to map[netip.Addr]audience) {
	about := f.attributes.about(r.Prefix)
	for _, h := range r.NextHops {
		node, _ := fsm.Get[*fsm.Node](f.view, fsm.TableNodes, string(h.Node()))
		if !fsm.Announceable(r.Prefix, h, node, f.view.Group().Settings) {
			continue
		}
		chosen := choosing(about, h.Node())
		for _, peer := range peers {
			of := joined(chosen, peer)
			short := ofLength(of, r.Prefix.Addr(), block.Bits())
			if len(short) == 0 || !slices.ContainsFunc(of, func(ad *fsm.Advertisement) bool { return lengthOf(ad, r.Prefix.Addr()) > block.Bits() }) {
				continue
			}
			if to[h.Address()] == nil {
				to[h.Address()] = audience{}
			}
			for _, ad := range short {
				if !slices.Contains(to[h.Address()][peer], ad) {
					to[h.Address()][peer] = append(to[h.Address()][peer], ad)
				}
			}
		}
	}
}
