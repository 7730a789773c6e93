// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"testing"
	"time"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/heap"
	"fairlead.io/fairlead/k8s/client"
)

// keptNodes is how many nodes the endpoints are on.
const keptNodes = 100

// What a source keeps of each Service with a slice of four endpoints, as an API server sends them: once they were listed, and after each
// of them changed on a watch.
func BenchmarkKept(b *testing.B) {
	const n = 5000
	for b.Loop() {
		before := heap.InUse()
		s, services, slices := empty(b)
		replace(b, services, n, func(i int) wired { return wiredService(i, i+1) }, func() wired { return new(corev1.Service) })
		replace(b, slices, n, func(i int) wired { return wiredSlice(i, i+1) }, func() wired { return new(discoveryv1.EndpointSlice) })
		if w := s.World(); len(w.Services) != n || len(w.EndpointSlices) != n || len(w.Problems) != 0 {
			b.Fatal(len(w.Services), len(w.EndpointSlices), w.Problems)
		}
		b.ReportMetric(float64(heap.InUse()-before)/n, "B/Service")
		for version := n + 1; version <= 2*n; version++ {
			i := version * 997 % n // in another order than the list's
			_ = services.Update(sent(b, wiredService(i, version), new(corev1.Service)))
			_ = slices.Update(sent(b, wiredSlice(i, version), new(discoveryv1.EndpointSlice)))
		}
		s.World()
		b.ReportMetric(float64(heap.InUse()-before)/n, "B/Service-watched")
		runtime.KeepAlive(s)
	}
}

// What no form of an object changes is there once, however often the object does.
func TestFormsOfAnObjectShareItsNames(t *testing.T) {
	t.Parallel()
	s, services, slices := filled(t, 10)
	before := s.World()
	if err := services.Update(sent(t, aService(7, 1000), new(corev1.Service))); err != nil {
		t.Fatal(err)
	}
	if err := slices.Update(sent(t, aSlice(7, 1000), new(discoveryv1.EndpointSlice))); err != nil {
		t.Fatal(err)
	}
	after := s.World()
	for what, metas := range map[string][2]world.Meta{
		"Service": {before.Services[7].Meta, after.Services[7].Meta}, "slice": {before.EndpointSlices[7].Meta, after.EndpointSlices[7].Meta},
	} {
		was, is := metas[0], metas[1]
		if is.Version != 1000 || unsafe.StringData(was.Name) != unsafe.StringData(is.Name) || unsafe.StringData(was.UID) != unsafe.StringData(is.UID) {
			t.Errorf("the %s has names of its own at version %d", what, is.Version)
		}
	}
	if a, b := after.EndpointSlices[7], after.EndpointSlices[8]; unsafe.StringData(a.Namespace) != unsafe.StringData(b.Namespace) || &a.Ports[0] != &b.Ports[0] {
		t.Error("slices share neither namespace nor ports")
	}
}

// empty is a source that has listed nothing.
func empty(tb testing.TB) (*Source, *shelf[world.Service], *shelf[world.EndpointSlice]) {
	api, err := client.New(&rest.Config{Host: "http://192.0.2.1"})
	if err != nil {
		tb.Fatal(err)
	}
	s, err := New(Options{API: api, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	return s, s.racks[0].(*rack[world.Service]).shelves[0], s.racks[1].(*rack[world.EndpointSlice]).shelves[0]
}

// wired is an object that travels as protobuf.
type wired interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// sent gives an object as it comes out of the decoder, which shares nothing with others.
func sent(tb testing.TB, o, into wired) wired {
	raw, err := o.Marshal()
	if err == nil {
		err = into.Unmarshal(raw)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return into
}

func replace[T any](tb testing.TB, s *shelf[T], n int, object func(int) wired, bare func() wired) {
	items := make([]any, n)
	for i := range n {
		items[i] = sent(tb, object(i), bare())
	}
	if err := s.Replace(items, strconv.Itoa(n)); err != nil {
		tb.Fatal(err)
	}
}

func wiredUID(kind, i int) types.UID {
	return types.UID(fmt.Sprintf("%08x-1f2e-4d3c-8b4a-%012x", kind, i))
}

func wiredMeta(i, version, kind int, name, manager string) metav1.ObjectMeta {
	at := metav1.NewTime(time.Unix(1_700_000_000+int64(i), 0))
	return metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: wiredUID(kind, i), ResourceVersion: strconv.Itoa(version), Generation: 1, CreationTimestamp: at,
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &at,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{".":{},"f:app":{}}}}`)}},
	}
}

// wiredService is like those of the large cluster of e2e/bench, with a label and the status that Fairlead writes.
func wiredService(i, version int) *corev1.Service {
	name, address, cluster := fmt.Sprintf("svc-%d", i), fmt.Sprintf("198.18.%d.%d", i/250, i%250), fmt.Sprintf("10.96.%d.%d", i/250, i%250)
	no, single, in, vip := false, corev1.IPFamilyPolicySingleStack, corev1.ServiceInternalTrafficPolicyCluster, corev1.LoadBalancerIPModeVIP
	s := &corev1.Service{ObjectMeta: wiredMeta(i, version, 1, name, "kubectl-create")}
	s.Labels = map[string]string{"app": name}
	s.Spec = corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, ExternalIPs: []string{address}, ClusterIP: cluster, ClusterIPs: []string{cluster},
		AllocateLoadBalancerNodePorts: &no, Selector: map[string]string{"app": name}, SessionAffinity: corev1.ServiceAffinityNone,
		IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, IPFamilyPolicy: &single, InternalTrafficPolicy: &in,
		ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyCluster,
		Ports:                 []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(8080)}},
	}
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address, IPMode: &vip}}
	return s
}

// wiredSlice is what the controller of EndpointSlices makes for it.
func wiredSlice(i, version int) *discoveryv1.EndpointSlice {
	service, yes, no, name, port, protocol := fmt.Sprintf("svc-%d", i), true, false, "http", int32(8080), corev1.ProtocolTCP
	s := &discoveryv1.EndpointSlice{ObjectMeta: wiredMeta(i, version, 2, fmt.Sprintf("%s-%05x", service, i*7919), "kube-controller-manager")}
	s.GenerateName, s.AddressType = service+"-", discoveryv1.AddressTypeIPv4
	s.Labels = map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io", "app": service}
	s.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: "2026-11-26T12:00:00Z"}
	s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: service, UID: wiredUID(1, i), Controller: &yes}}
	s.Ports = []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}}
	for e := range 4 {
		at := (i + e*31) % keptNodes
		node, zone := fmt.Sprintf("node-%03d", at), fmt.Sprintf("zone-%d", at%3)
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.%d.%d.%d", e, i/250, i%250)}, NodeName: &node, Zone: &zone,
			Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes, Terminating: &no},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: fmt.Sprintf("%s-6d4b7c9f5b-%05x", service, i*4+e), UID: wiredUID(3, i*4+e)},
		})
	}
	return s
}
