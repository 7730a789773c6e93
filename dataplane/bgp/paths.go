// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"cmp"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"sync"
	"unique"

	"github.com/tidwall/btree"
)

// Paths are many paths, in order. They never change: others that differ at a few prefixes are made by With, and share the rest. Any
// number of goroutines may read them. The zero value has none.
//
// Each member of a large cluster has hundreds of thousands, several states of which are in use at a time: what was decided last, what
// the speaker was told, what is being saved. In a list each would take 160 bytes, and each change of one endpoint another list.
type Paths struct {
	byPrefix *btree.BTreeG[*destination] // nil: none
	count    int
	known    *knownWays // of those that they share memory with; nil: of none yet
}

// destination has the paths of one prefix.
type destination struct {
	prefix netip.Prefix
	ways   []way // shared with other destinations; nobody writes to them
}

// way is one path to a destination.
type way struct {
	nextHop    unique.Handle[netip.Addr] // of a few nodes, each of which serves many prefixes
	weight, id uint32
	as         *attributes // shared with other ways; nil is the zero value
}

// attributes are what many paths have in common. Nobody writes to them.
type attributes struct {
	origin           Origin
	withheld         bool
	med, localPref   uint32
	communities      []Community
	largeCommunities []LargeCommunity
	terms            []Terms
}

// NewPaths are paths that are given in any order.
func NewPaths(list ...Path) (out Paths) {
	if !slices.IsSortedFunc(list, Path.Compare) {
		list = slices.SortedFunc(slices.Values(list), Path.Compare)
	}
	var last *attributes
	for len(list) > 0 {
		n := lengthOf(list, list[0].Prefix)
		last = out.add(list[:n], last)
		list = list[n:]
	}
	return out
}

// knownWays are lists of ways that several prefixes have: those of Services whose endpoints are on the same nodes.
type knownWays struct {
	mu   sync.Mutex // who makes others of paths may not be who makes others of those
	some map[waysMark][]way
}

// knownAtMost is how many are remembered. When there are more, remembering begins anew.
const knownAtMost = 4096

// waysMark is that of lists that may well be equal.
type waysMark struct {
	first, last way
	len         int
}

// same gives a list equal to one, which it may keep.
func (k *knownWays) same(list []way) []way {
	k.mu.Lock()
	defer k.mu.Unlock()
	mark := waysMark{list[0], list[len(list)-1], len(list)}
	if have, ok := k.some[mark]; ok && slices.Equal(have, list) {
		return have
	}
	if k.some == nil || len(k.some) >= knownAtMost {
		k.some = map[waysMark][]way{}
	}
	k.some[mark] = list
	return list
}

// add sets the paths of one prefix, which are in order, in paths that nobody else has yet. They share attributes with each other and with
// those given, where they are the same; add gives those of the last one.
func (p *Paths) add(paths []Path, last *attributes) *attributes {
	ways := make([]way, len(paths))
	for i, path := range paths {
		if as := attributesOf(path); as.plain() {
			last = nil
		} else if last == nil || !last.equal(as) {
			last = &as
		}
		ways[i] = way{unique.Make(path.NextHop), path.Weight, path.PathID, last}
	}
	if p.known == nil {
		p.known = &knownWays{}
	}
	p.put(&destination{paths[0].Prefix, p.known.same(ways)})
	return last
}

func attributesOf(p Path) attributes {
	return attributes{p.Origin, p.Withheld, p.MED, p.LocalPref, p.Communities, p.LargeCommunities, p.Terms}
}

// plain tells whether a has nothing but zero values.
func (a *attributes) plain() bool { return a.equal(attributes{}) }

func (a *attributes) equal(b attributes) bool {
	return a.origin == b.origin && a.withheld == b.withheld && a.med == b.med && a.localPref == b.localPref &&
		slices.Equal(a.communities, b.communities) && slices.Equal(a.largeCommunities, b.largeCommunities) &&
		slices.EqualFunc(a.terms, b.terms, Terms.Equal)
}

func (w way) path(prefix netip.Prefix) Path {
	p := Path{Prefix: prefix, NextHop: w.nextHop.Value(), Weight: w.weight, PathID: w.id}
	if a := w.as; a != nil {
		p.Origin, p.Withheld, p.MED, p.LocalPref = a.origin, a.withheld, a.med, a.localPref
		p.Communities, p.LargeCommunities, p.Terms = a.communities, a.largeCommunities, a.terms
	}
	return p
}

// put sets the paths of one prefix, in paths that nobody else has yet.
func (p *Paths) put(d *destination) {
	if p.byPrefix == nil {
		p.byPrefix = btree.NewBTreeGOptions(func(a, b *destination) bool { return inOrder(a.prefix, b.prefix) < 0 }, btree.Options{NoLocks: true})
	}
	p.count += len(d.ways)
	if before, had := p.byPrefix.Set(d); had {
		p.count -= len(before.ways)
	}
}

// With gives paths that have those that of tells, in any order, at some prefixes. One goroutine at a time makes others of p.
func (p Paths) With(touched []netip.Prefix, of func(netip.Prefix) []Path) Paths {
	if p.byPrefix != nil && len(touched) > 0 {
		p.byPrefix = p.byPrefix.Copy()
	}
	for _, prefix := range touched {
		var last *attributes
		before := p.at(prefix)
		if before != nil {
			last = before.ways[0].as
		}
		now := slices.SortedFunc(slices.Values(of(prefix)), Path.Compare)
		switch {
		case len(now) > 0:
			p.add(now, last)
		case before != nil:
			p.byPrefix.Delete(before)
			p.count -= len(before.ways)
		}
	}
	return p
}

// rebuilt gives the same paths, of which another goroutine may make others.
func (p Paths) rebuilt() Paths {
	out := Paths{known: p.known}
	for d := range p.destinations() {
		out.put(d)
	}
	return out
}

// at gives what there is of a prefix; nil for nothing.
func (p Paths) at(prefix netip.Prefix) *destination {
	if p.byPrefix == nil {
		return nil
	}
	d, _ := p.byPrefix.Get(&destination{prefix: prefix})
	return d
}

// Len is how many there are.
func (p Paths) Len() int { return p.count }

// All are the paths, in order.
func (p Paths) All() iter.Seq[Path] {
	return func(yield func(Path) bool) {
		for d := range p.destinations() {
			for _, w := range d.ways {
				if !yield(w.path(d.prefix)) {
					return
				}
			}
		}
	}
}

// Prefixes are those that have paths, in order.
func (p Paths) Prefixes() iter.Seq[netip.Prefix] {
	return func(yield func(netip.Prefix) bool) {
		for d := range p.destinations() {
			if !yield(d.prefix) {
				return
			}
		}
	}
}

func (p Paths) destinations() iter.Seq[*destination] {
	return func(yield func(*destination) bool) {
		if p.byPrefix != nil {
			p.byPrefix.Scan(yield)
		}
	}
}

// Of gives the paths of a prefix, in order.
func (p Paths) Of(prefix netip.Prefix) []Path { return p.AppendOf(nil, prefix) }

// Has tells whether a prefix has paths.
func (p Paths) Has(prefix netip.Prefix) bool { return p.at(prefix) != nil }

// AppendOf appends the paths of a prefix, in order, to a list.
func (p Paths) AppendOf(list []Path, prefix netip.Prefix) []Path {
	if d := p.at(prefix); d != nil {
		for _, w := range d.ways {
			list = append(list, w.path(prefix))
		}
	}
	return list
}

// Only gives the paths of some prefixes.
func (p Paths) Only(prefixes []netip.Prefix) (out Paths) {
	for _, prefix := range prefixes {
		if d := p.at(prefix); d != nil {
			out.put(d)
		}
	}
	return out
}

// In gives the paths of the single addresses that lie in a prefix, in order.
func (p Paths) In(block netip.Prefix) (out []Path) {
	if p.byPrefix == nil {
		return nil
	}
	p.byPrefix.Ascend(&destination{prefix: block.Masked()}, func(d *destination) bool {
		if !block.Contains(d.prefix.Addr()) {
			return false
		}
		if d.prefix.IsSingleIP() {
			out = p.AppendOf(out, d.prefix)
		}
		return true
	})
	return out
}

// Equal tells whether both have the same announcements.
func (p Paths) Equal(q Paths) bool {
	return p.count == q.count && len(p.Differing(q)) == 0
}

// Differing gives the prefixes, in order, whose paths are not the same in both.
func (p Paths) Differing(q Paths) []netip.Prefix {
	out := []netip.Prefix{}
	next, stop := iter.Pull(q.destinations())
	defer stop()
	theirs, left := next()
	for ours := range p.destinations() {
		for left && inOrder(theirs.prefix, ours.prefix) < 0 {
			out = append(out, theirs.prefix)
			theirs, left = next()
		}
		if !left || theirs.prefix != ours.prefix {
			out = append(out, ours.prefix)
			continue
		}
		if !ours.equal(theirs) {
			out = append(out, ours.prefix)
		}
		theirs, left = next()
	}
	for ; left; theirs, left = next() {
		out = append(out, theirs.prefix)
	}
	return out
}

// equal tells whether two destinations of one prefix have the same paths.
func (d *destination) equal(e *destination) bool {
	return d == e || slices.EqualFunc(d.ways, e.ways, way.equal)
}

func (w way) equal(v way) bool { return w == v || w.path(netip.Prefix{}).Equal(v.path(netip.Prefix{})) }

// String lists the paths.
func (p Paths) String() string { return fmt.Sprint(slices.Collect(p.All())) }

// inOrder is the order of prefixes in which paths are.
func inOrder(p, q netip.Prefix) int {
	return cmp.Or(p.Addr().Compare(q.Addr()), cmp.Compare(p.Bits(), q.Bits()))
}

// lengthOf tells how many paths at the beginning are of a prefix.
func lengthOf(paths []Path, prefix netip.Prefix) (n int) {
	for n < len(paths) && paths[n].Prefix == prefix {
		n++
	}
	return n
}
