// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// formatInPart is the first format of the record that has Services in part: node ports and ClusterIPs of those without an address, and
// addresses that others gave them.
const formatInPart = 2

// inPart tells whether a Service that is not ours to serve as a load balancer is served for what it names: addresses of
// spec.externalIPs (K4), node ports (K2), ClusterIPs (K1), and what other controllers gave it (K32). It gets nothing of ours, and nothing is written to its status.
func (p *planner) inPart(w *world.Service) bool {
	return p.format >= formatInPart && !w.Foreign && (len(externalOf(w)) > 0 || p.servesNodePorts(w) || p.servesInside(w) || len(p.byOthers(w)) > 0)
}

// servedInPart leaves of a Service what is served of one that is so in part. Source ranges are for addresses (K29), and health checks for
// load balancers of ours (K24).
func servedInPart(w *world.Service, next *fsm.Service, rare *fsm.Rare) {
	rare.Requested, rare.External, next.HealthCheckNodePort = nil, externalOf(w), 0
	if len(rare.External) == 0 {
		rare.SharingKey, next.AllNodes, rare.Advertisements = "", false, nil
	}
	if len(rare.External)+len(rare.ByOthers) == 0 {
		rare.SourceRanges = nil
	}
}

// externalOf are the addresses of spec.externalIPs that a Service is reached by which is not ours to serve as a load balancer. One of
// type LoadBalancer is its own class' business (K28), and a Service without a cluster address has none (K5, K6).
func externalOf(w *world.Service) []netip.Addr {
	if w.Headless || w.Type != world.ClusterIP && w.Type != world.NodePort {
		return nil
	}
	return w.ExternalIPs
}

// servesInside tells whether nodes are to know a Service by its ClusterIPs. Of one that another service proxy serves they are that one's.
func (p *planner) servesInside(w *world.Service) bool {
	return p.in.Options.ClusterIPs && p.format >= formatInPart && !w.Foreign && !w.Headless && w.Type != world.ExternalName && len(w.ClusterIPs) > 0 &&
		slices.ContainsFunc(w.Ports, func(port world.ServicePort) bool { return port.Port != 0 })
}

// settleClusterIPs has every ClusterIP be one Service's. Within one API server they are, but a Service may be kept that is gone, or only
// shown as it was: one that is shown now goes before it, and among those the older.
func (p *planner) settleClusterIPs() {
	if !p.in.Options.ClusterIPs || p.format < formatInPart {
		return
	}
	taken := map[netip.Addr]bool{}
	order := p.byAge()
	for _, shown := range []bool{true, false} {
		for _, w := range order {
			if shown != (w.seen != nil) {
				continue
			}
			if slices.ContainsFunc(w.next.ClusterIPs, func(a netip.Addr) bool { return taken[a] }) {
				w.change().ClusterIPs = slices.DeleteFunc(slices.Clone(w.next.ClusterIPs), func(a netip.Addr) bool { return taken[a] })
			}
			for _, a := range w.next.ClusterIPs {
				taken[a] = true
			}
		}
	}
}
