// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// Services with a sharing key that name no address come together on addresses of pools, by the rule for addresses that are named (may). Only
// what is given out anew is chosen so: who has an address keeps it.

// sharers are the addresses of a pool that Services of one key have in this plan: in order, then as they are given out.
type sharers struct {
	addresses []netip.Addr
	lowest    netip.Addr
	// owners are who has ports of the lowest address, once somebody asks, as far as the first claims to it go.
	owners  map[fsm.Port]fsm.ServiceID
	counted int
	// full counts, by port, how many of the first addresses have it already. Claims only come within a plan, so that these need no
	// second look.
	full map[fsm.Port]int
}

// sharedIn is where the Services of a key look for each other.
type sharedIn struct {
	key    string
	pool   fsm.PoolName
	family world.Family
}

// pairTries is among how many addresses a dual-stack Service looks for one whose Services have what it may share of the other family, too. Those
// that share most come first as a rule; the bound is for thousands that have one family.
const pairTries = 64

// shareFromPools has a Service join others of its key, in both families the same ones where that can be.
func (p *planner) shareFromPools(s *wish, needs []need) {
	if p.quarantined || s.sharingKey(netip.Addr{}) == "" {
		return
	}
	for _, c := range s.claims {
		p.joinFurther(s, c.address, needs)
	}
	for i := range needs {
		if needs[i].met {
			continue
		}
		if c := p.bestShared(s, needs, needs[i].family); c != nil {
			needs[i].met = true
			p.grant(c)
			p.joinFurther(s, c.address, needs)
		}
	}
}

// joinFurther has a Service share the families that it lacks with those that it shares an address with.
func (p *planner) joinFurther(s *wish, a netip.Addr, needs []need) {
	for i := range needs {
		if needs[i].met {
			continue
		}
		for _, o := range p.claims[a] {
			if c := p.companion(s, o.owner, needs[i].family); c != nil {
				needs[i].met = true
				p.grant(c)
				break
			}
		}
	}
}

// bestShared finds the first address of a family that a Service may share with Services that it may share all else with that it lacks, or else the
// first one that it may share; nil if there is none.
func (p *planner) bestShared(s *wish, needs []need, family world.Family) *claim {
	lacks := func(n need) bool { return !n.met && n.family != family }
	var first *claim
	tries := 0
	for c := range p.joinable(s, family) {
		if first == nil {
			first = c
		}
		whole := func(o *claim) bool {
			return !slices.ContainsFunc(needs, func(n need) bool { return lacks(n) && p.companion(s, o.owner, n.family) == nil })
		}
		if slices.ContainsFunc(p.claims[c.address], whole) {
			return c
		}
		if tries++; tries == pairTries {
			break
		}
	}
	return first
}

// companion is how a Service would share an address of a family with another one; nil if it may share none.
func (p *planner) companion(s, other *wish, family world.Family) *claim {
	if other == s {
		return nil
	}
	for _, o := range other.claims {
		pool := p.poolWith(o.address)
		if world.FamilyOf(o.address) != family || pool == nil || !p.givesTo(pool, s, family) {
			continue
		}
		if c := p.join(s, o.address, pool); c != nil {
			return c
		}
	}
	return nil
}

// joinable goes through how a Service would share addresses of a family, of either one if it is empty: pool by pool as they give out addresses.
func (p *planner) joinable(s *wish, family world.Family) iter.Seq[*claim] {
	key, ports := s.sharingKey(netip.Addr{}), portsOf(s.next)
	return func(yield func(*claim) bool) {
		p.gatherSharers()
		for _, f := range familiesOf(family) {
			for _, pool := range p.pools {
				of := p.shared[sharedIn{key, pool.name, f}]
				if of == nil || !p.givesTo(pool, s, f) {
					continue
				}
				for _, a := range of.without(ports, p.hasPort) {
					if c := p.join(s, a, pool); c != nil && !yield(c) {
						return
					}
				}
			}
		}
	}
}

// without leaves out the first addresses that have one of the ports already.
func (of *sharers) without(ports []fsm.Port, hasPort func(netip.Addr, fsm.Port) bool) []netip.Addr {
	skip := 0
	for _, port := range ports {
		n := of.full[port]
		for n < len(of.addresses) && hasPort(of.addresses[n], port) {
			n++
		}
		of.full[port] = n
		skip = max(skip, n)
	}
	return of.addresses[skip:]
}

// hasPort tells whether this plan gives a port of an address to somebody.
func (p *planner) hasPort(a netip.Addr, port fsm.Port) bool {
	return slices.ContainsFunc(p.claims[a], func(c *claim) bool { return slices.Contains(c.ports, port) })
}

// join is how a Service would share an address of a pool; nil if it may not, or not yet.
func (p *planner) join(s *wish, a netip.Addr, pool *poolPlan) *claim {
	c := p.newClaim(s, a, pool.name)
	c.from = FromShared
	if pool.avoids(a) || p.isReached(a) || p.ofCluster(a) != "" || p.conflict(c) != nil || p.leaving(c) != nil || p.overQuota(c) {
		return nil
	}
	for _, port := range c.ports {
		if former, _, lingers := p.stillLeads(c, port); lingers {
			p.noteClosing(s, a, lingeringText(a, port, former))
			return nil
		}
	}
	return c
}

// noteClosing keeps why a Service could not share an address yet, for when there is no other one.
func (p *planner) noteClosing(s *wish, a netip.Addr, text string) {
	of := unshared{s.id, world.FamilyOf(a)}
	if p.closing == nil {
		p.closing = map[unshared]string{}
	}
	if p.closing[of] == "" {
		p.closing[of] = text
	}
}

// sayUnshared tells why a Service that asks to share an address shares none of a family; empty if it does not ask. It names the lowest
// address of the first pool only: it is written to the record, and shall not change with every other one.
func (p *planner) sayUnshared(s *wish, family world.Family) string {
	key := s.sharingKey(netip.Addr{})
	switch {
	case s.next.SharingKey() == "":
		return ""
	case key == "":
		return ", and with externalTrafficPolicy Local and no selector it shares none"
	}
	p.gatherSharers()
	for _, f := range familiesOf(family) {
		for _, pool := range p.pools {
			if of := p.shared[sharedIn{key, pool.name, f}]; of != nil && p.givesTo(pool, s, f) {
				return ", and it cannot share " + p.sayTaken(s, of)
			}
		}
	}
	return ", and no Service that agreed to share with it (fairlead.io/allow-shared-ip, and fairlead.io/sharing-cross-namespace between namespaces" + samePods(s.next) + ") has one of them"
}

// samePods is what else Services have to agree in.
func samePods(s *fsm.Service) string {
	if s.Local {
		return "; with externalTrafficPolicy Local the same selector in one namespace"
	}
	return ""
}

// sayTaken names the lowest address of a Service's sharing key, and the port of it that the Service would need and another one has, by this
// plan or still by the record.
func (p *planner) sayTaken(s *wish, of *sharers) string {
	owners := p.ownersAt(of)
	for _, port := range portsOf(s.next) {
		if owner := owners[port]; owner != "" && owner != s.id {
			return fmt.Sprintf("%s with Service %s, which has port %s of it", of.lowest, owner, port)
		}
	}
	return of.lowest.String() + ", which is given to nobody else at present"
}

// ownersAt gives who has ports of the lowest address. Thousands may share one, and as many lack one.
func (p *planner) ownersAt(of *sharers) map[fsm.Port]fsm.ServiceID {
	if of.owners == nil {
		of.owners, of.counted = map[fsm.Port]fsm.ServiceID{}, 0
		for _, h := range p.ownersOf[of.lowest] {
			for _, port := range h.Ports() {
				of.owners[port] = h.Service
			}
		}
	}
	claims := p.claims[of.lowest]
	for _, c := range claims[of.counted:] {
		for _, port := range c.ports {
			of.owners[port] = c.owner.id
		}
	}
	of.counted = len(claims)
	return of.owners
}

// unshared is a family of which a Service has no address.
type unshared struct {
	service fsm.ServiceID
	family  world.Family
}

// gatherSharers finds who has addresses under a key, once somebody asks. Later grants are noted one by one.
func (p *planner) gatherSharers() {
	if p.shared != nil {
		return
	}
	p.shared = map[sharedIn]*sharers{}
	var shared []netip.Addr
	for a, claims := range p.claims {
		if claims[0].key != "" {
			shared = append(shared, a)
		}
	}
	slices.SortFunc(shared, netip.Addr.Compare)
	for _, a := range shared {
		p.noteSharer(p.claims[a][0])
	}
}

// noteSharer notes the first Service on an address. All that share it have its key.
func (p *planner) noteSharer(c *claim) {
	pool := p.poolWith(c.address)
	if c.key == "" || pool == nil {
		return
	}
	in := sharedIn{c.key, pool.name, world.FamilyOf(c.address)}
	if p.shared[in] == nil {
		p.shared[in] = &sharers{full: map[fsm.Port]int{}}
	}
	of := p.shared[in]
	of.addresses = append(of.addresses, c.address)
	if !of.lowest.IsValid() || c.address.Less(of.lowest) {
		of.lowest, of.owners = c.address, nil
	}
}
