// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
)

// Origin is the ORIGIN attribute of a path (RFC 4271 §5.1.1).
type Origin uint8

// The zero value is incomplete, which is what the controllers before us announced: paths that differ in ORIGIN do not
// merge into one ECMP set, and a rolling migration needs them merged.
const (
	OriginIncomplete Origin = iota
	OriginIGP
	OriginEGP
)

// String returns the name that router configurations use.
func (o Origin) String() string {
	switch o {
	case OriginIncomplete:
		return "incomplete"
	case OriginIGP:
		return "igp"
	case OriginEGP:
		return "egp"
	}
	return "origin(" + strconv.Itoa(int(o)) + ")"
}

// Code is the number of RFC 4271 §5.1.1: the lower, the better.
func (o Origin) Code() uint8 {
	switch o {
	case OriginIGP:
		return 0
	case OriginEGP:
		return 1
	}
	return 2
}

// Community is a community of RFC 1997: the AS in the upper, the value in the lower 16 bits.
type Community uint32

// String returns the community as AS:value.
func (c Community) String() string { return fmt.Sprintf("%d:%d", uint32(c)>>16, uint32(c)&0xffff) }

// LargeCommunity is a community of RFC 8092.
type LargeCommunity struct {
	Global, Local1, Local2 uint32
}

// String returns the community as global:local1:local2.
func (c LargeCommunity) String() string { return fmt.Sprintf("%d:%d:%d", c.Global, c.Local1, c.Local2) }

// Path is one way to one prefix: the prefix, the node that serves it, and the attributes under which it is announced.
type Path struct {
	Prefix  netip.Prefix
	NextHop netip.Addr // usually not the speaker (a third-party next hop); of the prefix's family
	Origin  Origin
	// MED is announced always, 0 included: demotion changes its value, and an attribute that comes and goes would
	// change the size of UPDATE messages already packed. Below DemotionMED.
	MED              uint32
	LocalPref        uint32 // iBGP only; 0 stands for the default of 100, otherwise LowestLocalPref or more
	Communities      []Community
	LargeCommunities []LargeCommunity
	// Weight is the path's share of traffic, beside other paths of the prefix; 0 says nothing of it. Switches are told by the link
	// bandwidth community (draft-ietf-idr-link-bandwidth), a Mbit/s for each 1. At most MaxWeight.
	Weight uint32
	// Terms are those of peers to which the path is announced under other attributes, in order of their names. Withheld says
	// that nobody else is sent it.
	Terms    []Terms
	Withheld bool
	// PathID tells the paths of one prefix apart. AssignPathIDs sets it; it is the same on every speaker.
	PathID uint32
}

const (
	// MaxWeight is such that the bandwidth in bytes per second fits into 32 bits, where FRR keeps it.
	MaxWeight = 10_000
	// DemotionMED is added to the MED of every path while its peer is demoted. It is far above any MED in use, so that
	// every demoted path ranks behind every other one, while demoted paths keep their order among themselves.
	DemotionMED uint32 = 1_000_000_000
	// DefaultLocalPref is that of paths that have none of their own.
	DefaultLocalPref uint32 = 100
	// DemotedLocalPref is the local preference of every path towards a demoted iBGP peer.
	DemotedLocalPref uint32 = 1
	// LowestLocalPref is the lowest preference that a path can have of its own.
	LowestLocalPref = DemotedLocalPref + 1
)

// pathKey is what makes a path that path in a speaker's table.
type pathKey struct {
	prefix netip.Prefix
	id     uint32
}

func (p Path) key() pathKey { return pathKey{p.Prefix, p.PathID} }

// Compare orders paths by prefix, then next hop, then identifier.
func (p Path) Compare(q Path) int {
	return cmp.Or(
		p.Prefix.Addr().Compare(q.Prefix.Addr()),
		cmp.Compare(p.Prefix.Bits(), q.Prefix.Bits()),
		p.NextHop.Compare(q.NextHop),
		cmp.Compare(p.PathID, q.PathID),
	)
}

// Prefer tells, as a negative number, that path a of a prefix is better than path b by what they are announced with (RFC 4271 §9.1.2).
func Prefer(a, b Path) int {
	return cmp.Or(
		cmp.Compare(cmp.Or(b.LocalPref, DefaultLocalPref), cmp.Or(a.LocalPref, DefaultLocalPref)),
		cmp.Compare(a.Origin.Code(), b.Origin.Code()),
		cmp.Compare(a.MED, b.MED),
	)
}

// Equal says whether p and q are the same announcement. Communities are sets: their order does not count.
func (p Path) Equal(q Path) bool {
	p, q = p.Normal(), q.Normal()
	return p.Prefix == q.Prefix && p.NextHop == q.NextHop && p.Origin == q.Origin && p.MED == q.MED &&
		p.LocalPref == q.LocalPref && p.PathID == q.PathID && p.Weight == q.Weight &&
		slices.Equal(p.Communities, q.Communities) && slices.Equal(p.LargeCommunities, q.LargeCommunities) && p.Withheld == q.Withheld &&
		slices.EqualFunc(p.Terms, q.Terms, Terms.Equal)
}

// Normal returns p with communities sorted and without duplicates, so that equal paths give equal bytes on the wire.
func (p Path) Normal() Path {
	if len(p.Communities) > 0 {
		c := slices.Clone(p.Communities)
		slices.Sort(c)
		p.Communities = slices.Compact(c)
	}
	if len(p.LargeCommunities) > 0 {
		c := slices.Clone(p.LargeCommunities)
		slices.SortFunc(c, LargeCommunity.compare)
		p.LargeCommunities = slices.Compact(c)
	}
	p.Terms = normalTerms(p.Terms)
	return p
}

func (c LargeCommunity) compare(d LargeCommunity) int {
	return cmp.Or(cmp.Compare(c.Global, d.Global), cmp.Compare(c.Local1, d.Local1), cmp.Compare(c.Local2, d.Local2))
}

// String names the path in errors and logs.
func (p Path) String() string { return p.Prefix.String() + " via " + p.NextHop.String() }
