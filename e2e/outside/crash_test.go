// SPDX-License-Identifier: Apache-2.0

package outside_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/e2e/outside/balancer"
	"fairlead.io/fairlead/internal/testkit"
)

// INV-4: the whole group is killed in the middle of every call there is, whether the call does nothing, takes effect
// without an answer, or takes effect after everybody has gone, and everything ends right.
func TestGroupKilledInTheMiddleOfEveryCallEndsRight(t *testing.T) {
	s := newStage(t, kubetest.Options{NoControllers: true})
	s.driver.Late(time.Second)
	s.balance("2s")
	steps := []struct {
		call webhook.Name
		act  func(lb string, pod int)
		want bool // whether the pod is bound in the end
	}{
		{webhook.CreateLoadBalancer, func(lb string, _ int) { s.own(lb) }, true},
		{webhook.GenerateBackendAddr, func(lb string, pod int) { s.runAs(lb, pod) }, true},
		{webhook.EnsureBackend, func(lb string, pod int) { s.runAs(lb, pod) }, true},
		{webhook.DeregisterBackend, func(_ string, pod int) { s.remove(pod) }, false},
		{webhook.DeleteLoadBalancer, func(lb string, _ int) { s.disown(lb) }, false},
	}
	for f, fault := range []balancer.Fault{balancer.Broken, balancer.Lose, balancer.Hang} {
		lb := fmt.Sprintf("edge-%d", f)
		for i, step := range steps {
			pod := 10*f + i
			if step.call == webhook.DeregisterBackend {
				pod = 10*f + 1 // one that was bound
			}
			hit := make(chan struct{})
			var once atomic.Bool
			s.driver.Faults(func(c balancer.Call) balancer.Fault {
				if c.Webhook == step.call && once.CompareAndSwap(false, true) {
					close(hit)
					return fault
				}
				return balancer.None
			})
			step.act(lb, pod)
			select {
			case <-hit:
			case <-time.After(testkit.Patience):
				t.Fatalf("no %s within %s", step.call, testkit.Patience)
			}
			s.killAll()
			s.startAll()
			s.driver.Quiet()
			s.Eventually(fmt.Sprintf("the end of %s, fault %d", step.call, fault), func() error {
				switch step.call {
				case webhook.CreateLoadBalancer:
					return s.created(lb)
				case webhook.DeleteLoadBalancer:
					return s.gone(lb)
				}
				if on := slices.Contains(s.driver.On(lb), backend(pod)); on != step.want {
					return fmt.Errorf("%s has %v", lb, s.driver.On(lb))
				}
				return nil
			})
		}
	}
	s.lawful()
}

// own makes a load balancer with a group of the pods that are labelled with its name.
func (s *stage) own(lb string) {
	s.t.Helper()
	s.apply(`
apiVersion: lbcf.tkestack.io/v1beta1
kind: LoadBalancer
metadata: {name: %[2]s, namespace: %[1]s, finalizers: [lbcf.tkestack.io/delete-load-loadbalancer]}
spec: {lbDriver: theatre, lbSpec: {id: %[2]s}}
---
apiVersion: lbcf.tkestack.io/v1beta1
kind: BackendGroup
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  loadBalancers: [%[2]s]
  pods:
    ports: [{port: 8080, protocol: TCP}]
    byLabel: {selector: {app: %[2]s}}
`, namespace, lb)
}

var loadBalancers = schema.GroupVersionResource{Group: "lbcf.tkestack.io", Version: "v1beta1", Resource: "loadbalancers"}

func (s *stage) objects(kind schema.GroupVersionResource) dynamic.ResourceInterface {
	s.t.Helper()
	client, err := dynamic.NewForConfig(s.kube.Config())
	s.must(err)
	return client.Resource(kind).Namespace(namespace)
}

// disown deletes a load balancer; its pods and its group stay.
func (s *stage) disown(lb string) {
	s.t.Helper()
	s.must(s.objects(loadBalancers).Delete(s.t.Context(), lb, metav1.DeleteOptions{}))
}

// created tells whether the status of a LoadBalancer says so.
func (s *stage) created(lb string) error {
	o, err := s.objects(loadBalancers).Get(s.t.Context(), lb, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if condition(o.Object, "Created") != "True" {
		return fmt.Errorf("its status is %v", o.Object["status"])
	}
	return nil
}

// gone tells whether a LoadBalancer has gone, and nothing of ours is on it.
func (s *stage) gone(lb string) error {
	if on := s.driver.On(lb); len(on) > 0 {
		return fmt.Errorf("%v are on it", on)
	}
	if o, err := s.objects(loadBalancers).Get(s.t.Context(), lb, metav1.GetOptions{}); err == nil {
		return fmt.Errorf("it is there, with status %v", o.Object["status"])
	}
	return nil
}

// condition is the status of a condition of an object.
func condition(object map[string]any, kind string) string {
	status, _ := object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == kind {
			word, _ := c["status"].(string)
			return word
		}
	}
	return ""
}
