// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api"
)

// Policy converts an address policy. An allowed address that cannot be read is left out, since that allows less; what would
// allow more makes the policy unusable.
func Policy(o *api.AddressPolicy) (world.AddressPolicy, []world.Problem) {
	meta, r := open(world.KindPolicy, &o.ObjectMeta, false)
	p := world.AddressPolicy{
		Meta: meta, Homed: homed(&o.ObjectMeta), Namespaces: slices.Clone(o.Spec.Namespaces), LimitsExternalIPs: o.Spec.ExternalIPs != nil,
		NamespaceSelectors: r.selectors("spec.namespaceSelectors", o.Spec.NamespaceSelectors),
	}
	if n := o.Spec.MaxAddresses; n != nil {
		if *n < 0 {
			r.fail("spec.maxAddresses", "use 0 or more, or leave it out for any number", "%d is no number of addresses", *n)
		}
		p.HasQuota, p.MaxAddresses = true, int(*n)
	}
	for i, text := range o.Spec.ExternalIPs {
		field := fmt.Sprintf("spec.externalIPs[%d]", i)
		read := report{object: r.object}
		allowed, ok := read.span(field, strings.TrimSpace(text))
		for _, found := range read.problems {
			r.degrade(field, found.Remedy, "%s; it allows nothing", found.Why)
		}
		if ok {
			p.ExternalIPs = addTo(p.ExternalIPs, allowed)
		}
	}
	if !p.HasQuota && !p.LimitsExternalIPs {
		r.degrade("spec", "give maxAddresses or externalIPs", "it limits nothing")
	}
	return p, r.problems
}

// Namespace converts a Namespace.
func Namespace(o *corev1.Namespace) (world.Namespace, []world.Problem) {
	meta, r := open(world.KindNamespace, &o.ObjectMeta, false)
	return world.Namespace{Meta: meta, Labels: kvs(o.Labels, all)}, r.problems
}
