// SPDX-License-Identifier: Apache-2.0

package balancing_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/k8s/api/balancing/v1beta1"
)

const goodPolicy = `
apiVersion: balancing.elf.io/v1beta1
kind: BalancingPolicy
metadata: {name: good}
spec:
  config: {}
  frontend: {addressMatcher: {ip: 169.254.77.1, toPorts: [{name: p, port: "80", protocol: TCP}]}}
  backend: {serviceEndpoint: {endpointSelector: {matchLabels: {a: b}}, toPorts: [{name: p, port: "8080", protocol: TCP}]}}
`

// Sections 2 and 24.18: a real API server stores every manifest of the predecessor, fills in defaults, and refuses by the
// definitions alone what nobody could understand, also where no member is asked.
func TestAnAPIServerStoresWhatThePredecessorTakes(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{NoControllers: true})
	if err := c.ApplyFiles(t.Context(), filepath.Join(crds, "*.yaml")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/accepted.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), string(text)); err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), goodPolicy); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	policies := client.Resource(v1beta1.GroupVersion().WithResource("balancingpolicies"))
	stored, err := policies.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(stored.Items) != 6 {
		t.Fatalf("%d policies, %v", len(stored.Items), err)
	}
	good, err := policies.Get(t.Context(), "good", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct { // balancing §2.2
		value any
		path  string
	}{{true, "spec.enabled"}, {true, "spec.config.enableOutCluster"}, {"podEndpoint", "spec.backend.serviceEndpoint.redirectMode"}} {
		if got, _, _ := unstructured.NestedFieldNoCopy(good.Object, strings.Split(want.path, ".")...); got != want.value {
			t.Errorf("%s is %v", want.path, got)
		}
	}
	t.Run("strictly", func(t *testing.T) { // balancing §2.1: no field is unknown
		for _, d := range strings.Split(string(text), "\n---\n") {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(d), &o.Object); err != nil {
				t.Fatal(err)
			}
			of := policies
			if o.GetKind() == "LocalRedirectPolicy" {
				of = client.Resource(v1beta1.GroupVersion().WithResource("localredirectpolicies"))
			}
			o.SetName(o.GetName() + "-again")
			if _, err := of.Create(t.Context(), o, metav1.CreateOptions{FieldValidation: "Strict"}); err != nil {
				t.Error(err)
			}
		}
	})
	const front, back = `{addressMatcher: {ip: 169.254.77.1, toPorts: [{name: p, port: "80", protocol: TCP}]}}`,
		`{serviceEndpoint: {endpointSelector: {matchLabels: {a: b}}, toPorts: [{name: p, port: "8080", protocol: TCP}]}}`
	for name, r := range map[string]struct{ from, to, why string }{
		"A4-none":        {front, "{}", "exactly one of serviceMatcher and addressMatcher"},
		"A4-both":        {"{addressMatcher:", "{serviceMatcher: {namespace: a, serviceName: b}, addressMatcher:", "exactly one of serviceMatcher and addressMatcher"},
		"A5-none":        {back, "{}", "exactly one of serviceEndpoint and addressEndpoint"},
		"A5-both":        {"{serviceEndpoint:", `{addressEndpoint: {addresses: [192.0.2.1], toPorts: [{port: "1", protocol: TCP}]}, serviceEndpoint:`, "exactly one of serviceEndpoint and addressEndpoint"},
		"A9-front":       {`[{name: p, port: "80", protocol: TCP}]`, "[]", "should have at least 1 items"},
		"A9-back":        {`[{name: p, port: "8080", protocol: TCP}]`, "[]", "should have at least 1 items"},
		"A9-addresses":   {back, `{addressEndpoint: {addresses: [], toPorts: [{name: p, port: "1", protocol: TCP}]}}`, "should have at least 1 items"},
		"2.2-zone":       {"169.254.77.1", `"fe80::1%eth0"`, "addressMatcher.ip"},
		"2.2-port-zero":  {`"80"`, `"000"`, "toPorts[0].port"},
		"2.2-port-large": {`"80"`, `"65536"`, "toPorts[0].port"},
		"2.2-protocol":   {`"80", protocol: TCP`, `"80", protocol: SCTP`, "Unsupported value"},
		"2.2-mode":       {"{endpointSelector:", "{redirectMode: pod, endpointSelector:", "Unsupported value"},
		"14-type":        {back, `{addressEndpoint: {addresses: [192.0.2.1], toPorts: [{name: p, port: "1", protocol: TCP}], healthCheck: {type: GRPC}}}`, "Unsupported value"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Count(goodPolicy, r.from) != 1 {
				t.Fatal(r.from)
			}
			bad := strings.Replace(strings.Replace(goodPolicy, r.from, r.to, 1), "name: good", "name: bad", 1)
			if err := c.Apply(t.Context(), bad); err == nil || !strings.Contains(err.Error(), r.why) {
				t.Errorf("%v, want %q", err, r.why)
			}
		})
	}
	for name, r := range map[string]struct{ from, to, why string }{ // each by itself, of the policy as it was
		"A2-frontend": {"169.254.77.1", "169.254.77.2", "the frontend of a policy cannot change"},
		"A2-backend":  {`"8080"`, `"8081"`, "the backend of a policy cannot change"},
		"A3-config":   {"config: {}", "config: {enableOutCluster: false, nodeLabelSelector: {matchLabels: {a: b}}}", ""},
		"A3-enabled":  {"spec:", "spec:\n  enabled: false", ""},
	} {
		t.Run(name, func(t *testing.T) {
			named := strings.Replace(goodPolicy, "name: good", "name: "+strings.ToLower(name), 1)
			if err := c.Apply(t.Context(), named); err != nil {
				t.Fatal(err)
			}
			err := c.Apply(t.Context(), strings.Replace(named, r.from, r.to, 1))
			if (err == nil) != (r.why == "") || err != nil && !strings.Contains(err.Error(), r.why) {
				t.Errorf("%v, want %q", err, r.why)
			}
		})
	}
}
