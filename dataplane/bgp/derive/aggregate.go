// SPDX-License-Identifier: Apache-2.0

package derive

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
)

// aggregateOf gives the prefix that may be announced in place of an address, false if it is to be announced by itself. Of several
// advertisements that are about it the longest prefix counts, and one that asks for none wants the address itself.
func (a attributes) aggregateOf(address netip.Addr) (netip.Prefix, bool) {
	bits := 0
	for _, ad := range a.about(fsm.HostPrefix(address)) {
		own := ad.Terms.Aggregate(address)
		if own == 0 {
			return netip.Prefix{}, false
		}
		bits = max(bits, own)
	}
	if bits == 0 {
		return netip.Prefix{}, false
	}
	return prefixOf(address, bits), true
}

func prefixOf(address netip.Addr, bits int) netip.Prefix {
	return netip.PrefixFrom(address, bits).Masked()
}

// aggregatesWith lists the prefixes that an address may be a part of.
func (a attributes) aggregatesWith(address netip.Addr) (out []netip.Prefix) {
	for _, ad := range a.advertisements {
		if bits := ad.Terms.Aggregate(address); bits != 0 {
			out = append(out, prefixOf(address, bits))
		}
	}
	return out
}

// aggregates keeps which prefixes stand for all their addresses, by the paths of a Follower. The zero value has seen nothing.
//
// A prefix does where that changes the way of no packet: all of its addresses are announced, all alike (by the same next hops, to
// the same peers, with the same attributes), and all are to be part of it. So no packet is drawn for an address that nobody has,
// nor to a node that does not serve it. And nothing may shadow it: a longer prefix wins at a switch whatever its rank, so a path
// of one address that a lost member announced, and that ranks last beside those of others, would take all packets. An address is
// announced by itself while a switch may hold a path of it that is none any more.
type aggregates struct {
	drawn map[netip.Prefix][]bgp.Path
	all   bool // something may be drawn at all
}

// mayDraw tells whether a record allows for aggregates. One in quarantine knows less than is announced.
func mayDraw(v *fsm.View) bool {
	asks := func(ad *fsm.Advertisement) bool { return ad.Terms.AggregateV4 != 0 || ad.Terms.AggregateV6 != 0 }
	if !v.Group().Quarantine.IsZero() || !slices.ContainsFunc(fsm.List[*fsm.Advertisement](v, fsm.TableAdvertisements), asks) {
		return false
	}
	_, unheard := v.Unheard()
	return !unheard
}

// follow takes in what a Follower did: it gives the aggregates that changed.
func (g *aggregates) follow(f *Follower, touched []netip.Prefix, whole bool) (changed map[netip.Prefix]bool) {
	before := g.all
	g.all = mayDraw(f.view)
	look := map[netip.Prefix]bool{}
	for p := range g.drawn {
		if whole || !g.all {
			look[p] = true
		}
	}
	if g.all && (whole || !before) {
		touched = slices.Collect(f.paths.Prefixes())
	}
	if g.all {
		for _, p := range touched {
			for _, block := range f.attributes.aggregatesWith(p.Addr()) {
				look[block] = true
			}
		}
	}
	changed = map[netip.Prefix]bool{}
	for block := range look {
		now := g.draw(f, block)
		if slices.EqualFunc(now, g.drawn[block], bgp.Path.Equal) {
			continue
		}
		changed[block] = true
		if g.drawn == nil {
			g.drawn = map[netip.Prefix][]bgp.Path{}
		}
		if g.drawn[block] = now; now == nil {
			delete(g.drawn, block)
		}
	}
	return changed
}

// draw gives the paths of a prefix that may stand for all its addresses, none if it may not.
func (g *aggregates) draw(f *Follower, block netip.Prefix) []bgp.Path {
	if !g.all {
		return nil
	}
	paths := bgp.Aggregate(f.paths, block)
	var first *fsm.Route
	for address := block.Addr(); paths != nil && block.Contains(address); address = address.Next() {
		r, joins := f.joins(address, block)
		if !joins {
			return nil
		}
		if first == nil {
			first = r
		}
		// By the same nodes, too: one that goes by another name now has its old address, and each name announces its own part.
		if !slices.EqualFunc(first.NextHops, r.NextHops, func(g, h fsm.NextHop) bool { return g.Node() == h.Node() && g.Address() == h.Address() }) {
			return nil
		}
	}
	return paths
}

// joins tells whether an address may be a part of a prefix, as far as it alone tells, and gives its route.
func (f *Follower) joins(address netip.Addr, block netip.Prefix) (r *fsm.Route, joins bool) {
	r, ok := fsm.Get[*fsm.Route](f.view, fsm.TableRoutes, fsm.HostPrefix(address).String())
	if !ok {
		return nil, false
	}
	if _, settled := f.view.Settled(r); !settled {
		return nil, false
	}
	want, ok := f.attributes.aggregateOf(address)
	return r, ok && want == block
}

// cover tells whether an aggregate stands for an address. No two aggregates overlap: each address is to be part of one.
func (g *aggregates) cover(f *Follower, address netip.Addr) bool {
	return slices.ContainsFunc(f.attributes.aggregatesWith(address), func(block netip.Prefix) bool { return g.drawn[block] != nil })
}
