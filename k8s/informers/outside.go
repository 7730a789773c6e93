// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fairlead.io/fairlead/fsm/world"
	lbcfv1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
	"fairlead.io/fairlead/k8s/convert"
)

// outside makes the lines to LBCF's resources.
func (s *Source) outside(keeper Keeper) []publisher {
	driver := kind[world.Driver]{world.KindDriver,
		func(w *world.World) *[]*world.Driver { return &w.Drivers }, func(v *world.Driver) *world.Meta { return &v.Meta }}
	balancer := kind[world.OutsideBalancer]{world.KindLoadBalancer,
		func(w *world.World) *[]*world.OutsideBalancer { return &w.LoadBalancers }, func(v *world.OutsideBalancer) *world.Meta { return &v.Meta }}
	group := kind[world.BackendGroup]{world.KindBackendGroup,
		func(w *world.World) *[]*world.BackendGroup { return &w.BackendGroups }, func(v *world.BackendGroup) *world.Meta { return &v.Meta }}
	bind := kind[world.Bind]{world.KindBind,
		func(w *world.World) *[]*world.Bind { return &w.Binds }, func(v *world.Bind) *world.Meta { return &v.Meta }}
	record := kind[world.BackendRecord]{world.KindBackendRecord,
		func(w *world.World) *[]*world.BackendRecord { return &w.BackendRecords }, func(v *world.BackendRecord) *world.Meta { return &v.Meta }}
	return []publisher{
		outsideKind(s, driver, v1beta1.GroupVersion().WithResource("loadbalancerdrivers"), keeper, convert.Driver),
		outsideKind(s, balancer, v1beta1.GroupVersion().WithResource("loadbalancers"), keeper, convert.OutsideBalancer),
		outsideKind(s, group, groupsOfBackends(), keeper, convert.BackendGroup),
		outsideKind(s, bind, bindsOfBackends(), keeper, convert.Bind),
		outsideKind(s, record, v1beta1.GroupVersion().WithResource("backendrecords"), keeper, convert.BackendRecord),
	}
}

func groupsOfBackends() schema.GroupVersionResource {
	return v1beta1.GroupVersion().WithResource("backendgroups")
}

func bindsOfBackends() schema.GroupVersionResource {
	return lbcfv1.GroupVersion().WithResource("binds")
}

// outsideKind keeps a kind that LBCF defines.
func outsideKind[K, T any](s *Source, k kind[T], r schema.GroupVersionResource, keeper Keeper, turn func(*K) (T, []world.Problem)) *rack[T] {
	l := s.newLine(k.name, r.Resource)
	l.versions = []schema.GroupVersion{r.GroupVersion()}
	one := k.shelf(l, untyped(k, turn))
	one.mind(keeper)
	return k.rack(one)
}
