// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// Codes of fsm.Pending.
const (
	PendingNoPool    = "no-pool"         // no pool may give the Service an address
	PendingExhausted = "pool-exhausted"  // the pools that may have none left
	PendingOutside   = "outside-pools"   // the address asked for is in no pool that the Service may use
	PendingTaken     = "address-taken"   // another Service owns the address
	PendingInvalid   = "invalid-address" // the address is somebody's own
	PendingQuota     = "quota-exceeded"  // the namespace has as many addresses as an AddressPolicy lets it have
	PendingForbidden = "not-allowed"     // an AddressPolicy does not allow an address that is named in spec.externalIPs
	PendingPort      = "port-closing"    // nodes may still pass a port of the address to a Service that gave it up
)

// claim is an address that a Service shall own.
type claim struct {
	owner   *wish
	address netip.Addr
	pool    fsm.PoolName
	key     string
	ports   []fsm.Port
	// held are those of ports that the owner cannot have yet, since they may still lead to another one.
	held []fsm.Port
	have *fsm.Allocation // what the record says; nil if it is new
	// adopted says that users know the address as the owner's, and the record was restored and does not.
	adopted bool
	from    Code // where the address comes from; empty is FromPoolEarlier
}

// may tells whether two Services may own one address: they agreed to, and no port is meant twice (S3).
func may(keyA string, portsA []fsm.Port, keyB string, portsB []fsm.Port) bool {
	if keyA == "" || keyA != keyB {
		return false
	}
	return !slices.ContainsFunc(portsA, func(port fsm.Port) bool { return slices.Contains(portsB, port) })
}

// settled tells whether the record says just that.
func (c *claim) settled() bool {
	h := c.have
	return h != nil && !h.Releasing && h.Pool() == c.pool && h.SharingKey() == c.key && slices.Equal(h.Ports(), c.open())
}

// withinHave tells whether it asks for nothing that may be in the way of others and that it has not got already.
func (c *claim) withinHave() bool {
	more := func(port fsm.Port) bool { return !slices.Contains(c.have.Ports(), port) }
	return c.have.SharingKey() == c.key && !slices.ContainsFunc(c.ports, more)
}

// open are the ports that the owner can have now.
func (c *claim) open() []fsm.Port {
	if len(c.held) == 0 {
		return c.ports
	}
	return slices.DeleteFunc(slices.Clone(c.ports), func(port fsm.Port) bool { return slices.Contains(c.held, port) })
}

// grantAddresses decides who shall own which address. What is owned stays; among newcomers the older Service goes
// first, and addresses that somebody typed go before those that any pool may fill.
func (p *planner) grantAddresses() {
	order := p.byAge()
	for _, s := range order {
		if s.seen == nil && !s.going || p.quarantined {
			p.keepAllocations(s)
		}
	}
	for _, unchanged := range []bool{true, false} {
		for _, s := range order {
			if s.seen != nil {
				p.holdOn(s, unchanged)
			}
		}
	}
	for _, s := range order {
		if s.seen != nil {
			p.grantTyped(s)
		}
	}
	p.holdPorts()
	for _, s := range order {
		if s.isPooled() {
			p.grantShown(s)
		}
	}
	for _, s := range order {
		if s.isPooled() {
			p.grantFromPools(s)
		}
		if s.seen != nil && s.have != nil && p.quarantined {
			s.change().Pending = s.have.Pending // what it was told is decided anew afterwards
		}
	}
}

func (s *wish) created() uint32 {
	if s.seen == nil {
		return 0
	}
	return s.seen.Created
}

// typed lists the addresses that a Service names to have them.
func (s *wish) typed() []netip.Addr {
	external := s.next.External()
	if len(s.atNodes) > 0 {
		external = slices.DeleteFunc(slices.Clone(external), func(a netip.Addr) bool { return slices.Contains(s.atNodes, a) })
	}
	if len(s.next.Requested()) == 0 {
		return external
	}
	return slices.Concat(external, s.next.Requested())
}

// isPooled tells whether a Service is to have addresses that it does not name.
func (s *wish) isPooled() bool { return s.seen != nil && !s.part && len(s.typed()) == 0 }

// claimed finds what a Service has of an address in this plan.
func (s *wish) claimed(a netip.Addr) bool {
	return slices.ContainsFunc(s.claims, func(c *claim) bool { return c.address == a })
}

func (s *wish) wait(code, text string) {
	if s.next.Pending.Code == "" { // the first reason is the one to mend first
		s.change().Pending = fsm.Pending{Code: code, Text: fsm.Text(text, fsm.MaxPending)}
	}
}

// keepAllocations leaves a Service what it has, as it has it.
func (p *planner) keepAllocations(s *wish) {
	for _, h := range p.heldBy[s.id] {
		if !h.Releasing {
			p.grant(&claim{
				owner: s, address: h.Address, pool: h.Pool(), key: h.SharingKey(), ports: h.Ports(), have: h,
				from: typedFrom(s.next, h.Address, FromPoolEarlier),
			})
		}
	}
}

func (p *planner) grant(c *claim) {
	p.count(c)
	if p.shared != nil && len(p.claims[c.address]) == 0 {
		p.noteSharer(c)
	}
	p.claims[c.address] = append(p.claims[c.address], c)
	c.owner.claims = append(c.owner.claims, c)
}

// newClaim is what a Service would have of an address.
func (p *planner) newClaim(s *wish, a netip.Addr, pool fsm.PoolName) *claim {
	c := &claim{
		owner: s, address: a, pool: pool, key: s.sharingKey(a), ports: portsOf(s.next), from: typedFrom(s.next, a, FromPoolEarlier),
	}
	for _, h := range p.heldBy[s.id] {
		if h.Address == a {
			c.have = h
		}
	}
	return c
}

// holdOn claims what a Service owns and still asks for: at first what it asks for as the record has it, which no change
// of another Service takes away. Services that no longer may share are told so in order of age.
func (p *planner) holdOn(s *wish, unchanged bool) {
	held := p.heldBy[s.id]
	if len(held) == 0 {
		return
	}
	var needs []need
	auto := s.isPooled()
	if auto {
		needs = needsOf(s.seen)
		for _, c := range s.claims {
			meet(needs, c.address)
		}
	}
	for _, h := range held {
		if h.Releasing || s.claimed(h.Address) {
			continue
		}
		pool := h.Pool()
		in := p.poolWith(h.Address)
		if in != nil && pool != "" {
			pool = in.name // the address may have moved to a pool of another name
		}
		switch {
		case slices.Contains(s.next.External(), h.Address):
			if h.Pool() == "" || p.mayName(s, h.Address) {
				pool = ""
			} // else it still counts as one of a pool: naming it would be a way around the quota
		case slices.Contains(s.next.Requested(), h.Address):
			if in != nil {
				pool = in.name
			}
		case !auto || pool == "":
			continue
		default:
			var fits bool
			if pool, fits = p.keptIn(s, h.Pool(), pool); !fits || !meet(needs, h.Address) {
				continue
			}
		}
		c := p.newClaim(s, h.Address, pool)
		if unchanged && !c.withinHave() {
			continue
		}
		if p.conflict(c) == nil {
			p.grant(c)
			p.explainKept(c)
		}
	}
}

// keptIn tells whether a Service that names no address keeps one, which it had of a pool and which is in the same one now or in another, and as
// whose. Who asks for a pool keeps what that one gave, also when it is split or renamed: the pool was edited, not the Service.
func (p *planner) keptIn(s *wish, was, now fsm.PoolName) (fsm.PoolName, bool) {
	asked := fsm.PoolName(s.seen.Extras().Pool)
	if asked == "" || asked == now || !p.hasPool(asked) {
		return now, true
	}
	return was, was == asked
}

func (p *planner) hasPool(name fsm.PoolName) bool {
	return slices.ContainsFunc(p.pools, func(pool *poolPlan) bool { return pool.name == name })
}

// explainKept tells of a Service that asks for a pool which is not there, and has an address of another one: that pool was renamed, or its name
// is misspelt.
func (p *planner) explainKept(c *claim) {
	if asked := c.owner.seen.Extras().Pool; c.owner.isPooled() && asked != "" && c.pool != fsm.PoolName(asked) && !p.hasPool(fsm.PoolName(asked)) {
		c.owner.wait(PendingNoPool, fmt.Sprintf("no IPAddressPool %s gives addresses; the Service keeps %s, of pool %s, until one does; add it, or ask for another pool",
			asked, c.address, c.pool))
	}
}

// conflict finds a Service that the plan made an owner of the address and that does not share it.
func (p *planner) conflict(c *claim) *wish {
	for _, o := range p.claims[c.address] {
		if o.owner != c.owner && !may(c.key, c.ports, o.key, o.ports) {
			return o.owner
		}
	}
	return nil
}

// leaving finds an owner of record that shall be one no longer, but still is.
func (p *planner) leaving(c *claim) *fsm.Allocation {
	for _, h := range p.ownersOf[c.address] {
		stays := slices.ContainsFunc(p.claims[c.address], func(o *claim) bool { return o.owner.id == h.Service })
		if h.Service != c.owner.id && !stays && !may(c.key, c.ports, h.SharingKey(), h.Ports()) {
			return h
		}
	}
	return nil
}

// grantTyped claims the addresses that a Service names and does not own yet.
func (p *planner) grantTyped(s *wish) {
	for _, a := range s.typed() {
		if s.claimed(a) {
			continue
		}
		pool, ok := p.poolFor(s, a)
		if ok {
			p.grantNew(p.newClaim(s, a, pool))
		}
	}
}

// poolFor judges an address that a Service names, by what it is and by the pools.
func (p *planner) poolFor(s *wish, a netip.Addr) (fsm.PoolName, bool) {
	if node, ok := p.nodeWith[a]; ok {
		s.wait(PendingInvalid, fmt.Sprintf("%s is the address of node %s; ask for another one", a, node))
		return "", false
	}
	if peer, ok := p.peerWith[a]; ok {
		s.wait(PendingInvalid, fmt.Sprintf("%s is the address of BGP peer %s; ask for another one", a, peer))
		return "", false
	}
	if slices.Contains(s.next.External(), a) {
		return "", p.allowsExternal(s, a)
	}
	pool := p.poolWith(a)
	switch whose := p.ofCluster(a); {
	case whose != "" && !slices.Contains(s.seen.Shown, a):
		s.wait(PendingInvalid, fmt.Sprintf("%s is %s; ask for another one", a, whose))
	case pool == nil || !pool.shown:
		s.wait(PendingOutside, fmt.Sprintf("%s is in no IPAddressPool; add it to one, or ask for an address of a pool", a))
	case s.seen.Extras().Pool != "" && pool.name != fsm.PoolName(s.seen.Extras().Pool):
		s.wait(PendingOutside, fmt.Sprintf("%s is in pool %s, but pool %s is asked for; change one of the two", a, pool.name, s.seen.Extras().Pool))
	case !p.servesNamespace(pool, s.seen.Namespace):
		s.wait(PendingOutside, fmt.Sprintf("%s is in pool %s, which is not for namespace %s; add it to the pool's namespaces", a, pool.name, s.seen.Namespace))
	case !p.serves(pool, s.seen):
		s.wait(PendingOutside, fmt.Sprintf("%s is in pool %s, whose serviceSelectors do not choose the labels of Service %s; label it so, or ask for an address of another pool", a, pool.name, s.id))
	case pool.drain && !(p.quarantined && slices.Contains(s.seen.Shown, a)):
		s.wait(PendingOutside, fmt.Sprintf("%s is in pool %s, which is being emptied; ask for an address of another pool, or end its drain", a, pool.name))
	case pool.avoids(a) && !slices.Contains(s.seen.Shown, a):
		s.wait(PendingOutside, fmt.Sprintf("%s is in pool %s, whose avoidBuggyIPs keeps addresses back that end in .0 or .255; ask for another one, or turn avoidBuggyIPs off", a, pool.name))
	default:
		return pool.name, true
	}
	return "", false
}

// poolWith finds the pool that has an address.
func (p *planner) poolWith(a netip.Addr) *poolPlan {
	for _, pool := range p.pools {
		if pool.contains(a) {
			return pool
		}
	}
	return nil
}

// grantNew claims an address for a Service that does not own it, unless somebody else does.
func (p *planner) grantNew(c *claim) {
	if other := p.conflict(c); other != nil {
		c.owner.wait(PendingTaken, fmt.Sprintf("%s belongs to Service %s%s; ask for another one, or let both share it: "+
			"different ports, the same annotation fairlead.io/allow-shared-ip, and externalTrafficPolicy Cluster, or Local and the same selector", c.address, other.id, whyNotShared(c, other)))
		return
	}
	if h := p.leaving(c); h != nil {
		c.owner.wait(PendingTaken, fmt.Sprintf("%s is being taken back from Service %s; it is free once no path to it can be left", c.address, h.Service))
		return
	}
	if port, h, lingers := p.lingering(c); lingers {
		c.owner.wait(PendingPort, lingeringText(c.address, port, h))
		return
	}
	if c.pool != "" && !p.quarantined && p.overQuota(c) {
		c.owner.wait(PendingQuota, p.quotaText(c.owner))
		return
	}
	if p.quarantined && !p.adopts(c) {
		p.explain(fsm.TableServices, string(c.owner.id), WaitsForQuarantine, quarantineText)
		return
	}
	p.grant(c)
}

func whyNotShared(c *claim, other *wish) string {
	for _, port := range other.next.Ports() {
		if slices.Contains(c.ports, port) {
			return fmt.Sprintf(", which answers on port %d/%s too", port.Number, port.Protocol)
		}
	}
	if idOf(c.owner.id).Namespace != idOf(other.id).Namespace {
		return " of another namespace (both have to name both namespaces in fairlead.io/sharing-cross-namespace, too)"
	}
	return ""
}

// need is an address of some family that a Service is to have from a pool.
type need struct {
	family   world.Family // empty: either
	optional bool         // if another one is met
	met      bool
}

// needsOf tells of which families a Service wants addresses, primary first.
func needsOf(w *world.Service) []need {
	families := w.Families.List()
	switch w.FamilyPolicy {
	case world.PreferDualStack, world.RequireDualStack:
		for _, f := range []world.Family{world.IPv4, world.IPv6} {
			if !slices.Contains(families, f) {
				families = append(slices.Clip(families), f)
			}
		}
	case world.SingleStack:
		families = families[:min(1, len(families))]
	}
	if len(families) == 0 {
		return []need{{}}
	}
	needs := make([]need, len(families))
	for i, f := range families {
		needs[i] = need{family: f, optional: w.FamilyPolicy == world.PreferDualStack}
	}
	return needs
}

// meet uses an address for the first need that it fits, and tells whether there was one.
func meet(needs []need, a netip.Addr) bool {
	for i := range needs {
		if !needs[i].met && (needs[i].family == "" || needs[i].family == world.FamilyOf(a)) {
			needs[i].met = true
			return true
		}
	}
	return false
}
