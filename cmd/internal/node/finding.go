// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/ndp"
	"fairlead.io/fairlead/dataplane/bgp/share"
)

// errNoLinks says that this agent was built without a way to find neighbours.
var errNoLinks = errors.New("this agent finds no neighbours by interface")

// unfound is why a peer behind an interface is left out, or goes on with an address that may be no longer its own.
type unfound struct {
	name, on, why string
	out           bool // the peer is left out
	since         time.Time
	said          bool
}

// saidAfter is for how long something is in the way of a peer before that is said: a switch takes a moment to answer.
const saidAfter = 3 * time.Second

// neighboursOf are those of what an earlier run announced, by interface. They are who is there until somebody else is: sessions go on
// over a restart before the switch advertises itself again, and withdrawals wait for what it may keep.
func neighboursOf(peers []bgp.Peer) map[string]netip.Addr {
	out := map[string]netip.Addr{}
	for _, p := range peers {
		if p.Unnumbered() {
			out[p.Address.Zone()] = p.Address
		}
	}
	return out
}

func interfacesOf(peers []share.UnnumberedPeer) (names []string) {
	for _, p := range peers {
		names = append(names, p.Interface)
	}
	return names
}

// find gives peers behind interfaces the addresses of the neighbours that are there, and leaves out those that have none; s.mu is held.
// Of two with one address, the one stays that had it before.
func (s *speaking) find() (peers []bgp.Peer) {
	if !s.told {
		return nil
	}
	before, now := s.unfound, time.Now()
	s.unfound = nil
	owner, found := map[netip.Addr]string{}, map[string]netip.Addr{}
	leave := func(p share.UnnumberedPeer, why string, out bool) {
		u := unfound{name: p.Name, on: p.Interface, why: why, out: out, since: now}
		for _, b := range before {
			if b.name == u.name && b.on == u.on && b.why == u.why && b.out == u.out {
				u = b
			}
		}
		s.unfound = append(s.unfound, u)
	}
	for _, first := range []bool{true, false} {
		for _, p := range s.peers.Unnumbered {
			address, err := s.links.find(p.Interface)
			had := s.neighbours[p.Interface]
			known := err != nil && had.IsValid()
			if known {
				address = had
			}
			if first != (address.IsValid() && address == had) {
				continue
			}
			other, taken := owner[address.WithZone("")]
			switch {
			case !address.IsValid():
				leave(p, reasonOf(err), true)
				continue
			case taken:
				leave(p, fmt.Sprintf("the router behind interface %s has the link-local address %s, which the one behind %s has, too; give the interfaces of "+
					"switches different ones", p.Interface, address.WithZone(""), other), true)
				continue
			case known && !errors.Is(err, ndp.ErrNobody):
				leave(p, reasonOf(err), false)
			}
			owner[address.WithZone("")], found[p.Interface] = p.Interface, address
			p.Address = address
			peers = append(peers, p.Peer)
		}
	}
	for _, p := range s.peers.Unnumbered {
		had := s.neighbours[p.Interface]
		if _, ok := found[p.Interface]; !ok && had.IsValid() && owner[had.WithZone("")] == "" {
			found[p.Interface] = had
		}
	}
	s.neighbours = found
	return peers
}

// reasonOf says why no neighbour is found, and what to do.
func reasonOf(err error) string {
	remedy := "the agent goes on trying"
	switch {
	case errors.Is(err, ndp.ErrNobody):
		remedy = "have the switch send router advertisements there"
	case errors.Is(err, ndp.ErrSeveral):
		remedy = "give the switch an address, and name it in spec.peerAddress"
	case errors.Is(err, fs.ErrPermission):
		remedy = "give the agent CAP_NET_RAW (component unnumbered, unnumbered.conf with systemd)"
	}
	return err.Error() + "; " + remedy
}

// sayUnfound logs what is in the way of peers behind interfaces, each once.
func (s *speaking) sayUnfound() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.unfound {
		u := &s.unfound[i]
		if u.said || time.Since(u.since) < saidAfter {
			continue
		}
		u.said = true
		if u.out {
			s.log.Error("peer left out: no neighbour found", "peer", u.name, "interface", u.on, "err", u.why)
		} else {
			s.log.Warn("peer goes on with the neighbour known last", "peer", u.name, "interface", u.on, "err", u.why)
		}
	}
}
