// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"net/netip"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"fairlead.io/fairlead/e2e/kubetest"
)

// canaryOf sends what is dialled at the ClusterIP of service 0 to pods with a label; spec is a line of it that may change.
func canaryOf(spec, app string) string {
	return fmt.Sprintf(`apiVersion: balancing.elf.io/v1beta1
kind: BalancingPolicy
metadata: {name: canary}
spec:
  %s
  frontend: {serviceMatcher: {namespace: %s, serviceName: %s, toPorts: [{port: "80", protocol: TCP}]}}
  backend: {serviceEndpoint: {endpointSelector: {matchLabels: {app: %s}}, redirectMode: podEndpoint, toPorts: [{port: "80", protocol: TCP}]}}
`, spec, namespace, name(0), app)
}

// stranger is a ready pod of no Service, with a label of its own, that says a word.
func (l *inside) stranger(app string, node int, word string) {
	l.t.Helper()
	address := netip.AddrFrom4([4]byte{10, 244, byte(node), 77})
	_, err := l.kube.Pod(l.t.Context(), kubetest.PodSpec{
		Namespace: namespace, Name: app, Node: l.nodes[node-1].Name, Labels: labels{"app": app}, Addresses: []netip.Addr{address},
	})
	l.must(err)
	l.serve(address, word)
}

func (l *inside) policies() dynamic.ResourceInterface {
	l.t.Helper()
	client, err := dynamic.NewForConfig(l.kube.Config())
	l.must(err)
	return client.Resource(schema.GroupVersionResource{Group: "balancing.elf.io", Version: "v1beta1", Resource: "balancingpolicies"})
}

// programmed waits until the policy says that each node that carries it out has it as it is.
func (l *inside) programmed() {
	l.t.Helper()
	l.Eventually("the policy is programmed", func() error {
		o, err := l.policies().Get(l.t.Context(), "canary", metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, c := range conditions {
			if c := c.(map[string]any); c["type"] == "Programmed" && c["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("it shows %v", o.Object["status"])
	})
}

// Balancing §7, §9, §24: a policy that is applied to a real API server leads the programs of a node from a Service to its own pods, and says so
// once the node has it; it stops as soon as it is switched off, when it is deleted, and begins anew under its name with others. What the
// node was told holds while nobody is there to tell.
// Rule: balancing §24.
func TestPoliciesLeadProgramsOfANode(t *testing.T) {
	l := newInside(t, "balancingPolicies: true\n", "../../deploy/components/balancing/crds/*.yaml")
	at := l.clusterIP()
	l.answering(1, "of the service")
	l.stranger("canary", 2, "of the policy")
	l.stranger("another", 3, "of another")
	l.hears(at, "of the service")
	apply := func(spec, app string) {
		t.Helper()
		l.must(l.kube.Apply(t.Context(), canaryOf(spec, app)))
	}

	apply("enabled: true", "canary")
	l.hears(at, "of the policy")
	l.programmed()
	apply("enabled: false", "canary")
	l.hears(at, "of the service")
	apply("config: {nodeLabelSelector: {matchLabels: {kubernetes.io/hostname: elsewhere}}}", "canary")
	l.hears(at, "of the service")
	apply("enabled: true", "canary")
	l.hears(at, "of the policy")

	l.killAll()
	l.agent.Kill()
	if got := l.says(at, 80); got != "of the policy" {
		t.Errorf("with nobody there: %q", got)
	}
	l.startAll()
	l.agent.Start()
	l.must(l.policies().Delete(t.Context(), "canary", metav1.DeleteOptions{}))
	l.hears(at, "of the service")
	apply("enabled: true", "another")
	l.hears(at, "of another")
	l.must(l.policies().Delete(t.Context(), "canary", metav1.DeleteOptions{}))
	l.hears(at, "of the service")
}
