// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm/world"
)

func weighted(text string) (world.Service, []world.Problem) {
	return Service(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Annotations: map[string]string{AnnotationEndpointWeights: text}},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
	})
}

// K40: endpoints have their weights by address, pod, node or zone, the first rule that names one counts, and it is 1 otherwise.
// Rule: K40.
func TestWeightsAreReadByAddressPodNodeAndZone(t *testing.T) {
	s, problems := weighted(" pod/web-canary-*=1, pod/web-* = 9,node/big-1=4, zone/b=0,192.0.2.7=65535, ::ffff:192.0.2.8=2 ")
	if len(problems) > 0 {
		t.Fatalf("problems %v", problems)
	}
	for _, c := range []struct {
		of   world.Endpoint
		want uint16
	}{
		{world.Endpoint{Pod: "web-canary-x1", Place: &world.Place{Node: "big-1"}}, 1},
		{world.Endpoint{Pod: "web-7", Place: &world.Place{Zone: "b"}}, 9},
		{world.Endpoint{Pod: "other", Place: &world.Place{Node: "big-1", Zone: "b"}}, 4},
		{world.Endpoint{Place: &world.Place{Node: "big-12", Zone: "b"}}, 0},
		{world.Endpoint{Address: netip.MustParseAddr("192.0.2.7")}, 65535},
		{world.Endpoint{Address: netip.MustParseAddr("192.0.2.8")}, 2},
		{world.Endpoint{Address: netip.MustParseAddr("192.0.2.9"), Place: &world.Place{Zone: "a"}}, 1},
	} {
		if have := s.WeightOf(&c.of); have != c.want {
			t.Errorf("%+v weighs %d, want %d", c.of, have, c.want)
		}
	}
	all, _ := weighted("pod/*=0, zone/*=0, node/*=3")
	if have := all.WeightOf(&world.Endpoint{Place: &world.Place{Node: "big-1"}}); have != 3 {
		t.Errorf("what is no pod weighs %d, as all pods do", have)
	}
	if plain, _ := weighted(""); plain.Extra.Choosing != nil {
		t.Errorf("rules %v of nothing", plain.Extra.Choosing)
	}
}

// K40: what cannot be read is told of, counts as 1 where it names an endpoint, and nothing else is affected.
// Rule: K40.
func TestBadWeightsCountAsOne(t *testing.T) {
	for text, want := range map[string]string{
		"zone/a=-1":       "from 0 to 65535",
		"zone/a=heavy":    "from 0 to 65535",
		"zone/a=65536":    "from 0 to 65535",
		"zone/a":          "from 0 to 65535",
		"zone/a=1.5":      "from 0 to 65535",
		"rack/a=3":        "none of pod, node and zone",
		"big=3":           "no IP address",
		"zone/=3":         "no name",
		"zone/[=3":        "no name",
		"10.0.0.0/8=3":    "none of pod, node and zone",
		manyWeightRules(): "as many as count",
	} {
		s, problems := weighted(text + ",zone/a=7,zone/b=3")
		if len(problems) != 1 || problems[0].Severity != world.Degraded || !strings.Contains(problems[0].Why+problems[0].Remedy, want) ||
			!strings.Contains(problems[0].Field, AnnotationEndpointWeights) {
			t.Errorf("%.40s: problems %v, want one of %q", text, problems, want)
		}
		inA := uint16(7)
		if strings.HasPrefix(text, "zone/a") {
			inA = 1
		}
		if strings.Contains(text, "many") {
			continue
		}
		if a, b := s.WeightOf(&world.Endpoint{Place: &world.Place{Zone: "a"}}), s.WeightOf(&world.Endpoint{Place: &world.Place{Zone: "b"}}); a != inA || b != 3 {
			t.Errorf("%.40s: weights %d and %d, want %d and 3", text, a, b, inA)
		}
	}
}

func manyWeightRules() string {
	var out []string
	for i := range maxWeightRules {
		out = append(out, fmt.Sprintf("pod/many-%d=2", i))
	}
	return strings.Join(out, ",")
}

// K40: endpoints of slices, and of the older kind, are known by their pods.
// Rule: K40.
func TestEndpointsKnowTheirPods(t *testing.T) {
	pod := &corev1.ObjectReference{Kind: "Pod", Name: "web-1"}
	s, _ := EndpointSlice(&discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "web-a", Namespace: "shop", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, TargetRef: pod}, {Addresses: []string{"10.0.0.2"}},
			{Addresses: []string{"10.0.0.3"}, TargetRef: &corev1.ObjectReference{Kind: "VirtualMachine", Name: "web-1"}}},
	})
	old, _ := Endpoints(&corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"},
		Subsets:    []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "10.0.0.1", TargetRef: pod}}}},
	})
	var pods []string
	for _, e := range slices.Concat(s.Endpoints, old[0].Endpoints) {
		pods = append(pods, e.Pod)
	}
	if want := []string{"web-1", "", "", "web-1"}; !slices.Equal(pods, want) {
		t.Errorf("pods %q, want %q", pods, want)
	}
}
