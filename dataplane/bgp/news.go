// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"net/netip"
	"slices"
)

// news collects what changed from one set of routes to newer ones, as far as their source tells.
type news struct {
	known   bool     // touched is all that changed
	upto    Revision // of the routes that were taken in last
	touched map[netip.Prefix]bool
}

// take adds what routes say of themselves.
func (n *news) take(routes Routes) {
	switch {
	case !n.known || routes.Revision == n.upto:
		return
	case routes.Since == (Revision{}) || routes.Since != n.upto:
		n.known = false
		return
	}
	n.upto = routes.Revision
	if n.touched == nil {
		n.touched = map[netip.Prefix]bool{}
	}
	for _, p := range routes.Touched {
		n.touched[p] = true
	}
}

// prefixes lists what changed, in order; nil if that is not known.
func (n *news) prefixes() []netip.Prefix {
	if !n.known {
		return nil
	}
	out := make([]netip.Prefix, 0, len(n.touched))
	for p := range n.touched {
		out = append(out, p)
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return out
}

// PathsOf gives those of paths, which are in order, that are of some prefixes.
func PathsOf(paths []Path, prefixes []netip.Prefix) []Path {
	var out []Path
	for _, prefix := range prefixes {
		from, to := RangeOf(paths, prefix)
		out = append(out, paths[from:to]...)
	}
	return out
}

// RangeOf tells where in paths, which are in order, those of a prefix are.
func RangeOf(paths []Path, prefix netip.Prefix) (from, to int) {
	from, _ = slices.BinarySearchFunc(paths, Path{Prefix: prefix}, comparePrefix)
	return from, from + lengthOf(paths[from:], prefix)
}

// Differing gives the prefixes, in order, whose paths are not the same in two lists that are in order.
func Differing(a, b []Path) []netip.Prefix {
	out := []netip.Prefix{}
	for len(a) > 0 || len(b) > 0 {
		var first netip.Prefix
		switch {
		case len(b) == 0 || len(a) > 0 && comparePrefix(a[0], b[0]) <= 0:
			first = a[0].Prefix
		default:
			first = b[0].Prefix
		}
		i, j := lengthOf(a, first), lengthOf(b, first)
		if !slices.EqualFunc(a[:i], b[:j], Path.Equal) {
			out = append(out, first)
		}
		a, b = a[i:], b[j:]
	}
	return out
}

// lengthOf tells how many paths at the beginning are of a prefix.
func lengthOf(paths []Path, prefix netip.Prefix) (n int) {
	for n < len(paths) && paths[n].Prefix == prefix {
		n++
	}
	return n
}

func comparePrefix(p, q Path) int { return Path{Prefix: p.Prefix}.Compare(Path{Prefix: q.Prefix}) }
