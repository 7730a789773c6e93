// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fairlead.io/fairlead/fsm/world"
	lbcfv1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
	"fairlead.io/fairlead/k8s/convert"
)

// outside makes the lines to LBCF's resources, and to the Pods. Those are many in a large cluster, and matter to outside
// load balancers only: they are read where a BackendGroup or a Bind can be.
func (s *Source) outside(keeper Keeper) []publisher {
	driver := kind[world.Driver]{world.KindDriver,
		func(w *world.World) *[]world.Driver { return &w.Drivers }, func(v *world.Driver) *world.Meta { return &v.Meta }}
	balancer := kind[world.OutsideBalancer]{world.KindLoadBalancer,
		func(w *world.World) *[]world.OutsideBalancer { return &w.LoadBalancers }, func(v *world.OutsideBalancer) *world.Meta { return &v.Meta }}
	group := kind[world.BackendGroup]{world.KindBackendGroup,
		func(w *world.World) *[]world.BackendGroup { return &w.BackendGroups }, func(v *world.BackendGroup) *world.Meta { return &v.Meta }}
	bind := kind[world.Bind]{world.KindBind,
		func(w *world.World) *[]world.Bind { return &w.Binds }, func(v *world.Bind) *world.Meta { return &v.Meta }}
	record := kind[world.BackendRecord]{world.KindBackendRecord,
		func(w *world.World) *[]world.BackendRecord { return &w.BackendRecords }, func(v *world.BackendRecord) *world.Meta { return &v.Meta }}
	pod := kind[world.Pod]{world.KindPod,
		func(w *world.World) *[]world.Pod { return &w.Pods }, func(v *world.Pod) *world.Meta { return &v.Meta }}

	groups, binds := v1beta1.GroupVersion().WithResource("backendgroups"), lbcfv1.GroupVersion().WithResource("binds")
	l := s.newLine(pod.name, "pods")
	l.wantedBy = []schema.GroupVersionResource{groups, binds}
	l.ask = ofKind(s.api.Client.CoreV1().Pods("")).byName(s.api.Dynamic, corev1.SchemeGroupVersion.WithResource("pods"))
	pods := pod.shelf(l, typed(pod, slim(convert.Pod)))
	pods.mind(keeper)
	return []publisher{
		outsideKind(s, driver, v1beta1.GroupVersion().WithResource("loadbalancerdrivers"), keeper, convert.Driver),
		outsideKind(s, balancer, v1beta1.GroupVersion().WithResource("loadbalancers"), keeper, convert.OutsideBalancer),
		outsideKind(s, group, groups, keeper, convert.BackendGroup),
		outsideKind(s, bind, binds, keeper, convert.Bind),
		outsideKind(s, record, v1beta1.GroupVersion().WithResource("backendrecords"), keeper, convert.BackendRecord),
		pod.rack(pods),
	}
}

// outsideKind keeps a kind that LBCF defines.
func outsideKind[K, T any](s *Source, k kind[T], r schema.GroupVersionResource, keeper Keeper, turn func(*K) (T, []world.Problem)) *rack[T] {
	l := s.newLine(k.name, r.Resource)
	l.versions = []schema.GroupVersion{r.GroupVersion()}
	one := k.shelf(l, untyped(k, turn))
	one.mind(keeper)
	return k.rack(one)
}

// slim has pods share their labels and the names of their nodes: nearly all pods have what another has.
func slim(turn func(*corev1.Pod) (world.Pod, []world.Problem)) func(*corev1.Pod) (world.Pod, []world.Problem) {
	texts := &interner{known: map[string]string{}}
	return func(o *corev1.Pod) (world.Pod, []world.Problem) {
		p, problems := turn(o)
		texts.mu.Lock()
		defer texts.mu.Unlock()
		p.Namespace, p.Node = texts.one(p.Namespace), texts.one(p.Node)
		for i := range p.Labels {
			p.Labels[i] = world.KV{Key: texts.one(p.Labels[i].Key), Value: texts.one(p.Labels[i].Value)}
		}
		return p, problems
	}
}

// interner gives the same memory for the same text, as long as it knows it.
type interner struct {
	mu    sync.Mutex
	known map[string]string
}

// maxTexts bounds what an interner holds of pods that are long gone.
const maxTexts = 50_000

func (i *interner) one(text string) string {
	if same, ok := i.known[text]; ok {
		return same
	}
	if len(i.known) >= maxTexts {
		clear(i.known)
	}
	i.known[text] = text
	return text
}
