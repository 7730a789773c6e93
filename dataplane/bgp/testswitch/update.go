// SPDX-License-Identifier: Apache-2.0

package testswitch

import (
	"net/netip"
	"slices"
	"time"

	wire "github.com/osrg/gobgp/v4/pkg/packet/bgp"
)

// read takes in messages until the session ends, and says why it did.
func (s *Switch) read(x *session) error {
	for {
		deadline := time.Time{}
		if x.hold > 0 {
			deadline = time.Now().Add(x.hold)
		}
		if err := x.conn.SetReadDeadline(deadline); err != nil {
			return err
		}
		m, err := readMessage(x.conn, x.options)
		if err != nil {
			return err
		}
		switch body := m.Body.(type) {
		case *wire.BGPNotification:
			return errNotified
		case *wire.BGPUpdate:
			s.update(x, body)
		}
	}
}

// update takes in an UPDATE: withdrawals and announcements of both ways of writing them (RFC 4271, RFC 4760).
func (s *Switch) update(x *session, u *wire.BGPUpdate) {
	route := Route{RouterID: x.n.RouterID, LocalPref: 100}
	announced, withdrawn := u.NLRI, u.WithdrawnRoutes
	var announced6, withdrawn6 []wire.PathNLRI
	var nextHop6 netip.Addr
	for _, a := range u.PathAttributes {
		switch a := a.(type) {
		case *wire.PathAttributeOrigin:
			route.Origin = a.Value
		case *wire.PathAttributeAsPath:
			for _, p := range a.Value {
				route.ASPathLen += p.ASLen()
			}
		case *wire.PathAttributeNextHop:
			route.NextHop = a.Value.Unmap()
		case *wire.PathAttributeMultiExitDisc:
			route.MED = a.Value
		case *wire.PathAttributeLocalPref:
			route.LocalPref = a.Value
		case *wire.PathAttributeMpReachNLRI:
			announced6, nextHop6 = a.Value, a.Nexthop.Unmap()
		case *wire.PathAttributeMpUnreachNLRI:
			withdrawn6 = a.Value
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.n.conn != x.conn {
		return
	}
	if end, f := u.IsEndOfRib(); end {
		s.dropStale(x.n, fromWire(f))
	} else {
		x.n.updates++
	}
	for _, p := range slices.Concat(withdrawn6, withdrawn) {
		s.withdraw(prefixOf(p), source{x.n.RouterID, p.ID})
	}
	s.announce(route, announced)
	route.NextHop = nextHop6
	s.announce(route, announced6)
	s.signal()
}

func (s *Switch) withdraw(p netip.Prefix, of source) {
	_, had := s.rib[p]
	s.rib.remove(p, of)
	if _, has := s.rib[p]; had && !has {
		s.lost[p]++
	}
}

func (s *Switch) announce(r Route, prefixes []wire.PathNLRI) {
	for _, p := range prefixes {
		r.Prefix, r.PathID = prefixOf(p), p.ID
		if r.Prefix.IsValid() && r.NextHop.IsValid() {
			s.rib.set(r)
		}
	}
}

// prefixOf returns the zero prefix for what is no prefix.
func prefixOf(p wire.PathNLRI) netip.Prefix {
	if n, ok := p.NLRI.(*wire.IPAddrPrefix); ok {
		return n.Prefix
	}
	return netip.Prefix{}
}
