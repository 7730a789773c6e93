// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// Whoever may write a Service may write any address into spec.externalIPs, and nodes and switches would send traffic for it there: that of a
// name server, of the API server, of another tenant. So it takes an AddressPolicy that allows the address, and what the cluster itself is
// reached by is nobody's. What a Service has already it keeps, and people are told.

// ExternalIPs is what becomes of an address in spec.externalIPs that no AddressPolicy allows.
type ExternalIPs uint8

const (
	// DenyExternalIPs has no Service come to have one.
	DenyExternalIPs ExternalIPs = iota
	// WarnExternalIPs lets Services have them, as releases before AddressPolicies were asked for did, and tells of each.
	WarnExternalIPs
)

// leaveToNodes notes which addresses in spec.externalIPs are nodes' own. Kubernetes means such addresses first of all: they arrive at nodes by
// themselves, and kube-proxy answers there. So they are no wish for an address of a load balancer, and nothing that a Service lacks.
func (p *planner) leaveToNodes(s *wish) {
	for _, a := range s.next.External() {
		has := slices.ContainsFunc(p.heldBy[s.id], func(h *fsm.Allocation) bool { return h.Address == a })
		if _, own := p.nodeWith[a]; own && !has {
			s.atNodes = append(s.atNodes, a)
		}
	}
}

// leftToNodes names, for who looks for a reason, the addresses that are left to nodes.
func (s *wish) leftToNodes() string {
	if len(s.atNodes) == 0 {
		return ""
	}
	var own []string
	for _, a := range s.atNodes {
		own = append(own, a.String())
	}
	return " that is no node's own, as " + strings.Join(own, ", ") + " is"
}

// allowsExternal judges an address that a Service names in spec.externalIPs, and that it does not have.
func (p *planner) allowsExternal(s *wish, a netip.Addr) bool {
	if whose := p.ofCluster(a); whose != "" {
		s.wait(PendingInvalid, fmt.Sprintf("%s is %s; ask for another one", a, whose))
		return false
	}
	if !p.seen.everListed(world.KindPolicy) {
		s.wait(PendingForbidden, unlistedText)
		return false
	}
	why := p.notAllowed(s, a)
	if why != "" {
		s.wait(PendingForbidden, why)
	}
	return why == ""
}

// mayName tells whether it is known that a Service may name an address in spec.externalIPs.
func (p *planner) mayName(s *wish, a netip.Addr) bool {
	return p.seen.everListed(world.KindPolicy) && p.ofCluster(a) == "" && p.notAllowed(s, a) == ""
}

// notAllowed tells why a Service may not come to have an address by spec.externalIPs; empty if it may.
func (p *planner) notAllowed(s *wish, a netip.Addr) string {
	namespace := idOf(s.id).Namespace
	if pool := p.poolOfOthers(s, a); pool != "" {
		return fmt.Sprintf("%s is in pool %s, which is not for Service %s, and spec.externalIPs is no way into it; name another address, or have the pool's serviceAllocation choose the Service",
			a, pool, s.id)
	}
	if policy := p.forbidding(namespace, a); policy != nil {
		return fmt.Sprintf("AddressPolicy %s does not let namespace %s have %s in spec.externalIPs; name another address, or add it to the policy's externalIPs",
			policy.Name, namespace, a)
	}
	if p.in.Options.ExternalIPs == DenyExternalIPs && !p.permitted(namespace, a) {
		return fmt.Sprintf("no AddressPolicy lets namespace %s have %s in spec.externalIPs; name another address, or add it to the externalIPs of one", namespace, a)
	}
	return ""
}

// forbidding finds a policy that does not let a namespace name an address in spec.externalIPs.
func (p *planner) forbidding(namespace string, a netip.Addr) *world.AddressPolicy {
	for _, policy := range p.seen.policies {
		if policy.LimitsExternalIPs && !lists(policy, a) && p.policyAbout(policy, namespace) {
			return policy
		}
	}
	return nil
}

// permitted tells whether some policy that is certainly about a namespace lets it name an address in spec.externalIPs. That of a namespace whose
// labels are not known may be about it, and then it takes away, but gives nothing.
func (p *planner) permitted(namespace string, a netip.Addr) bool {
	return slices.ContainsFunc(p.seen.policies, func(policy *world.AddressPolicy) bool {
		known := len(policy.NamespaceSelectors) == 0 || slices.Contains(policy.Namespaces, namespace) || p.seen.namespaces[namespace] != nil
		return known && lists(policy, a) && p.policyAbout(policy, namespace)
	})
}

func lists(policy *world.AddressPolicy, a netip.Addr) bool {
	return slices.ContainsFunc(policy.ExternalIPs, func(r world.Range) bool { return r.Contains(a) })
}

// poolOfOthers names the pool that has an address and is not for a Service; empty if there is none. Whom a pool is for that no source shows, nobody
// knows.
func (p *planner) poolOfOthers(s *wish, a netip.Addr) fsm.PoolName {
	pool := p.poolWith(a)
	if pool == nil || pool.shown && s.seen != nil && p.serves(pool, s.seen) {
		return ""
	}
	return pool.name
}

// explainExternal tells of a Service what it has by spec.externalIPs and would not get now: under the policy that forbids it, or of the Service.
func (p *planner) explainExternal(s *wish, beyond map[string][]string) {
	if s.seen == nil || !p.seen.everListed(world.KindPolicy) {
		return
	}
	namespace := idOf(s.id).Namespace
	var whys []string
	for _, c := range s.claims {
		if c.pool != "" {
			continue
		}
		whose, pool, policy := p.ofCluster(c.address), p.poolOfOthers(s, c.address), p.forbidding(namespace, c.address)
		switch {
		case whose != "":
			whys = append(whys, fmt.Sprintf("%s is %s, and is kept since it has it from before; take it out of spec.externalIPs", c.address, whose))
		case pool != "":
			whys = append(whys, fmt.Sprintf("%s is in pool %s, which is not for it, and is kept since it has it from before; take it out of spec.externalIPs", c.address, pool))
		case policy != nil:
			beyond[policy.Name] = append(beyond[policy.Name], fmt.Sprintf("%s of Service %s", c.address, s.id))
		case !p.permitted(namespace, c.address):
			whys = append(whys, fmt.Sprintf("no AddressPolicy lets namespace %s have %s, and it would not get it anew while the controllers' externalIPs is deny; add it to the externalIPs of an AddressPolicy, or take it out of the Service",
				namespace, c.address))
		}
	}
	if len(whys) > 0 {
		p.explain(fsm.TableServices, string(s.id), WaitsForPolicy, "spec.externalIPs: "+strings.Join(whys, "; "))
	}
}
