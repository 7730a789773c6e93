// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"fairlead.io/fairlead/k8s/admission"
	"fairlead.io/fairlead/k8s/api/balancing/v1beta1"
)

// of reads a manifest.
func of[T any](t testing.TB, manifest string) T {
	t.Helper()
	var o T
	if err := yaml.Unmarshal([]byte(manifest), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

const (
	otherBalancing = `{metadata: {name: other, annotations: {balancing.elf.io/serviceId: "9"}}, spec: {frontend: {serviceMatcher: {namespace: shop, serviceName: taken}},
	  backend: {serviceEndpoint: {redirectMode: nodeProxy, endpointSelector: {matchLabels: {app: other}}, toPorts: [{name: p, port: "10080", protocol: TCP}]}}}}`
	otherLocal = `{metadata: {name: other, annotations: {balancing.elf.io/serviceId: "4294967295"}}, spec: {config: {nodeLabelSelector: {matchLabels: {zone: a}}, enableOutCluster: false},
	  frontend: {addressMatcher: {ip: " 169.254.0.90", toPorts: [{port: "53", protocol: UDP}]}}, backend: {endpointSelector: {matchLabels: {app: dns}}, toPorts: [{port: "53", protocol: UDP}]}}}`
	nodeA = `{metadata: {name: n1, labels: {zone: a}, annotations: {balancing.elf.io/nodeProxyIpv4: 198.51.100.1}}, status: {addresses: [{type: InternalIP, address: 192.0.2.11}]}}`
	nodeB = `{metadata: {name: n2, labels: {zone: b}}, status: {addresses: [{type: Hostname, address: n2}, {type: InternalIP, address: 192.0.2.12}]}}`
)

// town has a policy of each kind, two nodes and an API server.
func town(t testing.TB) *Stored {
	return &Stored{
		Balancing:      []v1beta1.BalancingPolicy{of[v1beta1.BalancingPolicy](t, otherBalancing)},
		LocalRedirects: []v1beta1.LocalRedirectPolicy{of[v1beta1.LocalRedirectPolicy](t, otherLocal)},
		Nodes:          []corev1.Node{of[corev1.Node](t, nodeA), of[corev1.Node](t, nodeB)},
		APIServers:     []netip.AddrPort{netip.MustParseAddrPort("198.51.100.9:6443")},
	}
}

// nowhere is what is stored where nobody knows it.
func nowhere() *Stored { return &Stored{Err: errors.New("the API server is away")} }

// asks makes a request of manifests; before is empty when a policy is created.
func asks(t testing.TB, kind admission.Kind, manifest, before string) admission.Request {
	t.Helper()
	r := admission.Request{Kind: kind, Operation: admissionv1.Create, Name: "a", Object: raw(t, manifest)}
	if before != "" {
		r.Operation, r.Old = admissionv1.Update, raw(t, before)
	}
	return r
}

func raw(t testing.TB, manifest string) []byte {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// accepted are the manifests that must apply unchanged, as the API server has them when it asks: with an id.
func accepted(t testing.TB) (out []admission.Request) {
	text, err := os.ReadFile("../../api/balancing/testdata/accepted.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range strings.Split(string(text), "\n---\n") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(d), &o); err != nil {
			t.Fatal(err)
		}
		meta := o["metadata"].(map[string]any)
		notes, _ := meta["annotations"].(map[string]any)
		if notes == nil {
			notes = map[string]any{}
			meta["annotations"] = notes
		}
		if notes["balancing.elf.io/serviceId"] == nil {
			notes["balancing.elf.io/serviceId"] = string(rune('1' + i))
		}
		object, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, admission.Request{Kind: admission.Kind(o["kind"].(string)), Operation: admissionv1.Create, Name: meta["name"].(string), Object: object})
	}
	return out
}
