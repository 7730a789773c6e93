// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"net/netip"
	"slices"
)

// maxAggregate is how many addresses an aggregate stands for at most: a change of one of them is a look at all.
const maxAggregate = 1 << 12

// Aggregable tells whether a prefix has more than one address, and not more than an aggregate may stand for.
func Aggregable(block netip.Prefix) bool {
	free := block.Addr().BitLen() - block.Bits()
	return block.IsValid() && free > 0 && free < 31 && 1<<free <= maxAggregate
}

// Aggregate gives the paths that may stand for all those of the addresses of a prefix, without any packet going another way: none
// unless every address of it is announced, and all alike.
func Aggregate(paths Paths, block netip.Prefix) (out []Path) {
	if !Aggregable(block) {
		return nil
	}
	single := func(address netip.Addr) *destination { return paths.at(netip.PrefixFrom(address, address.BitLen())) }
	first := single(block.Addr())
	if first == nil {
		return nil
	}
	for address := block.Addr(); block.Contains(address); address = address.Next() {
		of := single(address)
		if of == nil || !slices.EqualFunc(first.ways, of.ways, way.alike) {
			return nil
		}
	}
	for _, w := range first.ways {
		w.id = 0
		out = append(out, w.path(block))
	}
	return out
}

// alike tells whether two ways differ in the identifiers of their paths alone.
func (w way) alike(v way) bool {
	w.id = v.id
	return w.equal(v)
}

// Aggregated gives paths of single addresses, with prefixes in the place of their addresses wherever Aggregate has paths of them. No two
// of the prefixes overlap.
func Aggregated(paths Paths, blocks []netip.Prefix) Paths {
	var out []Path
	within := map[int]map[netip.Prefix]bool{} // the blocks that stand for their addresses, by length
	for _, block := range blocks {
		whole := Aggregate(paths, block)
		if whole == nil {
			continue
		}
		if within[block.Bits()] == nil {
			within[block.Bits()] = map[netip.Prefix]bool{}
		}
		within[block.Bits()][block] = true
		out = append(out, whole...)
	}
	for p := range paths.All() {
		covered := false
		for bits, blocks := range within {
			covered = covered || p.Prefix.IsSingleIP() && bits < p.Prefix.Bits() && blocks[netip.PrefixFrom(p.Prefix.Addr(), bits).Masked()]
		}
		if !covered {
			out = append(out, p)
		}
	}
	return NewPaths(out...)
}

// Singles is the inverse: paths of single addresses in the place of those of prefixes. A prefix beside longer ones stands for none, and stays.
func Singles(paths Paths) Paths {
	var out []Path
	for p := range paths.All() {
		if !Aggregable(p.Prefix) || paths.within(p.Prefix) {
			out = append(out, p)
			continue
		}
		block := p.Prefix
		for address := block.Addr(); block.Contains(address); address = address.Next() {
			p.Prefix, p.PathID = netip.PrefixFrom(address, address.BitLen()), 0
			out = append(out, p)
		}
	}
	return NewPaths(out...)
}

// WithoutBare leaves out those of some prefixes of several addresses that have no single address in them any more: nobody is behind them.
func (p Paths) WithoutBare(prefixes []netip.Prefix) Paths {
	bare := slices.DeleteFunc(slices.Clone(prefixes), func(prefix netip.Prefix) bool { return prefix.IsSingleIP() || len(p.In(prefix)) > 0 })
	return p.With(bare, func(netip.Prefix) []Path { return nil })
}

// within tells whether there are paths of longer prefixes in a prefix.
func (p Paths) within(block netip.Prefix) (found bool) {
	if p.byPrefix == nil {
		return false
	}
	p.byPrefix.Ascend(&destination{prefix: block.Masked()}, func(d *destination) bool {
		found = block.Contains(d.prefix.Addr()) && d.prefix.Bits() > block.Bits()
		return !found && block.Contains(d.prefix.Addr())
	})
	return found
}
