// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// byOthers are the addresses at which nodes are to take connections to a Service, though other controllers gave it those (K32): what its
// status shows is what this group wrote or what they did, and ours are in the record, or in a pool. It is so where nodes do the work of
// kube-proxy, and of a Service of whatever type.
func (p *planner) byOthers(w *world.Service) (out []netip.Addr) {
	asked := p.in.Options.ClusterIPs || p.in.Options.NodePorts
	if len(w.Shown) == 0 || !asked || p.format < formatInPart || w.Foreign || w.Headless || w.Type == world.ExternalName ||
		!slices.ContainsFunc(w.Ports, func(port world.ServicePort) bool { return port.Port != 0 }) {
		return nil
	}
	for _, a := range w.Intercepted() {
		if !p.isOurs(a) {
			out = append(out, a)
		}
	}
	return out
}

// isOurs tells whether an address is one that the group gives, or has not taken back for good.
func (p *planner) isOurs(a netip.Addr) bool {
	if len(p.in.Record.Owners(a.String())) > 0 {
		return true
	}
	if _, routed := fsm.Get[*fsm.Route](p.in.Record, fsm.TableRoutes, fsm.HostPrefix(a).String()); routed {
		return true
	}
	if p.pools != nil {
		return p.poolWith(a) != nil
	}
	return slices.ContainsFunc(fsm.List[*fsm.Pool](p.in.Record, fsm.TablePools), func(pool *fsm.Pool) bool { return pool.Contains(a) })
}

// settleByOthers leaves to others what is nobody's else: an address that this plan gives, or a ClusterIP, is not theirs.
func (p *planner) settleByOthers() {
	if !p.in.Options.ClusterIPs && !p.in.Options.NodePorts || p.format < formatInPart {
		return
	}
	inside := map[netip.Addr]bool{}
	for _, s := range p.services {
		for _, a := range s.next.ClusterIPs {
			inside[a] = true
		}
	}
	for _, s := range p.services {
		taken := func(a netip.Addr) bool { return inside[a] || len(p.claims[a]) > 0 || p.isOurs(a) }
		if slices.ContainsFunc(s.next.ByOthers(), taken) {
			rare := s.change().Besides()
			rare.ByOthers = slices.DeleteFunc(slices.Clone(rare.ByOthers), taken)
			s.next.SetRare(rare)
		}
	}
}
