// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// grantFromPools gives a Service that names no address one of each family that it wants: one that it may share, else the lowest free one.
func (p *planner) grantFromPools(s *wish) {
	needs := needsOf(s.seen)
	for _, c := range s.claims {
		meet(needs, c.address)
	}
	p.takeBack(s, needs)
	for _, a := range s.awaits {
		meet(needs, a)
	}
	p.shareFromPools(s, needs)
	for i := range needs {
		if !needs[i].met {
			needs[i].met = p.fromPools(s, needs[i].family)
		}
	}
	anyMet := slices.ContainsFunc(needs, func(n need) bool { return n.met })
	for _, n := range needs {
		if !n.met && (!n.optional || !anyMet) {
			p.explainUnmet(s, n.family)
		}
	}
}

// takeBack gives a Service its own address again while it is on its way back to the pool.
func (p *planner) takeBack(s *wish, needs []need) {
	for _, h := range p.heldBy[s.id] {
		pool := p.poolWith(h.Address)
		if !h.Releasing || pool == nil || pool.drain || !p.usable(pool, s, "") || p.quarantined {
			continue
		}
		c := p.newClaim(s, h.Address, pool.name)
		c.from = FromReturning
		if _, _, lingers := p.lingering(c); lingers || p.overQuota(c) || p.ofCluster(h.Address) != "" {
			continue
		}
		if p.conflict(c) == nil && p.leaving(c) == nil && meet(needs, h.Address) {
			p.grant(c)
		}
	}
}

// fromPools claims the lowest free address of a family, of either one if it is empty.
func (p *planner) fromPools(s *wish, family world.Family) bool {
	if p.quarantined || p.quotaReached(s) {
		return false
	}
	for _, f := range familiesOf(family) {
		for _, pool := range p.pools {
			if !p.givesTo(pool, s, f) {
				continue
			}
			if a, ok := pool.lowestFree(f, p.taken); ok {
				c := p.newClaim(s, a, pool.name)
				c.from = FromPool
				p.grant(c)
				return true
			}
		}
	}
	return false
}

func familiesOf(f world.Family) []world.Family {
	if f == "" {
		return []world.Family{world.IPv4, world.IPv6}
	}
	return []world.Family{f}
}

// usable tells whether a pool serves a Service with addresses of a family (of any if it is empty). One that is being
// emptied does, for what it gave already.
func (p *planner) usable(pool *poolPlan, s *wish, f world.Family) bool {
	wanted := pool.autoAssign
	if s.seen.Extras().Pool != "" {
		wanted = pool.name == fsm.PoolName(s.seen.Extras().Pool)
	}
	return wanted && pool.shown && p.serves(pool, s.seen) &&
		slices.ContainsFunc(pool.ranges, func(r fsm.Range) bool { return f == "" || world.FamilyOf(r.From) == f })
}

// givesTo tells whether a pool gives a Service addresses of a family that it did not have before.
func (p *planner) givesTo(pool *poolPlan, s *wish, f world.Family) bool {
	return !pool.drain && p.usable(pool, s, f)
}

// taken tells whether anybody has an address, in the record or in this plan, or is reached by it.
func (p *planner) taken(a netip.Addr) bool {
	return p.isReached(a) || len(p.claims[a]) > 0 || len(p.ownersOf[a]) > 0 || p.ofCluster(a) != ""
}

func (p *planner) explainUnmet(s *wish, f world.Family) {
	what := "addresses"
	if f != "" {
		what = string(f) + " addresses"
	}
	candidates := slices.ContainsFunc(familiesOf(f), func(f world.Family) bool {
		return slices.ContainsFunc(p.pools, func(pool *poolPlan) bool { return p.givesTo(pool, s, f) })
	})
	closing := ""
	for _, f := range familiesOf(f) {
		closing = cmp.Or(closing, p.closing[unshared{s.id, f}])
	}
	drained := slices.IndexFunc(p.pools, func(pool *poolPlan) bool { return pool.drain && p.usable(pool, s, f) })
	switch {
	case p.quarantined:
		p.explain(fsm.TableServices, string(s.id), WaitsForQuarantine, quarantineText)
	case candidates && p.quotaReached(s):
		s.wait(PendingQuota, p.quotaText(s))
	case candidates && closing != "":
		s.wait(PendingPort, closing)
	case candidates:
		s.wait(PendingExhausted, fmt.Sprintf("every pool that Service %s may use has run out of %s%s%s; add addresses to a pool, or delete Services", s.id, what, p.sayUnshared(s, f), p.sayWithheld(s, f)))
	case drained >= 0:
		s.wait(PendingNoPool, fmt.Sprintf("pool %s, which may give %s to Service %s, is being emptied; add addresses to another pool, or end its drain", p.pools[drained].name, what, s.id))
	case s.seen.Extras().Pool != "":
		s.wait(PendingNoPool, fmt.Sprintf("no IPAddressPool %s gives %s to namespace %s; add it, or ask for another pool", s.seen.Extras().Pool, what, s.seen.Namespace))
	default:
		s.wait(PendingNoPool, fmt.Sprintf("no IPAddressPool gives out %s to namespace %s; add one, or name an address in spec.externalIPs%s", what, s.seen.Namespace, s.leftToNodes()))
	}
}
