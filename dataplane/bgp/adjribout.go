// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"iter"
	"net/netip"
	"slices"
	"unique"
)

// AdjRIBOut is what a peer was told in one session (the Adj-RIB-Out of RFC 4271 §1.1), read back from the UPDATEs that were written to it.
//
// A library's own word on what it has sent is not enough to free an address, or the rules of a node: one that loses count withdraws
// nothing, and says that there was nothing to withdraw. So it is held to what the peer is to have, prefix by prefix, as these change.
// Next hops tell paths apart: a library numbers them as it likes.
type AdjRIBOut struct {
	told map[netip.Prefix][]toldPath
	due  map[netip.Prefix]Due // that changed since they were last found right
}

// toldPath is one that the peer has.
type toldPath struct {
	id      uint32 // of the library, 0 without ADD-PATH
	nextHop hop
}

// hop is a next hop, of a few that many prefixes have.
type hop = unique.Handle[netip.Addr]

// Due is what peers are to be told of a prefix: at most all hops, and those that no peer is left out of, which come first, for sure.
type Due struct {
	hops []hop
	sure int
}

// DueOf is what peers are to be told where a prefix has paths.
func DueOf(paths iter.Seq[Path]) (d Due) {
	for p := range paths {
		d.hops = append(d.hops, unique.Make(p.NextHop))
		if !p.Withheld {
			d.hops[d.sure], d.hops[len(d.hops)-1] = d.hops[len(d.hops)-1], d.hops[d.sure]
			d.sure++
		}
	}
	return d
}

// Told is how a session tells paths.
type Told struct {
	AddPath []Family // of which it tells several of a prefix
	Sent    []Family // that were agreed on
	OwnHop  bool     // it names one next hop for all, as between link-local addresses
}

// NewAdjRIBOut is that of a session in which nothing has been written.
func NewAdjRIBOut() *AdjRIBOut {
	return &AdjRIBOut{told: map[netip.Prefix][]toldPath{}, due: map[netip.Prefix]Due{}}
}

// Announced notes that a path was written. It replaces the one of its identifier, which is 0 without ADD-PATH.
func (r *AdjRIBOut) Announced(prefix netip.Prefix, id uint32, nextHop netip.Addr) {
	now := toldPath{id, unique.Make(nextHop)}
	for i, p := range r.told[prefix] {
		if p.id == id {
			r.told[prefix][i] = now
			return
		}
	}
	r.told[prefix] = append(r.told[prefix], now)
}

// Withdrawn notes that a withdrawal was written.
func (r *AdjRIBOut) Withdrawn(prefix netip.Prefix, id uint32) {
	left := slices.DeleteFunc(r.told[prefix], func(p toldPath) bool { return p.id == id })
	if r.told[prefix] = left; len(left) == 0 {
		delete(r.told, prefix)
	}
}

// Expect notes what is due of a prefix from now on.
func (r *AdjRIBOut) Expect(prefix netip.Prefix, d Due) { r.due[prefix] = d }

// Wrong lists, in order, the prefixes of which the peer was told something else than what is due, once all that is due counts as written.
func (r *AdjRIBOut) Wrong(how Told) (out []netip.Prefix) {
	for prefix, d := range r.due {
		if r.right(prefix, d, how) {
			delete(r.due, prefix)
		} else {
			out = append(out, prefix)
		}
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return out
}

func (r *AdjRIBOut) right(prefix netip.Prefix, d Due, how Told) bool {
	told, family := r.told[prefix], FamilyOf(prefix.Addr())
	if !how.OwnHop && !within(hopsOf(told), d.hops) || len(told) > len(d.hops) {
		return false
	}
	switch {
	case !slices.Contains(how.Sent, family):
		return len(told) == 0
	case slices.Contains(how.AddPath, family):
		return len(told) >= d.sure && (how.OwnHop || within(d.hops[:d.sure], hopsOf(told)))
	}
	return len(told) <= 1 && (len(told) == 1 || d.sure == 0 || d.sure < len(d.hops)) // which is the best one may be withheld
}

func hopsOf(told []toldPath) (out []hop) {
	for _, p := range told {
		out = append(out, p.nextHop)
	}
	return out
}

// within tells whether each of some is among others, as often.
func within(some, others []hop) bool {
	left := slices.Clone(others)
	for _, h := range some {
		i := slices.Index(left, h)
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return true
}
