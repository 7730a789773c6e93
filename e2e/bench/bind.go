// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/e2e/outside/balancer"
)

// bound is a group that binds pods of a cluster to an outside load balancer.
type bound struct {
	*group
	api    *kubetest.Cluster
	driver *balancer.Balancer

	mu   sync.Mutex
	when map[string]time.Time // when a backend was first put on, by address
	wait map[string]chan time.Time
}

const (
	bindBalancer = "edge"
	bindNode     = "n1"
)

// startBound starts an API server with LBCF's kinds and with ready pods, a driver, and a group with an empty load
// balancer.
func startBound(t *bench, pods int) *bound {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute) // binaries may have to be built first
	defer cancel()
	api, err := kubetest.New(ctx, kubetest.Options{NoControllers: true, Log: t.progress})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &bound{api: api, driver: balancer.Start(t), when: map[string]time.Time{}, wait: map[string]chan time.Time{}}
	b.driver.OnBound(b.note)
	t.must(api.ApplyFiles(ctx, "deploy/crds/lbcf.*.yaml"))
	if _, err := api.Node(ctx, bindNode, nil, lab.NodeAddress(1)); err != nil {
		t.Fatal(err)
	}
	t.progressf("making %d pods", pods)
	t.parallel(pods, func(ctx context.Context, i int) error {
		_, err := b.pod(ctx, i)
		return err
	})
	b.group = &group{Lab: lab.New(t, lab.Options{Log: "warn", Kubeconfig: api.Kubeconfig()}), t: t}
	b.apply(`
apiVersion: lbcf.tkestack.io/v1beta1
kind: LoadBalancerDriver
metadata: {name: theatre}
spec: {driverType: Webhook, url: %q}
---
apiVersion: lbcf.tkestack.io/v1beta1
kind: LoadBalancer
metadata: {name: edge, finalizers: [lbcf.tkestack.io/delete-load-loadbalancer]}
spec: {lbDriver: theatre, lbSpec: {id: edge}}
`, b.driver.URL)
	b.EventuallyWithin("the load balancer", time.Minute, func() error {
		return b.calls(webhook.CreateLoadBalancer, 1)
	})
	return b
}

func (t *bench) must(err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// parallel does something n times, a few at a time.
func (t *bench) parallel(n int, do func(ctx context.Context, i int) error) {
	const writers = 8
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	numbers := make(chan int)
	failures := make(chan error, writers)
	var writing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			var failure error
			for i := range numbers {
				if failure == nil {
					failure = do(ctx, i)
				}
			}
			failures <- failure
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	writing.Wait()
	for range writers {
		t.must(<-failures)
	}
}

func (b *bound) apply(manifests string, args ...any) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	b.t.must(b.api.Apply(ctx, fmt.Sprintf(manifests, args...)))
}

// bind has all pods bound from now on.
func (b *bound) bind() time.Time {
	b.apply(`
apiVersion: lbcf.tkestack.io/v1beta1
kind: BackendGroup
metadata: {name: web}
spec:
  loadBalancers: [edge]
  pods: {ports: [{port: 8080, protocol: TCP}], byLabel: {selector: {app: web}}}
  parameters: {weight: "100"}
`)
	return time.Now()
}

func bindAddress(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 244, byte(i >> 8), byte(i)}) }

func bindBackend(i int) string { return bindAddress(i).String() + ":8080" }

func bindPod(i int) string { return fmt.Sprintf("web-%d", i) }

func (b *bound) pod(ctx context.Context, i int) (*kubetest.Pod, error) {
	return b.api.Pod(ctx, kubetest.PodSpec{
		Name: bindPod(i), Node: bindNode, Labels: map[string]string{"app": "web"}, Addresses: []netip.Addr{bindAddress(i)},
	})
}

func (b *bound) calls(n webhook.Name, want int) error {
	if have := b.driver.Calls(n); have < want {
		return fmt.Errorf("%d calls of %s, not %d", have, n, want)
	}
	return nil
}

// note keeps when a backend was put on.
func (b *bound) note(address string, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.when[address]; !known {
		b.when[address] = at
	}
	if c := b.wait[address]; c != nil {
		delete(b.wait, address)
		c <- at
	}
}

// next is when a backend is put on next.
func (b *bound) next(address string) <-chan time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := make(chan time.Time, 1)
	b.wait[address] = c
	return c
}

// all waits until n backends are on the load balancer, and gives when the last of them was first put on.
func (b *bound) all(n int, within time.Duration) time.Time {
	b.EventuallyWithin(fmt.Sprintf("%d backends", n), within, func() error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.when) < n {
			return fmt.Errorf("%d", len(b.when))
		}
		return nil
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	var last time.Time
	for _, at := range b.when {
		if at.After(last) {
			last = at
		}
	}
	return last
}

// setReady writes whether a pod is ready, and gives when the API server acknowledged that.
func (b *bound) setReady(i int, ready bool) time.Time {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	pods := b.api.Client().CoreV1().Pods(metav1.NamespaceDefault)
	pod, err := pods.Get(ctx, bindPod(i), metav1.GetOptions{})
	b.t.must(err)
	for at := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[at]; c.Type == corev1.PodReady {
			c.Status = corev1.ConditionFalse
			if ready {
				c.Status = corev1.ConditionTrue
			}
		}
	}
	_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	at := time.Now()
	b.t.must(err)
	return at
}
