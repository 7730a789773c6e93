// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/k8s/status"
)

const partOf = "app.kubernetes.io/part-of=fairlead"

// The pods that clean nodes need no image but the one that the agents ran from: nodes may have no way to a registry, and what else they have
// is of no certain version.
func TestCleanupNeedsNoOtherImage(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, kind := range []string{"initContainers", "containers"} {
		list, _, err := unstructured.NestedSlice(manifests(t, "uninstall/cleanup.yaml")[0].Object, "spec", "template", "spec", kind)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			container := c.(map[string]any)
			seen++
			if container["image"] != "@IMAGE@" || container["imagePullPolicy"] != "IfNotPresent" {
				t.Errorf("%s: image %v, pulled %v", container["name"], container["image"], container["imagePullPolicy"])
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d containers", seen)
	}
}

// Every node's agent is followed by a cleanup with the same image and configuration, and nothing of ours is left but
// what is said to stay.
func TestUninstallLeavesNothing(t *testing.T) {
	t.Parallel()
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		missing(t, errors.New("kubectl is not installed on this machine"))
	}
	objects := kustomize(t, "overlays/three")
	c := kubetest.Start(t, kubetest.Options{Controllers: []string{"daemonset-controller"}})
	a := newApplier(t, c)
	a.apply(t, manifests(t, "examples/config-maps.yaml")...)
	worker(t, c, "w-1")
	for i := range 3 {
		master(t, c, i+1)
	}
	a.apply(t, objects...)
	nodes := runPods(t, c)
	kubetest.Eventually(t, "agents that run", func(context.Context) error { return nodes.ran("agent", 4) })

	service := finalizedService(t, c, a)
	for _, attempt := range []string{"first", "again"} {
		cmd := exec.CommandContext(t.Context(), "uninstall/uninstall.sh", "cluster")
		cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig(), "TIMEOUT=20s", "HOME="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s with %s: %v\n%s", attempt, kubectl, err, out)
		}
	}
	if err := nodes.ran("cleanup", 4); err != nil {
		t.Error(err)
	}
	for _, o := range objects {
		if o.GetKind() == "CustomResourceDefinition" {
			continue // with them would go every object of users
		}
		if _, err := a.resource(t, o).Get(t.Context(), o.GetName(), metav1.GetOptions{}); err == nil {
			t.Errorf("%s %s is left", o.GetKind(), o.GetName())
		}
	}
	left, err := c.Client().CoreV1().Services("default").Get(t.Context(), service, metav1.GetOptions{})
	if err != nil || !slices.Equal(left.Finalizers, []string{"example.com/other"}) || len(left.Spec.Ports) != 1 {
		t.Errorf("a Service has finalizers %v, ports %v, %v", left.Finalizers, left.Spec.Ports, err)
	}
	pods, err := c.Client().CoreV1().Pods("kube-system").List(t.Context(), metav1.ListOptions{LabelSelector: partOf})
	if err != nil || len(pods.Items) > 0 {
		t.Errorf("%d pods are left, %v", len(pods.Items), err)
	}
	for _, o := range manifests(t, "examples/config-maps.yaml") {
		if _, err := a.resource(t, o).Get(t.Context(), o.GetName(), metav1.GetOptions{}); err != nil {
			t.Errorf("%s of the old system: %v", o.GetName(), err)
		}
	}
}

// finalizedService makes a Service with a finalizer that a member set, and with one of somebody else's.
func finalizedService(t *testing.T, c *kubetest.Cluster, a *applier) string {
	t.Helper()
	o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "guarded", Finalizers: []string{"example.com/other"}}}
	o.Spec.Type, o.Spec.Ports = corev1.ServiceTypeLoadBalancer, []corev1.ServicePort{{Port: 80}}
	if _, err := c.Client().CoreV1().Services("default").Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	mine := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{
		"namespace": "default", "name": o.Name, "finalizers": []any{status.Finalizer},
	}}}
	got, err := a.resource(t, mine).Apply(t.Context(), o.Name, mine, metav1.ApplyOptions{FieldManager: status.Manager})
	if err != nil || !slices.Contains(got.GetFinalizers(), status.Finalizer) {
		t.Fatalf("finalizers %v, %v", got.GetFinalizers(), err)
	}
	return o.Name
}

// kubelets do for all nodes what the test needs of scheduler and kubelets: pods are bound, become ready, and end.
type kubelets struct {
	mu   sync.Mutex
	args map[string][]string // by container, of each of its pods: "node image configuration"
}

// ran tells whether a container has run on so many nodes, with the same image and configuration as all others.
func (k *kubelets) ran(container string, nodes int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n := len(k.args[container]); n != nodes {
		return fmt.Errorf("%s ran %d times: %v", container, n, k.args[container])
	}
	slices.Sort(k.args[container])
	if agents := k.args["agent"]; !slices.Equal(k.args[container], agents) {
		return fmt.Errorf("%s ran as %v, agents as %v", container, k.args[container], agents)
	}
	return nil
}

func runPods(t *testing.T, c *kubetest.Cluster) *kubelets {
	t.Helper()
	k := &kubelets{args: map[string][]string{}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	t.Cleanup(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			pods, err := c.Client().CoreV1().Pods("kube-system").List(ctx, metav1.ListOptions{LabelSelector: partOf})
			if err == nil {
				for i := range pods.Items {
					k.step(ctx, c, &pods.Items[i])
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return k
}

// step brings one pod further; what fails is tried again with the next list.
func (k *kubelets) step(ctx context.Context, c *kubetest.Cluster, p *corev1.Pod) {
	pods := c.Client().CoreV1().Pods(p.Namespace)
	switch {
	case p.DeletionTimestamp != nil:
		now := int64(0)
		_ = pods.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	case p.Spec.NodeName == "":
		node := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
		_ = pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}, metav1.CreateOptions{})
	case p.Status.Phase != corev1.PodRunning:
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
		if _, err := pods.UpdateStatus(ctx, p, metav1.UpdateOptions{}); err != nil {
			return
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, container := range append(p.Spec.InitContainers, p.Spec.Containers...) {
			for _, v := range p.Spec.Volumes {
				if v.Name == "config" && !strings.HasPrefix(v.ConfigMap.Name, "fairlead-controller") {
					k.args[container.Name] = append(k.args[container.Name], p.Spec.NodeName+" "+container.Image+" "+v.ConfigMap.Name)
				}
			}
		}
	}
}
