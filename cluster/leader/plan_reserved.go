// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// reserved is what the cluster itself is reached by: no Service comes to have such an address, be it that it names it or that a pool has it.
type reserved struct {
	addresses map[netip.Addr]string   // whose each is, as the end of "it is"
	prefixes  map[netip.Prefix]string // likewise
	bits      []int                   // how many bits the prefixes have, each once
}

// kubernetesService is the one by which pods reach the API server.
func kubernetesService() world.ID { return world.ID{Namespace: "default", Name: "kubernetes"} }

// ofCluster tells whose of the cluster itself an address is that a Service names, or that a pool has, as the end of "it is"; empty if nobody's.
func (p *planner) ofCluster(a netip.Addr) string {
	if p.reserved == nil {
		p.reserved = p.gatherReserved()
	}
	if whose, is := p.reserved.addresses[a]; is {
		return whose
	}
	for _, bits := range p.reserved.bits {
		if prefix, err := a.Prefix(bits); err == nil {
			if whose, is := p.reserved.prefixes[prefix]; is {
				return whose
			}
		}
	}
	return ""
}

// gatherReserved looks through nodes, peers, members and Services, once in a plan in which somebody names an address. Endpoints are not among it, but
// those of the API server: whoever may write a slice could keep addresses from others.
func (p *planner) gatherReserved() *reserved {
	r := &reserved{addresses: map[netip.Addr]string{}, prefixes: map[netip.Prefix]string{}}
	for prefix, whose := range p.clusterPrefixes {
		r.reserve(prefix, "in "+prefix.String()+whose())
	}
	p.reserveClusterIPs(r)
	for _, slice := range p.seen.slicesOf(kubernetesService()) {
		for i := range slice.Endpoints {
			r.addresses[slice.Endpoints[i].Address] = "an address of the API server"
		}
	}
	for _, m := range fsm.List[*fsm.Member](p.in.Record, fsm.TableMembers) {
		for _, at := range []string{m.Raft, m.API} {
			if ap, err := netip.ParseAddrPort(at); err == nil {
				r.addresses[ap.Addr().Unmap()] = "the address of member " + m.Name
			}
		}
	}
	for _, id := range p.nodeIDs {
		for _, a := range slices.Concat(p.nodes[id].next.Others, p.nodes[id].next.Addresses) {
			r.addresses[a] = "the address of node " + string(id)
		}
	}
	for a, peer := range p.peerWith {
		r.addresses[a] = "the address of BGP peer " + string(peer)
	}
	return r
}

// clusterPrefixes yields what pods and Services have addresses of inside the cluster, and how that is said behind the prefix.
func (p *planner) clusterPrefixes(yield func(prefix netip.Prefix, whose func() string) bool) {
	for _, prefix := range p.in.Options.ClusterCIDRs {
		if !yield(prefix.Masked(), func() string { return " of clusterCIDRs" }) {
			return
		}
	}
	for _, prefix := range p.in.ServiceCIDRs {
		if !yield(prefix.Masked(), func() string { return ", of which Services have ClusterIPs (ServiceCIDR)" }) {
			return
		}
	}
	for _, n := range p.seen.nodes {
		for _, prefix := range n.PodCIDRs {
			if !yield(prefix.Masked(), func() string { return ", of which pods of node " + n.Name + " have addresses" }) {
				return
			}
		}
	}
}

// reserveClusterIPs looks for those addresses alone that a Service names, or a pool has: of ClusterIPs there are very many.
func (p *planner) reserveClusterIPs(r *reserved) {
	named := map[netip.Addr]bool{}
	for _, s := range p.services {
		for _, a := range s.next.External() {
			named[a] = true
		}
	}
	for _, w := range p.seen.services {
		for _, a := range w.ClusterIPs {
			if named[a] || p.poolWith(a) != nil {
				r.addresses[a] = "the ClusterIP of Service " + w.ID.String()
			}
		}
	}
}

func (r *reserved) reserve(prefix netip.Prefix, whose string) {
	r.prefixes[prefix] = whose
	if bits := prefix.Bits(); !slices.Contains(r.bits, bits) {
		r.bits = append(r.bits, bits)
	}
}
