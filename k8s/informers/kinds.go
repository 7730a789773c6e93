// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api"
	"fairlead.io/fairlead/k8s/convert"
	"fairlead.io/fairlead/k8s/unread"
)

// kind is one kind of values of the World.
type kind[T any] struct {
	name  world.Kind
	field func(*world.World) *[]*T
	meta  func(*T) *world.Meta
}

// makeRacks makes the lines to every resource, and what keeps their objects, kind by kind.
func (s *Source) makeRacks(o *Options) []publisher {
	core, discovery := s.api.Client.CoreV1(), s.api.Client.DiscoveryV1()
	service := kind[world.Service]{world.KindService,
		func(w *world.World) *[]*world.Service { return &w.Services }, func(v *world.Service) *world.Meta { return &v.Meta }}
	slice := kind[world.EndpointSlice]{world.KindEndpointSlice,
		func(w *world.World) *[]*world.EndpointSlice { return &w.EndpointSlices }, func(v *world.EndpointSlice) *world.Meta { return &v.Meta }}
	node := kind[world.Node]{world.KindNode,
		func(w *world.World) *[]*world.Node { return &w.Nodes }, func(v *world.Node) *world.Meta { return &v.Meta }}
	configMap := kind[world.ConfigMap]{world.KindConfigMap,
		func(w *world.World) *[]*world.ConfigMap { return &w.ConfigMaps }, func(v *world.ConfigMap) *world.Meta { return &v.Meta }}
	pool := kind[world.Pool]{world.KindPool,
		func(w *world.World) *[]*world.Pool { return &w.Pools }, func(v *world.Pool) *world.Meta { return &v.Meta }}
	peer := kind[world.Peer]{world.KindPeer,
		func(w *world.World) *[]*world.Peer { return &w.Peers }, func(v *world.Peer) *world.Meta { return &v.Meta }}
	advertisement := kind[world.Advertisement]{world.KindAdvertisement,
		func(w *world.World) *[]*world.Advertisement { return &w.Advertisements }, func(v *world.Advertisement) *world.Meta { return &v.Meta }}
	l2 := kind[world.L2Advertisement]{world.KindL2Advert,
		func(w *world.World) *[]*world.L2Advertisement { return &w.L2Advertisements }, func(v *world.L2Advertisement) *world.Meta { return &v.Meta }}
	policy := kind[world.AddressPolicy]{world.KindPolicy,
		func(w *world.World) *[]*world.AddressPolicy { return &w.AddressPolicies }, func(v *world.AddressPolicy) *world.Meta { return &v.Meta }}
	namespace := kind[world.Namespace]{world.KindNamespace,
		func(w *world.World) *[]*world.Namespace { return &w.Namespaces }, func(v *world.Namespace) *world.Meta { return &v.Meta }}
	bfd := kind[world.BFDProfile]{world.KindBFDProfile,
		func(w *world.World) *[]*world.BFDProfile { return &w.BFDProfiles }, func(v *world.BFDProfile) *world.Meta { return &v.Meta }}
	community := kind[world.Community]{world.KindCommunity,
		func(w *world.World) *[]*world.Community { return &w.Communities }, func(v *world.Community) *world.Meta { return &v.Meta }}

	always := func(v schema.GroupVersion, resource string, of world.Kind, ask asker) *line {
		l := s.newLine(of, resource)
		l.ask = ask.byName(s.api.Dynamic, v.WithResource(resource))
		return l
	}
	services := service.shelf(always(corev1.SchemeGroupVersion, "services", service.name, ofKind(core.Services(""))), typed(service, convert.Service))
	services.mirror = mirrorOf(o.Services)
	services.mind(o.Objects)
	nodes := node.shelf(always(corev1.SchemeGroupVersion, "nodes", node.name, ofKind(core.Nodes())), typed(node, convert.Node))
	nodes.mind(o.Objects)
	nodes.mirror = o.showing(node.name)
	namespaces := always(corev1.SchemeGroupVersion, "namespaces", namespace.name, ofKind(core.Namespaces()))
	namespaces.wanted = selectsNamespaces
	maps := ofKind(core.ConfigMaps(o.ConfigMaps))
	only := func(name string) *shelf[world.ConfigMap] {
		l := always(corev1.SchemeGroupVersion, "configmaps", configMap.name, maps.named(name))
		l.only = world.ID{Namespace: o.ConfigMaps, Name: name}
		return configMap.shelf(l, typed(configMap, o.Review.ConfigMap))
	}
	v1beta1 := []string{api.MetalLBV1Beta1}
	out := append([]publisher{
		service.rack(services),
		slice.rack(slice.shelf(always(discoveryv1.SchemeGroupVersion, "endpointslices", slice.name, ofKind(discovery.EndpointSlices(""))),
			slicesOnly(typed(slice, convert.EndpointSlice)))),
		node.rack(nodes),
		configMap.rack(only(convert.ConfigMapGoBGP), only(convert.ConfigMapIPRule)),
		custom(s, pool, o, "ipaddresspools", v1beta1, convert.Pool),
		custom(s, peer, o, "bgppeers", []string{api.MetalLBV1Beta2, api.MetalLBV1Beta1}, convert.Peer),
		custom(s, advertisement, o, "bgpadvertisements", v1beta1, convert.Advertisement),
		custom(s, l2, o, "l2advertisements", v1beta1, convert.L2Advertisement),
		custom(s, policy, o, "addresspolicies", nil, convert.Policy),
		namespace.rack(namespace.shelf(namespaces, typed(namespace, convert.Namespace))),
		custom(s, bfd, o, "bfdprofiles", v1beta1, convert.BFDProfile),
		custom(s, community, o, "communities", v1beta1, convert.Community),
	}, s.outside(o.Objects)...)
	backends := []schema.GroupVersionResource{groupsOfBackends(), bindsOfBackends()}
	if o.Redirects {
		out, backends = append(out, s.redirects(o)...), append(backends, balancingPolicies(), localRedirects())
	}
	return append(out, s.pods(o.Objects, backends...))
}

// selectsNamespaces tells whether anything chooses namespaces by their labels. Nothing else asks for them.
func selectsNamespaces(w *world.World) bool {
	return slices.ContainsFunc(w.Pools, func(p *world.Pool) bool { return len(p.NamespaceSelectors) > 0 }) ||
		slices.ContainsFunc(w.AddressPolicies, func(p *world.AddressPolicy) bool { return len(p.NamespaceSelectors) > 0 })
}

// showing shows objects of a kind to whoever looks, if anybody does.
func (o *Options) showing(of world.Kind) func(world.ID, any) {
	if o.Show == nil {
		return nil
	}
	return func(id world.ID, object any) { o.Show(of, id, object) }
}

// showingUnread shows objects of a kind that do not count where they are, if anybody looks.
func (o *Options) showingUnread(group string, of world.Kind) func(world.ID, any) {
	if o.Unread == nil {
		return nil
	}
	return func(id world.ID, object any) {
		key := unread.Key{Group: group, Kind: of, ID: id}
		switch shown, there := object.(*unstructured.Unstructured); {
		case !there:
			o.Unread.Gone(key)
		case !o.Namespaces.Read(of, shown):
			o.Unread.Show(key, unread.SeenOf(shown.GetAPIVersion(), shown))
		}
	}
}

// mirrorOf shows Services to a Mirror, if there is one.
func mirrorOf(m Mirror) func(world.ID, any) {
	if m == nil {
		return nil
	}
	return func(key world.ID, o any) {
		if service, ok := o.(*corev1.Service); ok {
			m.Set(service)
		} else {
			m.Delete(key.Namespace, key.Name)
		}
	}
}

func (k kind[T]) rack(shelves ...*shelf[T]) *rack[T] { return &rack[T]{kind: k, shelves: shelves} }

func (k kind[T]) shelf(l *line, turn func(runtime.Object) (converted[T], error)) *shelf[T] {
	return newShelf(l, turn, k.meta)
}

// custom keeps a kind that is defined in our own group, in MetalLB's, in both or in neither; ours goes first.
func custom[K, T any](s *Source, k kind[T], o *Options, resource string, metalLB []string, turn func(*K) (T, []world.Problem)) *rack[T] {
	r := k.rack()
	for _, versions := range [][]string{{api.GroupVersion}, metalLB} {
		if len(versions) == 0 {
			continue // MetalLB has no such kind
		}
		l := s.newLine(k.name, resource)
		for _, v := range versions {
			gv, _ := schema.ParseGroupVersion(v) // constants of ours
			l.versions = append(l.versions, gv)
		}
		one := k.shelf(l, from(o.Namespaces, k.name, untyped(k, turn)))
		one.mirror = o.showingUnread(l.versions[0].Group, k.name)
		r.shelves = append(r.shelves, one)
	}
	return r
}
