// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"net/netip"
	"time"

	wire "github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"fairlead.io/fairlead/dataplane/bgp"
)

// sentUpdate is what GoBGP says when it has written an UPDATE.
const sentUpdate = "sent update"

// update is what is in an UPDATE that GoBGP has written.
type update struct {
	announced, withdrawn []numbered
	nextHop              netip.Addr // of those that it announces
}

// numbered is a prefix with the identifier of a path, 0 without ADD-PATH.
type numbered struct {
	prefix netip.Prefix
	id     uint32
}

// updateOf reads an UPDATE that GoBGP tells of.
func updateOf(about attributes) (u update) {
	u.announced, u.withdrawn = numberedOf(about["nlri"].Any()), numberedOf(about["withdrawals"].Any())
	attrs, _ := about["attributes"].Any().([]wire.PathAttributeInterface)
	for _, a := range attrs {
		switch a := a.(type) {
		case *wire.PathAttributeNextHop:
			u.nextHop = a.Value.Unmap()
		case *wire.PathAttributeMpReachNLRI:
			u.announced, u.nextHop = append(u.announced, numberedOf(a.Value)...), a.Nexthop.Unmap()
		case *wire.PathAttributeMpUnreachNLRI:
			u.withdrawn = append(u.withdrawn, numberedOf(a.Value)...)
		}
	}
	return u
}

func numberedOf(nlri any) (out []numbered) {
	list, _ := nlri.([]wire.PathNLRI)
	for _, n := range list {
		if p, ok := n.NLRI.(*wire.IPAddrPrefix); ok {
			out = append(out, numbered{p.Prefix, n.ID})
		}
	}
	return out
}

// endOfRIB tells of which family an UPDATE that GoBGP tells of is End-of-RIB, if it is (RFC 4724 §2).
func endOfRIB(about attributes) (of bgp.Family, ok bool) {
	for _, key := range []string{"nlri", "withdrawals"} {
		if list, _ := about[key].Any().([]wire.PathNLRI); len(list) > 0 {
			return 0, false
		}
	}
	switch attrs, _ := about["attributes"].Any().([]wire.PathAttributeInterface); len(attrs) {
	case 0:
		return bgp.IPv4, true
	case 1:
		if gone, ok := attrs[0].(*wire.PathAttributeMpUnreachNLRI); ok && len(gone.Value) == 0 {
			return familyOf(wire.NewFamily(gone.AFI, gone.SAFI))
		}
	}
	return 0, false
}

// onWritten learns what GoBGP has written to a peer.
func (s *Speaker) onWritten(about attributes) {
	a, err := netip.ParseAddr(about["Key"].String())
	if err != nil {
		return
	}
	u := updateOf(about)
	family, ends := endOfRIB(about)
	a = s.zoned(a)
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	switch q := s.queues[a]; {
	case q == nil:
	case ends:
		q.wroteEnd(family, time.Now())
	default:
		q.wrote(u, time.Now())
	}
}
