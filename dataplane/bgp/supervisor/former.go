// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
)

// former are peers that are gone and may keep what they were told by children that ended.
type former map[netip.Addr]time.Time // until when

// lost notes the peers of a child that ended.
func (f *former) lost(desired *bgp.Desired, now time.Time) {
	if desired == nil {
		return
	}
	for _, p := range desired.Peers {
		f.met(p, now)
	}
}

// met notes a peer that may keep what it was told until now, also by an earlier run.
func (f *former) met(p bgp.Peer, now time.Time) {
	if *f == nil {
		*f = former{}
	}
	p = p.Normal(0)
	if until := now.Add(p.Keeps()); until.After((*f)[p.Address]) {
		(*f)[p.Address] = until
	}
}

// handOver leaves to the child, before it is told anything, what it knows of peers: whom it takes leave of drops what former children told, too.
// Who calls it has the turn. A child that does not answer fails at what it is told next.
func (s *Speaker) handOver() {
	if len(s.former) == 0 {
		return
	}
	if a, err := s.ask(request{Do: doLinks}); err == nil {
		s.former.with(a.Links, time.Now())
	}
}

// with adds those that are not in links, by address. A child tells itself of peers that it was told of.
func (f former) with(links []bgp.Link, now time.Time) []bgp.Link {
	for _, l := range links {
		delete(f, l.Peer)
	}
	for peer, until := range f {
		if now.After(until) {
			delete(f, peer)
			continue
		}
		links = append(links, bgp.Link{Peer: peer})
	}
	slices.SortFunc(links, func(l, m bgp.Link) int { return l.Peer.Compare(m.Peer) })
	return links
}
