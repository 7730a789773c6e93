// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/convert"
	"fairlead.io/fairlead/sim/weight"
	"fairlead.io/fairlead/sim/workload"
)

// The reading that ships says the same.
func TestPropertyWeightsAreReadAlike(t *testing.T) {
	names := rapid.SampledFrom([]string{"", "a", "ab", "b"})
	whose := rapid.SampledFrom([]string{"pod/a", "pod/*", "pod/a?", "pod/[", "pod/", "node/b", "node/[ab]", "zone/ab", "bogus/a", "192.0.2.1", "::1", "x", ""})
	number := rapid.SampledFrom([]string{"=0", "=1", "=7", "=65535", "=65536", "=x", "", " = 3", "=4 "})
	testkit.Check(t, func(t *rapid.T) {
		var rules []string
		for range rapid.IntRange(0, 70).Draw(t, "rules") {
			rules = append(rules, rapid.SampledFrom([]string{"", " "}).Draw(t, "space")+whose.Draw(t, "whose")+number.Draw(t, "number"))
		}
		text := strings.Join(rules, ",")
		e := world.Endpoint{
			Address: netip.MustParseAddr(rapid.SampledFrom([]string{"192.0.2.1", "::1", "192.0.2.2"}).Draw(t, "address")),
			Place:   &world.Place{Node: names.Draw(t, "node"), Zone: names.Draw(t, "zone")},
		}
		pod := names.Draw(t, "pod")
		e.Pod = pod
		ours := weight.Of(text, weight.Endpoint{Pod: pod, Node: e.Place.Node, Zone: e.Place.Zone, Address: e.Address})
		s, _ := convert.Service(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Annotations: map[string]string{weight.Annotation: text}},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
		})
		if theirs := s.WeightOf(&e); ours != theirs {
			t.Fatalf("%q of %+v: %d, the one that ships says %d", text, e, ours, theirs)
		}
	})
}

func TestUsersWeighEndpoints(t *testing.T) {
	b := newBench(1)
	b.do("create", "name", "a")
	b.do("create", "name", "local", "policy", "Local")
	says := func(name string) string {
		return b.Kube.Get("Service", workload.Namespace, name).GetAnnotations()[weight.Annotation]
	}
	for _, step := range []struct{ do, name, weights, want string }{
		{"weigh", "a", "node/n1=0, pod/*=3", "node/n1=0, pod/*=3"},
		{"weigh", "local", "node/n1=0", ""},
		{"weigh", "a", "", ""},
		{"weigh", "a", "pod/*=2", "pod/*=2"},
		{"touch", "a", "", "pod/*=2"},
		{"edit", "a", "", ""},
	} {
		with := []string{"name", step.name}
		if step.weights != "" {
			with = append(with, "weights", step.weights)
		}
		if b.do(step.do, with...); says(step.name) != step.want {
			t.Errorf("%+v: %q", step, says(step.name))
		}
	}
}
