// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api/balancing/v1beta1"
	"fairlead.io/fairlead/k8s/convert"
)

// redirects makes the lines to the policies of client-side balancing.
func (s *Source) redirects(o *Options) []publisher {
	balancing := kind[world.BalancingPolicy]{world.KindBalancingPolicy,
		func(w *world.World) *[]*world.BalancingPolicy { return &w.BalancingPolicies }, func(v *world.BalancingPolicy) *world.Meta { return &v.Meta }}
	local := kind[world.LocalRedirectPolicy]{world.KindLocalRedirect,
		func(w *world.World) *[]*world.LocalRedirectPolicy { return &w.LocalRedirectPolicies }, func(v *world.LocalRedirectPolicy) *world.Meta { return &v.Meta }}
	return []publisher{
		redirectKind(s, o, balancing, balancingPolicies(), convert.BalancingPolicy),
		redirectKind(s, o, local, localRedirects(), convert.LocalRedirectPolicy),
	}
}

// redirectKind keeps a kind of policies.
func redirectKind[K, T any](s *Source, o *Options, k kind[T], r schema.GroupVersionResource, turn func(*K) (T, []world.Problem)) *rack[T] {
	l := s.newLine(k.name, r.Resource)
	l.versions = []schema.GroupVersion{r.GroupVersion()}
	one := k.shelf(l, untyped(k, turn))
	one.mirror = o.showing(k.name)
	return k.rack(one)
}

func balancingPolicies() schema.GroupVersionResource {
	return v1beta1.GroupVersion().WithResource("balancingpolicies")
}

func localRedirects() schema.GroupVersionResource {
	return v1beta1.GroupVersion().WithResource("localredirectpolicies")
}
