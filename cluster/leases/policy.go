// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
)

// policy is what the record says of who may answer for what.
type policy struct {
	v    *fsm.View
	ads  []*fsm.L2Advertisement
	pool map[fsm.PoolName]bool
	// words are addresses, by nodes that an operator vouches do not answer for them any more.
	words map[fsm.NodeID][]string
}

func newPolicy(v *fsm.View) *policy {
	p := &policy{v: v, ads: fsm.List[*fsm.L2Advertisement](v, fsm.TableL2Advertisements), pool: map[fsm.PoolName]bool{}, words: words(v)}
	for _, a := range p.ads {
		for _, name := range a.Pools {
			p.pool[name] = true
		}
	}
	return p
}

// wanted lists the addresses that shall be answered for, in order.
func (p *policy) wanted() []netip.Addr {
	if len(p.pool) == 0 {
		return nil
	}
	var out []netip.Addr
	for _, a := range fsm.List[*fsm.Allocation](p.v, fsm.TableAllocations) {
		if !a.Releasing && p.pool[a.Pool()] {
			out = append(out, a.Address)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

// of lists the advertisements that an address is answered for by.
func (p *policy) of(vip netip.Addr) (ads []*fsm.L2Advertisement, pool fsm.PoolName) {
	for _, owner := range p.v.Owners(vip.String()) {
		if owner.Releasing || !p.pool[owner.Pool()] {
			continue
		}
		for _, a := range p.ads {
			if slices.Contains(a.Pools, owner.Pool()) {
				ads = append(ads, a)
			}
		}
		return ads, owner.Pool()
	}
	return nil, ""
}

// kept tells whether the holder of an address answers on when it cannot reach the group. One advertisement that says so
// is enough: to fall silent by mistake is what was to be avoided.
func (p *policy) kept(vip netip.Addr) bool {
	ads, pool := p.of(vip)
	return slices.ContainsFunc(ads, func(a *fsm.L2Advertisement) bool { return slices.Contains(a.Kept, pool) })
}

// interfaces are where a node is to answer for an address; none means all.
func (p *policy) interfaces(vip netip.Addr, node fsm.NodeID) []string {
	var out []string
	ads, _ := p.of(vip)
	for _, a := range ads {
		if !a.Admits(node) {
			continue
		}
		if len(a.Interfaces) == 0 {
			return nil
		}
		out = append(out, a.Interfaces...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// nodes lists those that may answer for an address: they have its rules, and serve it.
func (p *policy) nodes(vip netip.Addr) (out []*fsm.Node) {
	ads, _ := p.of(vip)
	r, routed := fsm.Get[*fsm.Route](p.v, fsm.TableRoutes, fsm.HostPrefix(vip).String())
	if len(ads) == 0 || !routed {
		return nil
	}
	for _, h := range r.NextHops {
		n, known := fsm.Get[*fsm.Node](p.v, fsm.TableNodes, string(h.Node()))
		admitted := slices.ContainsFunc(ads, func(a *fsm.L2Advertisement) bool { return a.Admits(h.Node()) })
		if known && admitted && !h.Withdrawing && n.Eligible && fsm.Announceable(r.Prefix, h, n, p.v.Group().Settings) {
			out = append(out, n)
		}
	}
	return out
}
