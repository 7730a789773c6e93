// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm/world"
)

func metaOf(i, version int) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("web-%05d", i), UID: "u", ResourceVersion: fmt.Sprint(version),
		Labels: map[string]string{discoveryv1.LabelServiceName: fmt.Sprintf("web-%05d", i)}}
}

func aService(i, version int) *corev1.Service {
	return &corev1.Service{ObjectMeta: metaOf(i, version), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.96.0.1",
		Ports: []corev1.ServicePort{{Port: int32(1 + version%1000)}}}}
}

func aSlice(i, version int) *discoveryv1.EndpointSlice {
	port := int32(80)
	return &discoveryv1.EndpointSlice{ObjectMeta: metaOf(i, version), AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{Port: &port}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{fmt.Sprintf("10.%d.%d.1", version%200, i%200)}},
			{Addresses: []string{fmt.Sprintf("10.%d.%d.2", version%200, i%200)}}}}
}

// filled is a source that has listed n Services and n slices.
func filled(tb testing.TB, n int) (*Source, *shelf[world.Service], *shelf[world.EndpointSlice]) {
	s, services, slices := empty(tb)
	all, endpoints := make([]any, n), make([]any, n)
	for i := range n {
		all[i], endpoints[i] = aService(i, i+1), aSlice(i, i+1)
	}
	version := fmt.Sprint(n)
	if err := services.Replace(all, version); err != nil {
		tb.Fatal(err)
	}
	if err := slices.Replace(endpoints, version); err != nil {
		tb.Fatal(err)
	}
	s.World()
	return s, services, slices
}

// What one event costs, from the decoded object to the World that shows it.
func BenchmarkOneChange(b *testing.B) {
	for _, n := range []int{200, 5_000, 50_000} {
		s, services, slices := filled(b, n)
		b.Run(fmt.Sprintf("Service/of=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				_ = services.Update(aService(i%n, n+1+int(services.line.version)))
				s.World()
			}
		})
		b.Run(fmt.Sprintf("EndpointSlice/of=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				_ = slices.Update(aSlice(i%n, n+1+int(slices.line.version)))
				s.World()
			}
		})
		b.Run(fmt.Sprintf("none/of=%d", n), func(b *testing.B) {
			for b.Loop() {
				s.World()
			}
		})
		b.Run(fmt.Sprintf("AddAndDelete/of=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				at := int(services.line.version)
				_ = services.Add(aService(n+1, at+1))
				s.World()
				_ = services.Delete(aService(n+1, at+2))
				s.World()
			}
		})
		b.Run(fmt.Sprintf("burst-of-100/of=%d", n), func(b *testing.B) {
			for b.Loop() {
				for range 100 {
					_ = slices.Update(aSlice(int(slices.line.version)%n, n+1+int(slices.line.version)))
				}
				s.World()
			}
		})
	}
}

// What taking in a list costs of which everything is known already.
func BenchmarkRelistWithoutNews(b *testing.B) {
	_, services, _ := filled(b, 5_000)
	all := make([]any, 5_000)
	for i := range all {
		all[i] = aService(i, i+1)
	}
	for b.Loop() {
		_ = services.Replace(all, "5000")
	}
}

// What changed costs a copy of its list; what did not costs nothing.
func TestOneChangeCopiesOnlyTheListItIsIn(t *testing.T) {
	t.Parallel()
	s, services, _ := filled(t, 100)
	before := s.World()
	if err := services.Update(aService(7, 1000)); err != nil {
		t.Fatal(err)
	}
	after := s.World()
	if &before.EndpointSlices[0] != &after.EndpointSlices[0] {
		t.Error("the slices were copied, too")
	}
	if &before.Services[0] == &after.Services[0] || before.Services[7].Version == after.Services[7].Version {
		t.Error("the Services were changed under their readers")
	}
	if before.Services[8] != after.Services[8] {
		t.Error("a Service was copied that nobody wrote to")
	}
	if again := s.World(); &again.Services[0] != &after.Services[0] {
		t.Error("copied though nothing changed")
	}
}

// The last good form of an object whose newest one cannot be used has that one's version, in Worlds from then on alone.
func TestFormThatCannotBeUsedWritesToNoWorldOfBefore(t *testing.T) {
	t.Parallel()
	s, services, _ := filled(t, 100)
	before := s.World()
	was := before.Services[7].Version
	bare := aService(7, 1000)
	bare.Spec.Ports = nil
	if err := services.Update(bare); err != nil {
		t.Fatal(err)
	}
	now := s.World().Services[7]
	if now.Version != 1000 || len(now.Ports) != 1 {
		t.Errorf("the last good form is not in use, at version %d with ports %v", now.Version, now.Ports)
	}
	if at := before.Services[7].Version; at != was {
		t.Errorf("a World that was handed out shows version %d, not %d", at, was)
	}
}
