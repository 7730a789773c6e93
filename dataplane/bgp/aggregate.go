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
// unless every address of it is announced, and all alike. Paths are in order.
func Aggregate(paths []Path, block netip.Prefix) (out []Path) {
	if !Aggregable(block) {
		return nil
	}
	paths = PathsIn(paths, block)
	first := addressed(paths, block.Addr())
	for address := block.Addr(); block.Contains(address); address = address.Next() {
		of := addressed(paths, address)
		if !slices.EqualFunc(first, of, alike) {
			return nil
		}
		paths = paths[len(of):]
	}
	for _, p := range first {
		p.Prefix, p.PathID = block, 0
		out = append(out, p)
	}
	return out
}

// PathsIn gives those of paths of single addresses, which are in order, that lie in a prefix.
func PathsIn(paths []Path, block netip.Prefix) []Path {
	from, _ := slices.BinarySearchFunc(paths, block.Addr(), func(p Path, a netip.Addr) int { return p.Prefix.Addr().Compare(a) })
	paths = paths[from:]
	n := slices.IndexFunc(paths, func(p Path) bool { return !block.Contains(p.Prefix.Addr()) })
	if n < 0 {
		return paths
	}
	return paths[:n]
}

// addressed gives those of paths, which begin with an address if it has any, that are the address's.
func addressed(paths []Path, address netip.Addr) []Path {
	n := 0
	for n < len(paths) && paths[n].Prefix.Addr() == address && paths[n].Prefix.IsSingleIP() {
		n++
	}
	return paths[:n]
}

// alike tells whether two paths differ in their prefix alone.
func alike(p, q Path) bool {
	p.Prefix, p.PathID = q.Prefix, q.PathID
	return p.Equal(q)
}

// Aggregated gives paths of single addresses, which are in order, with prefixes in the place of their addresses wherever Aggregate
// has paths of them. No two of the prefixes overlap.
func Aggregated(paths []Path, blocks []netip.Prefix) []Path {
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
	for _, p := range paths {
		covered := false
		for bits, blocks := range within {
			covered = covered || p.Prefix.IsSingleIP() && bits < p.Prefix.Bits() && blocks[netip.PrefixFrom(p.Prefix.Addr(), bits).Masked()]
		}
		if !covered {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, Path.Compare)
	return out
}

// Singles is the inverse: paths of single addresses, in order, in the place of those of prefixes.
func Singles(paths []Path) (out []Path) {
	for _, p := range paths {
		if !Aggregable(p.Prefix) {
			out = append(out, p)
			continue
		}
		block := p.Prefix
		for address := block.Addr(); block.Contains(address); address = address.Next() {
			p.Prefix, p.PathID = netip.PrefixFrom(address, address.BitLen()), 0
			out = append(out, p)
		}
	}
	slices.SortFunc(out, Path.Compare)
	return out
}
