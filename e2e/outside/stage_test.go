// SPDX-License-Identifier: Apache-2.0

// Package outside_test runs a group of real processes between a real Kubernetes API and drivers of outside load
// balancers. Each test names the promise that it holds them to; sections (§) are those of LBCF's specification.
package outside_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/e2e/outside/balancer"
)

func TestMain(m *testing.M) { lab.Main(m) }

const (
	namespace = "shop"
	edge      = "edge" // the load balancer that tests use
)

// stage is a group of three that reads a cluster with LBCF's kinds, and a driver with a load balancer.
type stage struct {
	*lab.Lab
	t      testing.TB
	kube   *kubetest.Cluster
	driver *balancer.Balancer
	pods   map[int]*kubetest.Pod
}

func newStage(t testing.TB, o kubetest.Options) *stage {
	t.Helper()
	s := &stage{t: t, kube: kubetest.Start(t, o), pods: map[int]*kubetest.Pod{}}
	s.must(s.kube.ApplyFiles(t.Context(), "../../deploy/crds/lbcf.*.yaml"))
	s.must(s.kube.EnsureNamespace(t.Context(), namespace))
	_, err := s.kube.Node(t.Context(), "n1", nil, lab.NodeAddress(1))
	s.must(err)
	s.driver = balancer.Start(t)
	s.Lab = lab.New(t, lab.Options{Kubeconfig: s.kube.Kubeconfig()})
	return s
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) apply(manifests string, args ...any) {
	s.t.Helper()
	s.must(s.kube.Apply(s.t.Context(), fmt.Sprintf(manifests, args...)))
}

// balance makes the driver, the load balancer, and a group of all pods with the label app: web.
func (s *stage) balance(timeout string) {
	s.t.Helper()
	s.apply(`
apiVersion: lbcf.tkestack.io/v1beta1
kind: LoadBalancerDriver
metadata: {name: theatre, namespace: %[1]s}
spec:
  driverType: Webhook
  url: %[2]s
  webhooks:
  - {name: healthz, timeout: 10s}
  - {name: validateLoadBalancer, timeout: 10s}
  - {name: createLoadBalancer, timeout: 10s}
  - {name: ensureLoadBalancer, timeout: 10s}
  - {name: deleteLoadBalancer, timeout: 10s}
  - {name: validateBackend, timeout: 10s}
  - {name: generateBackendAddr, timeout: %[3]s}
  - {name: ensureBackend, timeout: %[3]s}
  - {name: deregisterBackend, timeout: %[3]s}
---
apiVersion: lbcf.tkestack.io/v1beta1
kind: LoadBalancer
metadata: {name: edge, namespace: %[1]s, finalizers: [lbcf.tkestack.io/delete-load-loadbalancer]}
spec: {lbDriver: theatre, lbSpec: {id: edge}}
---
apiVersion: lbcf.tkestack.io/v1beta1
kind: BackendGroup
metadata: {name: web, namespace: %[1]s}
spec:
  loadBalancers: [edge]
  pods:
    ports: [{port: 8080, protocol: TCP}]
    byLabel: {selector: {app: web}}
  parameters: {weight: "100"}
`, namespace, s.driver.URL, timeout)
}

func podIP(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 244, byte(i >> 8), byte(i)}) }

func backend(i int) string { return podIP(i).String() + ":8080" }

// run makes ready pods of the group web, by number; each has the address of its number.
func (s *stage) run(numbers ...int) {
	s.t.Helper()
	s.runAs("web", numbers...)
}

// runAs makes ready pods of an app.
func (s *stage) runAs(app string, numbers ...int) {
	s.t.Helper()
	made := make([]*kubetest.Pod, len(numbers))
	s.each(numbers, func(ctx context.Context, at, i int) (err error) {
		made[at], err = s.kube.Pod(ctx, kubetest.PodSpec{
			Namespace: namespace, Name: fmt.Sprintf("%s-%d-%d", app, i, time.Now().UnixNano()), Node: "n1", Labels: map[string]string{"app": app},
			Addresses: []netip.Addr{podIP(i)},
		})
		return err
	})
	for at, i := range numbers {
		s.pods[i] = made[at]
	}
}

// remove takes pods away at once.
func (s *stage) remove(numbers ...int) {
	s.t.Helper()
	s.each(numbers, func(ctx context.Context, _, i int) error { return s.pods[i].Remove(ctx) })
}

// each does something for every number, a few at a time.
func (s *stage) each(numbers []int, do func(ctx context.Context, at, i int) error) {
	s.t.Helper()
	const writers = 8
	var failed sync.Map
	next := make(chan int)
	var writing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for at := range next {
				if err := do(s.t.Context(), at, numbers[at]); err != nil {
					failed.Store(at, err)
				}
			}
		})
	}
	for at := range numbers {
		next <- at
	}
	close(next)
	writing.Wait()
	failed.Range(func(_, err any) bool {
		s.t.Fatal(err)
		return false
	})
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// bound waits until just these backends are on the load balancer.
func (s *stage) bound(numbers ...int) {
	s.t.Helper()
	want := make([]string, 0, len(numbers))
	for _, i := range numbers {
		want = append(want, backend(i))
	}
	slices.Sort(want)
	s.Eventually(fmt.Sprintf("%d backends", len(want)), func() error {
		if on := s.driver.On(edge); !slices.Equal(on, want) {
			return fmt.Errorf("%d are on the load balancer, %s", len(on), difference(on, want))
		}
		return nil
	})
}

// difference names a few of those that only one of two lists has.
func difference(have, want []string) string {
	var more, less []string
	for _, h := range have {
		if !slices.Contains(want, h) && len(more) < 5 {
			more = append(more, h)
		}
	}
	for _, w := range want {
		if !slices.Contains(have, w) && len(less) < 5 {
			less = append(less, w)
		}
	}
	return fmt.Sprintf("too many: %v, missing: %v", more, less)
}

// lawful fails the test if a rule of the driver's was broken, or if the load balancer has other foreign servers than these.
func (s *stage) lawful(foreign ...string) {
	s.t.Helper()
	if have := s.driver.Foreigners(edge); !slices.Equal(have, foreign) {
		s.t.Errorf("foreign servers are %v, not %v", have, foreign)
	}
	for _, b := range s.driver.Broken() {
		s.t.Error(b)
	}
}

// killAll ends all members at once, and startAll starts them again.
func (s *stage) killAll() {
	for _, m := range s.Members {
		m.Kill()
	}
}

func (s *stage) startAll() {
	for _, m := range s.Members {
		m.Start()
	}
}

// bindings tells whether the record has just so many bindings, all of them bound.
func (s *stage) bindings(want int) error {
	out, stderr, code := s.CLI("get", "bindings", "-o", "json")
	if code != 0 {
		return fmt.Errorf("get bindings: %s", stderr)
	}
	var list struct {
		Items []struct {
			State string `json:"state"`
		} `json:"items"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return err
	}
	states := map[string]int{}
	for _, b := range list.Items {
		states[b.State]++
	}
	if len(list.Items) != want || states["bound"] != want {
		return fmt.Errorf("%d bindings, %v", len(list.Items), states)
	}
	return nil
}

func (s *stage) deletePods(ctx context.Context) {
	s.t.Helper()
	zero := int64(0)
	s.must(s.kube.Client().CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero}, metav1.ListOptions{}))
}

func atLeast(have, want int) error {
	if have < want {
		return fmt.Errorf("%d, not %d", have, want)
	}
	return nil
}
