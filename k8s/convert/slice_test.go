// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm/world"
)

// K14, K17: what a slice does not say of an endpoint has a meaning, and so what it says of an endpoint that is published
// unready (K16).
// Rule: K14, K16, K17.
func TestConditionsOfEndpoints(t *testing.T) {
	yes, no := true, false
	for name, c := range map[string]struct {
		conditions                  discoveryv1.EndpointConditions
		ready, serving, terminating bool
	}{
		"nothing-said":         {discoveryv1.EndpointConditions{}, true, true, false},
		"ready":                {discoveryv1.EndpointConditions{Ready: &yes}, true, true, false},
		"unready":              {discoveryv1.EndpointConditions{Ready: &no}, false, false, false},
		"serves-to-its-end":    {discoveryv1.EndpointConditions{Ready: &no, Serving: &yes, Terminating: &yes}, false, true, true},
		"ends-without-serving": {discoveryv1.EndpointConditions{Ready: &no, Serving: &no, Terminating: &yes}, false, false, true},
		"published-unready":    {discoveryv1.EndpointConditions{Ready: &yes, Serving: &no, Terminating: &yes}, true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, problems := EndpointSlice(&discoveryv1.EndpointSlice{
				ObjectMeta:  metav1.ObjectMeta{Name: "web-1", Namespace: "shop", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
				AddressType: discoveryv1.AddressTypeIPv4,
				Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Conditions: c.conditions}},
			})
			if len(problems) > 0 || len(s.Endpoints) != 1 {
				t.Fatalf("%+v: %v", s, problems)
			}
			if e := s.Endpoints[0]; e.Ready != c.ready || e.Serving != c.serving || e.Terminating != c.terminating {
				t.Errorf("ready %v, serving %v, terminating %v", e.Ready, e.Serving, e.Terminating)
			}
		})
	}
}

// K30: the deprecated field asks for an address, as the annotation does. K25: node ports may be renounced.
// Rule: K25, K30.
func TestFieldsOfAServiceAreRead(t *testing.T) {
	no := false
	s, problems := Service(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerIP: "203.0.113.7", AllocateLoadBalancerNodePorts: &no, ClusterIP: "10.96.0.9",
			Ports: []corev1.ServicePort{{Port: 80}},
		},
	})
	if len(problems) > 0 || len(s.Extras().Requested) != 1 || s.Extras().Requested[0].String() != "203.0.113.7" || s.NodePorts {
		t.Errorf("%+v: %v", s, problems)
	}
}

// K26: hints for zones and nodes are read.
// Rule: K26.
func TestHintsOfEndpointsAreRead(t *testing.T) {
	s, problems := EndpointSlice(&discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "web-1", Namespace: "shop", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}, {Addresses: []string{"10.0.0.2"}, Hints: &discoveryv1.EndpointHints{
			ForZones: []discoveryv1.ForZone{{Name: "z1"}, {Name: "z2"}}, ForNodes: []discoveryv1.ForNode{{Name: "n1"}},
		}}},
	})
	if len(problems) > 0 || len(s.Endpoints) != 2 || s.Endpoints[0].At().Hints != nil ||
		!slices.Equal(s.Endpoints[1].At().Hints, []world.Hint{{Node: "n1"}, {Zone: "z1"}, {Zone: "z2"}}) {
		t.Errorf("%+v: %v", s, problems)
	}
}

// K39: schedulers are asked for by IPVS' names. What cannot be had is said, and chance decides.
// Rule: K39.
func TestSchedulersAreReadByName(t *testing.T) {
	for name, want := range map[string]struct {
		scheduler world.Scheduler
		said      string
	}{
		"": {}, "rr": {world.RoundRobin, ""}, "wrr": {world.WeightedRoundRobin, ""}, "dh": {world.DestinationHash, ""}, "sh": {world.SourceHash, ""}, "mh": {world.ConsistentHash, ""},
		"lc": {world.LeastConnections, ""}, "wlc": {world.WeightedLeastConnections, ""}, "sed": {world.ShortestExpectedDelay, ""}, "nq": {world.NeverQueue, ""},
		"lblc": {world.LocalityLeastConnections, ""}, "lblcr": {world.LocalityLeastConnectionsReplicated, ""},
		"best": {"", `"best" is unknown`}, "LBLC": {"", "use rr, wrr, sh, dh, mh, lc, wlc, sed, nq, lblc or lblcr"},
	} {
		s, problems := Service(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Annotations: map[string]string{AnnotationScheduler: name}},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
		})
		if said := fmt.Sprint(problems); s.Choice().Scheduler != want.scheduler || (want.said == "") != (len(problems) == 0) || !strings.Contains(said, want.said) {
			t.Errorf("%q: %q, %s", name, s.Choice().Scheduler, said)
		}
	}
}
