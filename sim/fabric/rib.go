// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"cmp"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/sim/fabric/message"
)

// path is one path as a neighbour announced it.
type path struct {
	message.Attributes
	member    string
	id        uint32
	stale     bool // its session was lost, and it was not announced since
	longLived bool // and that is long ago: it ranks last
}

// better is negative if p is preferred to q, 0 if they share the traffic.
func (p *path) better(q *path) int {
	return cmp.Or(
		rank(p.longLived)-rank(q.longLived),
		cmp.Compare(q.preference(), p.preference()),
		cmp.Compare(len(p.ASPath), len(q.ASPath)),
		cmp.Compare(p.Origin, q.Origin),
		p.compareMED(q),
	)
}

func rank(last bool) int {
	if last {
		return 1
	}
	return 0
}

// preference is the local preference, the default one without.
func (p *path) preference() uint32 {
	if p.LocalPref == 0 {
		return 100
	}
	return p.LocalPref
}

// compareMED compares paths of one neighbouring AS: that of others means something else (RFC 4271 §9.1.2.2).
func (p *path) compareMED(q *path) int {
	if p.from() != q.from() {
		return 0
	}
	return cmp.Compare(p.MED, q.MED)
}

// from is the neighbouring AS, 0 for our own.
func (p *path) from() uint32 {
	if len(p.ASPath) == 0 {
		return 0
	}
	return p.ASPath[0]
}

// key tells the paths of a prefix apart.
type key struct {
	member string
	id     uint32
}

// rib is all that was announced.
type rib map[netip.Prefix]map[key]*path

func (r rib) put(prefix netip.Prefix, p *path) {
	if r[prefix] == nil {
		r[prefix] = map[key]*path{}
	}
	r[prefix][key{p.member, p.id}] = p
}

func (r rib) remove(prefix netip.Prefix, k key) {
	delete(r[prefix], k)
	if len(r[prefix]) == 0 {
		delete(r, prefix)
	}
}

// of lists the paths of a prefix, in order.
func (r rib) of(prefix netip.Prefix) []*path {
	out := make([]*path, 0, len(r[prefix]))
	for _, p := range r[prefix] {
		out = append(out, p)
	}
	slices.SortFunc(out, func(p, q *path) int { return cmp.Or(cmp.Compare(p.member, q.member), cmp.Compare(p.id, q.id)) })
	return out
}

// best lists those of some paths, in order, that share the traffic, and their next hops in order, each once.
func best(paths []*path, most int) (chosen map[*path]bool, hops []netip.Addr) {
	chosen = map[*path]bool{}
	if len(paths) == 0 {
		return chosen, nil
	}
	first := slices.MinFunc(paths, (*path).better)
	for _, p := range paths {
		if p.better(first) == 0 {
			chosen[p] = true
			hops = append(hops, p.NextHop)
		}
	}
	slices.SortFunc(hops, netip.Addr.Compare)
	hops = slices.Compact(hops)
	if len(hops) > most {
		hops = hops[:most]
		for _, p := range paths {
			if !slices.Contains(hops, p.NextHop) {
				delete(chosen, p)
			}
		}
	}
	return chosen, hops
}
