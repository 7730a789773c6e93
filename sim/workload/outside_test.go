// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/k8s/api/lbcf"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/stage"
	"fairlead.io/fairlead/sim/workload"
)

// outsideBench is a bench whose users have outside load balancers, of one driver.
func outsideBench(t *testing.T) *bench {
	w := engine.New(1)
	b := &bench{Stage: stage.New(w, stage.Options{Members: 1, Nodes: 2, Switches: 1, Outside: 1})}
	w.Hear(func(e event.Stamped) {
		if x, ok := e.Event.(event.Refused); ok {
			b.refused = append(b.refused, x)
		}
	})
	b.Cluster = workload.New(workload.Options{World: w, Kube: b.Kube, Network: b.Network, Nodes: b.Nodes(), Operator: b, Outside: []string{"d1"}})
	b.Begin(0)
	b.run(t, 10*time.Second)
	return b
}

func (b *bench) names(kind string) (out []string) {
	for _, o := range b.Kube.List(kind) {
		out = append(out, o.GetNamespace()+"/"+o.GetName())
	}
	return out
}

// addresses are those of the pods that have one.
func (b *bench) addresses() (out []string) {
	for _, o := range b.Kube.List("Pod") {
		if ip := o.(*corev1.Pod).Status.PodIP; ip != "" {
			out = append(out, ip)
		}
	}
	slices.Sort(out)
	return out
}

func TestUsersBeginWithTwoObjectsOfOneBalancer(t *testing.T) {
	b := outsideBench(t)
	want := []string{"default/lb1", "default/lb1-too", "kube-system/lbcf-lb1b"}
	if got := b.names("LoadBalancer"); !slices.Equal(got, want) {
		t.Errorf("LoadBalancers %v, want %v", got, want)
	}
	if got := b.names("LoadBalancerDriver"); !slices.Equal(got, []string{"kube-system/lbcf-d1"}) {
		t.Errorf("drivers %v", got)
	}
}

// Pods that are to be bound have addresses that others had before them, once those have ended.
func TestBackendsComeBackAtAddressesOfOthers(t *testing.T) {
	b := outsideBench(t)
	before := b.addresses()
	b.do("outside-pods", "name", "edge1", "what", "clear")
	b.run(t, time.Minute)
	b.do("outside-pods", "name", "edge1", "what", "clear")
	b.run(t, time.Minute)
	if after := b.addresses(); len(before) != 4 || len(slices.Compact(after)) != 4 || !slices.ContainsFunc(after, func(a string) bool { return slices.Contains(before, a) }) {
		t.Errorf("addresses %v, then %v", before, after)
	}
}

func TestGarbageCollectorTakesBackendRecordsOfOwnersThatWent(t *testing.T) {
	b := outsideBench(t)
	group := &v1beta1.BackendGroup{ObjectMeta: metav1.ObjectMeta{
		Namespace: workload.Namespace, Name: "front", UID: b.Kube.Get("BackendGroup", workload.Namespace, "front").GetUID(),
	}}
	record := func(name string) {
		if _, err := b.Kube.Create("m1", stage.Custom(&v1beta1.BackendRecord{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion().String(), Kind: "BackendRecord"},
			ObjectMeta: metav1.ObjectMeta{Namespace: workload.Namespace, Name: name, OwnerReferences: []metav1.OwnerReference{lbcf.GroupOwner(group)}},
		})); err != nil {
			t.Fatal(err)
		}
		b.run(t, time.Second)
	}
	record("early")
	if got := b.names("BackendRecord"); !slices.Equal(got, []string{"default/early"}) {
		t.Fatalf("records %v while their owner is there", got)
	}
	b.do("outside-group", "name", "front", "what", "delete")
	b.run(t, time.Second)
	record("late")
	if got := b.names("BackendRecord"); len(got) > 0 {
		t.Errorf("records %v are left", got)
	}
}
