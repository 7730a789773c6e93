// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"fairlead.io/fairlead/e2e/kubetest"
)

// overlays are how many members each has, and how many of them may be away at once.
var overlays = map[string]struct{ members, away int }{"one": {1, -1}, "three": {3, 1}, "five": {5, 1}}

// The manifests of all sizes go from one to the next on a live cluster, and the real controllers make of them a member
// on each labelled node and an agent on every node.
func TestManifestsGrowAGroupFromOneToFive(t *testing.T) {
	t.Parallel()
	built := map[string][]*unstructured.Unstructured{}
	for name := range overlays {
		built[name] = kustomize(t, "overlays/"+name)
	}
	c := kubetest.Start(t, kubetest.Options{Controllers: []string{"daemonset-controller", "disruption-controller"}})
	a := newApplier(t, c)
	worker(t, c, "w-1")
	a.apply(t, manifests(t, "examples/config-maps.yaml")...)
	nodes := 1
	for _, name := range []string{"one", "three", "five"} {
		want := overlays[name]
		for ; nodes <= want.members; nodes++ {
			master(t, c, nodes)
		}
		first := a.apply(t, built[name]...)
		for i, again := range a.apply(t, built[name]...) {
			// What has a generation has a status, too, which controllers write meanwhile.
			if again.GetGeneration() != first[i].GetGeneration() || again.GetGeneration() == 0 && again.GetResourceVersion() != first[i].GetResourceVersion() {
				t.Errorf("%s %s: applied again, it changed", again.GetKind(), again.GetName())
			}
		}
		kubetest.Eventually(t, name+": a member on each labelled node and an agent on every node", func(ctx context.Context) error {
			members, err := nodesOf(ctx, c, "fairlead-controller")
			if err != nil {
				return err
			}
			agents, err := nodesOf(ctx, c, "fairlead-agent")
			if len(members) != want.members || len(agents) != want.members+1 || slices.Contains(members, "w-1") {
				return fmt.Errorf("members on %v, agents on %v, %v", members, agents, err)
			}
			return err
		})
		if want.away < 0 {
			continue
		}
		kubetest.Eventually(t, name+": budget", func(ctx context.Context) error {
			b, err := c.Client().PolicyV1().PodDisruptionBudgets("kube-system").Get(ctx, "fairlead-controller", metav1.GetOptions{})
			if err == nil && (int(b.Status.ExpectedPods) != want.members || int(b.Status.DesiredHealthy) != want.members-want.away) {
				return fmt.Errorf("status %+v", b.Status)
			}
			return err
		})
	}
}

// master makes a node as kubeadm makes those of its control plane, labelled for a member.
func master(t *testing.T, c *kubetest.Cluster, i int) {
	t.Helper()
	name := fmt.Sprintf("cp-%d", i)
	labels := map[string]string{"kubernetes.io/os": "linux", "fairlead.io/member": "true"}
	if _, err := c.Node(t.Context(), name, labels, netip.AddrFrom4([4]byte{192, 0, 2, byte(10 + i)})); err != nil {
		t.Fatal(err)
	}
	taint := []byte(`{"spec":{"taints":[{"key":"node-role.kubernetes.io/control-plane","effect":"NoSchedule"}]}}`)
	if _, err := c.Client().CoreV1().Nodes().Patch(t.Context(), name, "application/strategic-merge-patch+json", taint, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func worker(t *testing.T, c *kubetest.Cluster, name string) {
	t.Helper()
	if _, err := c.Node(t.Context(), name, map[string]string{"kubernetes.io/os": "linux"}, netip.MustParseAddr("192.0.2.101")); err != nil {
		t.Fatal(err)
	}
}

// nodesOf are the nodes for which a DaemonSet has made a pod; the scheduler would bind it.
func nodesOf(ctx context.Context, c *kubetest.Cluster, app string) ([]string, error) {
	pods, err := c.Client().CoreV1().Pods("kube-system").List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + app})
	if err != nil {
		return nil, err
	}
	nodes := map[string]bool{}
	for _, p := range pods.Items {
		nodes[p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]] = true
	}
	return slices.Sorted(maps.Keys(nodes)), nil
}

// What a pod may do to its node is written down here once more, so that a change of it is a change of two files.
func TestPodsHaveExactlyTheseRights(t *testing.T) {
	capabilities := map[string][]any{
		"fairlead-controller": {"NET_BIND_SERVICE", "NET_RAW"},
		"fairlead-agent":      {"NET_ADMIN"},
	}
	seen := 0
	for _, o := range kustomize(t, "overlays/three") {
		if o.GetKind() != "DaemonSet" {
			continue
		}
		seen++
		spec, _, _ := unstructured.NestedMap(o.Object, "spec", "template", "spec")
		for _, field := range []string{"hostPID", "hostIPC", "initContainers"} {
			if spec[field] != nil {
				t.Errorf("%s has %s", o.GetName(), field)
			}
		}
		if spec["automountServiceAccountToken"] == true {
			t.Errorf("%s has a token besides the one that it asks for", o.GetName())
		}
		if kind, _, _ := unstructured.NestedString(spec, "securityContext", "seccompProfile", "type"); kind != string(corev1.SeccompProfileTypeRuntimeDefault) {
			t.Errorf("%s has seccomp profile %q", o.GetName(), kind)
		}
		containers, _, _ := unstructured.NestedSlice(spec, "containers")
		if len(containers) != 1 {
			t.Fatalf("%s has %d containers", o.GetName(), len(containers))
		}
		container := containers[0].(map[string]any)
		context := container["securityContext"].(map[string]any)
		if container["imagePullPolicy"] != "IfNotPresent" {
			t.Errorf("%s pulls its image %v: where there is no registry it is brought to the nodes", o.GetName(), container["imagePullPolicy"])
		}
		// Kubelets spare pods of these two when memory is short, and so does the kernel that they tell whom to end last.
		if class, _ := spec["priorityClassName"].(string); class != map[string]string{"fairlead-controller": "system-cluster-critical", "fairlead-agent": "system-node-critical"}[o.GetName()] {
			t.Errorf("%s has priority class %q", o.GetName(), class)
		}
		if context["allowPrivilegeEscalation"] != false || context["readOnlyRootFilesystem"] != true || context["privileged"] != nil {
			t.Errorf("%s: %v", o.GetName(), context)
		}
		granted := context["capabilities"].(map[string]any)
		if drop := granted["drop"].([]any); !slices.Equal(drop, []any{"ALL"}) || !slices.Equal(granted["add"].([]any), capabilities[o.GetName()]) {
			t.Errorf("%s: capabilities %v", o.GetName(), granted)
		}
		for _, what := range []string{"resources", "livenessProbe", "readinessProbe"} {
			if container[what] == nil {
				t.Errorf("%s has no %s", o.GetName(), what)
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d DaemonSets", seen)
	}
}
