// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
)

// adopts tells whether a claim may be granted in quarantine: once everything was read, what users were told is the
// owner's. Who owns an address by the record was found before, and comes first.
func (p *planner) adopts(c *claim) bool {
	c.adopted = p.quarantined && p.format >= fsm.FormatAdoption && p.seen.complete() && slices.Contains(c.owner.seen.Shown, c.address)
	return c.adopted
}

// grantShown gives a Service that names no address, and lacks some, those that its status shows: it had them, of a group
// that has forgotten that or of somebody else, and clients know them. One that is on its way back is waited for, unless that
// may take until somebody mends a node.
func (p *planner) grantShown(s *wish) {
	if len(s.seen.Shown) == 0 {
		return
	}
	needs := needsOf(s.seen)
	for _, c := range s.claims {
		meet(needs, c.address)
	}
	for _, a := range s.seen.Shown {
		pool := p.poolWith(a)
		if s.claimed(a) || pool == nil || !p.usable(pool, s, "") || p.isReached(a) {
			continue
		}
		c := p.newClaim(s, a, pool.name)
		switch {
		case p.conflict(c) != nil || p.quarantined && !p.adopts(c) || !p.quarantined && (pool.drain || p.overQuota(c)):
			continue
		case p.comesBack(c):
			if !p.isStuck(c) && meet(needs, a) {
				s.awaits = append(s.awaits, a)
				s.wait(PendingTaken, fmt.Sprintf("%s is its address as users know it, and is being taken back from another Service; it is free once no path to it can be left", a))
			}
		case meet(needs, a):
			p.grant(c)
		}
	}
}

// comesBack tells whether an address is still being taken back from somebody.
func (p *planner) comesBack(c *claim) bool {
	_, _, lingers := p.lingering(c)
	return lingers || p.leaving(c) != nil
}

// isStuck tells whether an address comes back only once a node has carried something out whose agent does not run.
func (p *planner) isStuck(c *claim) bool {
	r := p.routeOf[c.address]
	return r != nil && slices.ContainsFunc(r.Closing, func(closing fsm.Closing) bool {
		node, lingers := r.Lingers(closing, p.nodeOfRecord, p.settings)
		n := p.nodes[node]
		return lingers && slices.Contains(c.ports, closing.Port) && closing.Service != c.owner.id && (n == nil || n.liveness != fsm.NodeUp)
	})
}

// isReached tells whether a node or a switch is reached by an address.
func (p *planner) isReached(a netip.Addr) bool {
	_, node := p.nodeWith[a]
	_, peer := p.peerWith[a]
	return node || peer
}

// unheard finds an address that was adopted, and that none of its live nodes has taken up yet: members go on with what they
// announced before the restore until the quarantine ends, and there shall be something to announce then.
func (p *planner) unheard() (netip.Prefix, bool) {
	since := p.in.Record.Group().Quarantine
	for _, h := range p.allocations {
		r := p.routeOf[h.Address]
		if h.Releasing || h.Since.Before(since) || r == nil || p.isAnnounceable(h.Address) {
			continue
		}
		live := func(hop fsm.NextHop) bool {
			n := p.nodes[hop.Node()]
			return !hop.Withdrawing && n != nil && n.have != nil && n.liveness == fsm.NodeUp && n.have.Boot != "" && !slices.Contains(n.have.Failed, r.Prefix)
		}
		if slices.ContainsFunc(r.NextHops, live) {
			return r.Prefix, true
		}
	}
	return netip.Prefix{}, false
}
