// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// aggregable is the length of the prefixes that an advertisement has its addresses rolled up into, in a family whose addresses have so many bits:
// 0, and the reason is told, where a prefix of that length around one of its pools would reach beyond them, to addresses of others. MetalLB
// refuses it.
func (p *planner) aggregable(name, field string, length uint8, bits int, pools []fsm.PoolName) uint8 {
	if length == 0 {
		return 0
	}
	var ranges []fsm.Range
	for _, pool := range p.pools {
		if len(pools) == 0 || slices.Contains(pools, pool.name) {
			ranges = append(ranges, slices.DeleteFunc(slices.Clone(pool.ranges), func(r fsm.Range) bool { return r.From.BitLen() != bits })...)
		}
	}
	for _, r := range joinedRanges(ranges) {
		if block := widest(r); int(length) < block.Bits() {
			p.explain(fsm.TableAdvertisements, name, WaitsForAggregate, fmt.Sprintf("%s %d: a prefix of that length around %s-%s would cover addresses that are of none of its pools; "+
				"addresses are announced one by one; write %d or more", field, length, r.From, r.To, block.Bits()))
			return 0
		}
	}
	return length
}

// joinedRanges makes one of ranges of a family that overlap or follow on each other, in order.
func joinedRanges(ranges []fsm.Range) (out []fsm.Range) {
	slices.SortStableFunc(ranges, func(a, b fsm.Range) int { return a.From.Compare(b.From) })
	for _, r := range ranges {
		if n := len(out) - 1; n >= 0 && (r.From.Compare(out[n].To) <= 0 || r.From == out[n].To.Next()) {
			if r.To.Compare(out[n].To) > 0 {
				out[n].To = r.To
			}
			continue
		}
		out = append(out, r)
	}
	return out
}

// widest is the first of the widest prefixes whose addresses all lie in a range.
func widest(r fsm.Range) netip.Prefix {
	for bits := range r.From.BitLen() {
		block := netip.PrefixFrom(r.From, bits).Masked()
		if block.Addr() != r.From { // the one behind it is the first that may lie in the range
			block = netip.PrefixFrom(world.RangeOf(block).To.Next(), bits)
		}
		if block.IsValid() && r.Contains(block.Addr()) && r.Contains(world.RangeOf(block).To) {
			return block
		}
	}
	return fsm.HostPrefix(r.From)
}

// explainAggregates says of advertisements that ask for aggregates what of theirs is announced address by address, and why. What
// is settling is not worth a word. Speakers judge for themselves, by more: attributes and peers, too.
func (p *planner) explainAggregates() {
	for _, ad := range fsm.List[*fsm.Advertisement](p.in.Record, fsm.TableAdvertisements) {
		if ad.Terms.AggregateV4 == 0 && ad.Terms.AggregateV6 == 0 {
			continue
		}
		if who, unheard := p.in.Record.Unheard(); unheard {
			p.explain(fsm.TableAdvertisements, string(ad.Name), WaitsForAggregate,
				"its addresses are announced one by one: "+who+unheardText)
			continue
		}
		p.explainApart(ad)
	}
}

// explainApart tells of the first prefix of an advertisement whose addresses are announced one by one, and of how many there are.
func (p *planner) explainApart(ad *fsm.Advertisement) {
	var blocks []netip.Prefix
	beside := map[netip.Prefix]bool{}  // they are announced, beside their addresses
	for _, al := range p.allocations { // by address
		bits := ad.Terms.Aggregate(al.Address)
		if bits == 0 || len(ad.Pools) > 0 && !slices.Contains(ad.Pools, al.Pool()) || !p.choosesOwner(ad, al) {
			continue
		}
		block := netip.PrefixFrom(al.Address, bits).Masked()
		beside[block] = beside[block] || p.summarized(ad, al)
		if len(blocks) == 0 || blocks[len(blocks)-1] != block {
			blocks = append(blocks, block)
		}
	}
	first, apart := "", 0
	for _, block := range blocks {
		if why := p.apart(block); why != "" && !beside[block] {
			if apart++; first == "" {
				first = fmt.Sprintf("%s is announced address by address: %s", block, why)
			}
		}
	}
	if apart > 1 {
		first += fmt.Sprintf(" (%d more are, too)", apart-1)
	}
	if apart > 0 {
		p.explain(fsm.TableAdvertisements, string(ad.Name), WaitsForAggregate,
			first+"; it takes the place of its addresses once all of them are announced by the same nodes, and to the same peers")
	}
}

// summarized tells whether whoever is sent an address by an advertisement is sent it by another one with a longer prefix, too: the
// shorter one is announced beside that, and not in the place of anything.
func (p *planner) summarized(ad *fsm.Advertisement, al *fsm.Allocation) bool {
	bits := ad.Terms.Aggregate(al.Address)
	return slices.ContainsFunc(fsm.List[*fsm.Advertisement](p.in.Record, fsm.TableAdvertisements), func(longer *fsm.Advertisement) bool {
		own := longer.Terms.Aggregate(al.Address)
		return !longer.Terms.Fallback && (own == 0 || own > bits) && longer.OfPool(al.Pool()) && p.choosesOwner(longer, al) && longer.SentWherever(ad)
	})
}

func (p *planner) choosesOwner(ad *fsm.Advertisement, al *fsm.Allocation) bool {
	s, ok := fsm.Get[*fsm.Service](p.in.Record, fsm.TableServices, string(al.Service))
	return !ad.Terms.OnlyServices || ok && ad.Chooses(s)
}

// apart says why the addresses of a prefix are announced one by one; nothing if they are not, or about to be so no more.
func (p *planner) apart(block netip.Prefix) string {
	var first *fsm.Route
	for address := block.Addr(); block.Contains(address); address = address.Next() {
		r, ok := fsm.Get[*fsm.Route](p.in.Record, fsm.TableRoutes, fsm.HostPrefix(address).String())
		switch {
		case !ok:
			return address.String() + " is announced by no node"
		case first == nil:
			first = r
		}
		if hop, settled := p.in.Record.Settled(r); !settled && hop.Node() != "" {
			return ""
		}
		if !slices.EqualFunc(first.NextHops, r.NextHops, func(a, b fsm.NextHop) bool { return a.Node() == b.Node() && a.Address() == b.Address() }) {
			return fmt.Sprintf("%s has other next hops than %s", r.Prefix.Addr(), first.Prefix.Addr())
		}
		if p.aggregateOf(address) != block {
			return fmt.Sprintf("a BGPAdvertisement wants another prefix for %s, or none", address)
		}
	}
	return ""
}

// aggregateOf is the prefix that may be announced in the place of an address; none is the zero Prefix.
func (p *planner) aggregateOf(address netip.Addr) netip.Prefix {
	bits := 0
	for _, ad := range fsm.List[*fsm.Advertisement](p.in.Record, fsm.TableAdvertisements) {
		if ad.Terms.Fallback { // it counts where no other one is about the address, and wants no prefix there either
			continue
		}
		if !slices.ContainsFunc(p.in.Record.Owners(address.String()), func(al *fsm.Allocation) bool {
			return (len(ad.Pools) == 0 || slices.Contains(ad.Pools, al.Pool())) && p.choosesOwner(ad, al)
		}) {
			continue
		}
		if ad.Terms.Aggregate(address) == 0 {
			return netip.Prefix{}
		}
		bits = max(bits, ad.Terms.Aggregate(address))
	}
	if bits == 0 {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(address, bits).Masked()
}

// announcedApart explains that an address is announced by itself that is to be a part of a prefix.
func (p *planner) announcedApart(address netip.Addr) (e Explanation, is bool) {
	block := p.aggregateOf(address)
	if !block.IsValid() {
		return Explanation{}, false
	}
	why := p.apart(block)
	if who, unheard := p.in.Record.Unheard(); unheard {
		why = who + unheardText
	}
	return Explanation{
		Kind: string(fsm.TableRoutes), Name: fsm.HostPrefix(address).String(), Code: WaitsForAggregate,
		Text: block.String() + " is announced address by address: " + why,
	}, why != ""
}

const unheardText = " may still announce paths that nobody else knows of; bring it back, or remove it"
