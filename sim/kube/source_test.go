// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/api"
	"fairlead.io/fairlead/k8s/convert"
	"fairlead.io/fairlead/k8s/informers"
	"fairlead.io/fairlead/sim/kube"
)

const poolsOfMetalLB = api.MetalLBV1Beta1 + "/ipaddresspools"

// truth is the World that a source must end with: what the model holds, converted.
func (b *bench) truth(t testing.TB) (w world.World) {
	for _, o := range b.List("Service") {
		v, _ := convert.Service(o.(*corev1.Service))
		w.Services = append(w.Services, &v)
	}
	for _, o := range b.List("EndpointSlice") {
		v, _ := convert.EndpointSlice(o.(*discoveryv1.EndpointSlice))
		w.EndpointSlices = append(w.EndpointSlices, &v)
	}
	for _, o := range b.List("Node") {
		v, _ := convert.Node(o.(*corev1.Node))
		w.Nodes = append(w.Nodes, &v)
	}
	for _, o := range b.List("IPAddressPool") {
		var p api.IPAddressPool
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.(*unstructured.Unstructured).Object, &p); err != nil {
			t.Fatal(err)
		}
		v, _ := convert.Pool(&p)
		w.Pools = append(w.Pools, &v)
	}
	w.Sort()
	return w
}

func sameObjects(a, b world.World) bool {
	return reflect.DeepEqual(a.Services, b.Services) && reflect.DeepEqual(a.EndpointSlices, b.EndpointSlices) &&
		reflect.DeepEqual(a.Nodes, b.Nodes) && reflect.DeepEqual(a.Pools, b.Pools)
}

// source runs a real source over the model until the test ends.
func (b *bench) source(t testing.TB, from string) *informers.Source {
	s, err := informers.New(informers.Options{API: b.api(t, from), Clock: b.clock, Logger: discard})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Run(ctx) }() // it ends with ctx, without an error
	t.Cleanup(func() { cancel(); <-done })
	return s
}

// agrees waits until a source shows what the model holds.
func (b *bench) agrees(t testing.TB, s *informers.Source) {
	t.Helper()
	testkit.Eventually(t, "the source agrees with the server", func() error {
		w, same := s.World(), false
		var truth world.World
		b.do(func() { truth = b.truth(t); same = sameObjects(w, truth) && w.Cluster == b.Cluster() })
		if !same || !w.Complete {
			return fmt.Errorf("complete %v, problems %v\nsource %+v\nserver %+v", w.Complete, w.Problems, w.Services, truth.Services)
		}
		return nil
	})
}

// step changes something, as users, kubelets and controllers do.
func (b *bench) step(t testing.TB, r *rand.Rand, n int) {
	name := fmt.Sprintf("s%d", r.IntN(4))
	pool := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": api.MetalLBV1Beta1, "kind": "IPAddressPool",
			"metadata": map[string]any{"name": name, "namespace": "default"}, "spec": map[string]any{"addresses": []any{fmt.Sprintf("203.0.113.%d/32", r.IntN(250))}}}}
	}
	var err error
	switch r.IntN(9) {
	case 0, 1:
		_, err = b.Create("user", service(name, int32(80+r.IntN(9))))
	case 2:
		_, err = b.Change("user", "Service", "default", name, func(o kube.Object) { o.(*corev1.Service).Spec.Ports[0].Port = int32(80 + r.IntN(9)) })
	case 3:
		err = b.Delete("user", "Service", "default", name)
	case 4, 5:
		_, err = b.Create("kubelet", pod(name, fmt.Sprintf("%s-%d", name, n), "n1", fmt.Sprintf("192.0.2.%d", n%250)))
	case 6:
		if pods := b.List("Pod"); len(pods) > 0 {
			err = b.Delete("kubelet", "Pod", "default", pods[r.IntN(len(pods))].GetName())
		}
	case 7:
		_, err = b.Create("user", pool())
	case 8:
		err = b.Delete("user", "IPAddressPool", "default", name)
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
		t.Error(err)
	}
}

func newCluster(t testing.TB, seed uint64) *bench {
	b := newBench(seed, kube.Options{Definitions: []string{poolsOfMetalLB}})
	if _, err := b.Create("kubelet", node("n1", "192.0.2.1")); err != nil {
		t.Fatal(err)
	}
	return b
}

// Whatever was wrong with the server: some time after it the World is what the server holds, and nothing that the
// source ever asked was refused as nonsense.
func TestTheRealSourceAgreesWithTheServerAfterEachFault(t *testing.T) {
	scopes := map[kube.Fault][]kube.Scope{
		kube.Away:    {{}, {How: "refused"}, {How: "unavailable"}},
		kube.ErrorOn: {{}, {Status: 429}, {Status: 504, Share: 0.5}, {Status: 503, Kinds: []string{"Service"}}},
	}
	for _, f := range kube.Faults() {
		for i, scope := range append(scopes[f], kube.Scope{Share: 0.7, Delay: time.Second})[:max(1, len(scopes[f]))] {
			t.Run(fmt.Sprintf("%s-%d", f, i), func(t *testing.T) {
				t.Parallel()
				b := newCluster(t, uint64(i)+1)
				random := rand.New(rand.NewPCG(1, 2))
				for n := range 30 {
					b.step(t, random, n)
				}
				b.run(t)
				s := b.source(t, "m1")
				b.agrees(t, s)
				b.pass(2 * time.Second) // a source believes for a second which cluster it is
				var end func()
				b.do(func() { end = b.Begin(f, scope) })
				for n := range 60 {
					b.do(func() { b.step(t, random, 100+n) })
					if n%20 == 0 {
						s.Relist(world.KindService, world.KindEndpointSlice)
					}
					b.pass(100 * time.Millisecond)
				}
				b.pass(2 * time.Second)
				b.do(func() { end() })
				for n := range 10 {
					b.do(func() { b.step(t, random, 200+n) })
				}
				b.agrees(t, s)
				b.do(func() {
					if len(b.refused) > 0 {
						t.Errorf("refused: %+v", b.refused)
					}
					if len(b.viewed) == 0 && !slices.Contains([]kube.Fault{kube.WatchBreak, kube.Duplicate, kube.Rewind, kube.Compact}, f) {
						t.Error("the fault befell nobody")
					}
				})
			})
		}
	}
}
