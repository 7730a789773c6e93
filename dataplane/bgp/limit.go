// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
)

// limits are how many paths of a prefix peers are sent, by their names.
//
// The speaker's library is not asked to keep them: it would choose by what came first, which is not the same on each member, and GoBGP
// loses count of what it sent and what it did not.
type limits struct {
	most  map[Family]map[string]int
	names map[Family][]string // in order
}

// limitsOf are those of peers.
func limitsOf(peers []Peer) limits {
	l := limits{most: map[Family]map[string]int{}, names: map[Family][]string{}}
	for _, p := range peers {
		p = p.Normal(0)
		for _, f := range p.Families {
			if l.most[f] == nil {
				l.most[f] = map[string]int{}
			}
			if n, known := l.most[f][p.Name]; !known || n > int(p.SendMax) {
				l.most[f][p.Name] = int(p.SendMax)
			}
		}
	}
	for f, most := range l.most {
		l.names[f] = slices.Sorted(maps.Keys(most))
		highest := slices.Max(slices.Collect(maps.Values(most)))
		for name, n := range most {
			switch {
			case highest == 1:
				most[name] = math.MaxInt
			case n == 1: // no ADD-PATH: it is sent the best path, whatever others there are
				most[name] = highest
			}
		}
	}
	return l
}

// of gives the paths of one prefix without those that are too many: a peer that would be sent more than its limit is sent the best ones,
// the same from each speaker, and a path that is left for nobody is left out.
func (l limits) of(paths []Path) []Path {
	if len(paths) == 0 {
		return nil
	}
	family := FamilyOf(paths[0].Prefix.Addr())
	receivers := make([][]Terms, len(paths)) // of each path
	cut := make([]bool, len(paths))
	for _, name := range l.names[family] {
		sent := sentTo(name, paths)
		for rank, one := range sent {
			if rank >= l.most[family][name] {
				cut[one.index] = true
			} else {
				receivers[one.index] = append(receivers[one.index], termsOf(name, one.Path))
			}
		}
	}
	var out []Path
	for i, p := range paths {
		switch {
		case cut[i] && len(receivers[i]) == 0:
			continue
		case cut[i]:
			p.Withheld, p.Terms = true, receivers[i]
		}
		out = append(out, p)
	}
	return out
}

// ranked is a path as a peer is told it, and which one of a list it is.
type ranked struct {
	Path
	index int
}

// sentTo are the paths of one prefix that a peer would be sent, the best first.
func sentTo(name string, paths []Path) (out []ranked) {
	for i, p := range paths {
		if p, sent := p.To(name); sent {
			out = append(out, ranked{p, i})
		}
	}
	slices.SortFunc(out, func(a, b ranked) int {
		return cmp.Or(Prefer(a.Path, b.Path), cmp.Compare(a.lot(), b.lot()), cmp.Compare(a.index, b.index))
	})
	return out
}

// lot decides between paths that are equally good: it is another one for each prefix, so that no node is left out of all, and that of a path
// does not depend on what others there are.
func (p Path) lot() uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, p.Prefix, " ", p.NextHop) // a hash takes everything
	return h.Sum64()
}
