// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// Policies limit what Services come to own. What they own already stays theirs, whatever a policy comes to say: an address
// that clients know is not taken from them for an edit.

// policyAbout tells whether a policy is about a namespace. If its labels are not known a selector may mean it: then the
// policy holds, since it only ever takes away.
func (p *planner) policyAbout(policy *world.AddressPolicy, namespace string) bool {
	if len(policy.Namespaces)+len(policy.NamespaceSelectors) == 0 || slices.Contains(policy.Namespaces, namespace) {
		return true
	}
	if n := p.seen.namespaces[namespace]; n != nil {
		return world.AnyMatches(policy.NamespaceSelectors, n.Labels)
	}
	return len(policy.NamespaceSelectors) > 0
}

// quotaOf finds the policy that lets a namespace have the fewest addresses; nil if it may have any number.
func (p *planner) quotaOf(namespace string) *world.AddressPolicy {
	var least *world.AddressPolicy
	for _, policy := range p.seen.policies {
		if policy.HasQuota && p.policyAbout(policy, namespace) && (least == nil || policy.MaxAddresses < least.MaxAddresses) {
			least = policy
		}
	}
	return least
}

// count notes that a claim is granted. Several Services of a namespace on one address have one address.
func (p *planner) count(c *claim) {
	if len(p.seen.policies) == 0 || c.pool == "" || p.sharesAtHome(c) {
		return
	}
	if p.used == nil {
		p.used = map[string]int{}
	}
	p.used[idOf(c.owner.id).Namespace]++
}

// sharesAtHome tells whether another Service of the same namespace has the address of a pool in this plan.
func (p *planner) sharesAtHome(c *claim) bool {
	return slices.ContainsFunc(p.claims[c.address], func(o *claim) bool {
		return o.pool != "" && idOf(o.owner.id).Namespace == idOf(c.owner.id).Namespace
	})
}

// quotaReached tells whether a Service may have no further address of a pool.
func (p *planner) quotaReached(s *wish) bool {
	if !p.seen.everListed(world.KindPolicy) {
		return true
	}
	namespace := idOf(s.id).Namespace
	quota := p.quotaOf(namespace)
	return quota != nil && p.used[namespace] >= quota.MaxAddresses
}

// overQuota tells whether a namespace would have more addresses of pools than it may by a claim.
func (p *planner) overQuota(c *claim) bool { return p.quotaReached(c.owner) && !p.sharesAtHome(c) }

func (p *planner) quotaText(s *wish) string {
	if !p.seen.everListed(world.KindPolicy) {
		return unlistedText
	}
	namespace := idOf(s.id).Namespace
	quota := p.quotaOf(namespace)
	return fmt.Sprintf("namespace %s has all the addresses of pools that AddressPolicy %s lets it have (%d); delete a Service there, let Services share an address, or raise maxAddresses",
		namespace, quota.Name, quota.MaxAddresses)
}

const unlistedText = "which addresses are allowed is not known: the AddressPolicies could not be listed yet; see the leader's log"

// explainPolicies names what Services have of before that policies would not let them have now.
func (p *planner) explainPolicies() {
	beyond := map[string][]string{} // by policy
	for _, s := range p.services {
		p.explainExternal(s, beyond)
	}
	for _, namespace := range sortedKeys(p.used) {
		if quota := p.quotaOf(namespace); quota != nil && p.used[namespace] > quota.MaxAddresses {
			beyond[quota.Name] = append(beyond[quota.Name], fmt.Sprintf("%s of namespace %s, where it allows %d",
				countedAddresses(p.used[namespace]), namespace, quota.MaxAddresses))
		}
	}
	for _, name := range sortedKeys(beyond) {
		p.explain(kindPolicies, name, WaitsForPolicy, "it takes nothing away, and does not allow what is there from before: "+
			fewOf(beyond[name])+"; create these Services anew or delete them, or let the policy allow that")
	}
}

// kindPolicies is what explanations call AddressPolicies. The record has no table of them: they limit what is put into it.
const kindPolicies fsm.Table = "addresspolicies"

func countedAddresses(n int) string {
	if n == 1 {
		return "one address"
	}
	return fmt.Sprintf("%d addresses", n)
}
