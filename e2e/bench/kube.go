// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/e2e/lab"
)

// apiCluster is an API server with Services that have an endpoint on each of two nodes. Nobody but the benchmark writes
// their slices.
type apiCluster struct {
	*kubetest.Cluster
	t *bench
}

const apiNodes = 2

// startAPI starts one that has the two nodes, and no Service yet.
func startAPI(t *bench) *apiCluster {
	c := startBareAPI(t, kubetest.Options{})
	for n := 1; n <= apiNodes; n++ {
		c.node(fmt.Sprintf("n%d", n), lab.NodeAddress(n))
	}
	return c
}

// startBareAPI starts one without nodes and controllers.
func startBareAPI(t *bench, o kubetest.Options) *apiCluster {
	rest.SetDefaultWarningHandler(rest.NoWarnings{})                         // spec.externalIPs is said to be deprecated, each time
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute) // binaries may have to be built first
	defer cancel()
	o.NoControllers, o.Log = true, t.progress
	c, err := kubetest.New(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return &apiCluster{c, t}
}

func (c *apiCluster) node(name string, address netip.Addr) {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	if _, err := c.Node(ctx, name, nil, address); err != nil {
		c.t.Fatal(err)
	}
}

func apiName(i int) string { return fmt.Sprintf("svc-%d", i) }

// fill makes services from one number up to another.
func (c *apiCluster) fill(from, to int) {
	const writers = 8
	c.t.progressf("making %d Services", to-from)
	next := atomic.Int64{}
	next.Store(int64(from))
	var writing sync.WaitGroup
	var failure atomic.Pointer[error]
	for range writers {
		writing.Go(func() {
			for i := int(next.Add(1)) - 1; i < to && failure.Load() == nil; i = int(next.Add(1)) - 1 {
				if err := c.make(i); err != nil {
					failure.Store(&err)
				}
			}
		})
	}
	writing.Wait()
	if err := failure.Load(); err != nil {
		c.t.Fatal(*err)
	}
}

// fillPatience bounds one write among many, while members act on all of them.
const fillPatience = 2 * time.Minute

func (c *apiCluster) make(i int) error {
	return c.serve(i, []string{lab.VIP(i).String()}, slice(i, true))
}

// serve makes service i with external addresses, and its endpoints.
func (c *apiCluster) serve(i int, external []string, endpoints *discoveryv1.EndpointSlice) error {
	ctx, cancel := context.WithTimeout(context.Background(), fillPatience)
	defer cancel()
	noNodePorts := false // there are fewer than 3,000
	_, err := c.Client().CoreV1().Services(metav1.NamespaceDefault).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: apiName(i)},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, ExternalIPs: external,
			AllocateLoadBalancerNodePorts: &noNodePorts,
			Selector:                      map[string]string{"app": apiName(i)}, Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = c.Client().DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Create(ctx, endpoints, metav1.CreateOptions{})
	return err
}

// slice is the endpoints of service i; the one on the last node may be there or not.
func slice(i int, last bool) *discoveryv1.EndpointSlice {
	s := emptySlice(i)
	for n := 1; n <= apiNodes; n++ {
		s.Endpoints = append(s.Endpoints, endpoint(netip.AddrFrom4([4]byte{10, byte(n), byte(i >> 8), byte(i)}), fmt.Sprintf("n%d", n), n < apiNodes || last))
	}
	return s
}

func emptySlice(i int) *discoveryv1.EndpointSlice {
	name, port, protocol := "http", int32(8080), corev1.ProtocolTCP
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: apiName(i), Labels: map[string]string{discoveryv1.LabelServiceName: apiName(i)}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}},
	}
}

func endpoint(address netip.Addr, node string, ready bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses: []string{address.String()}, NodeName: &node,
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready},
	}
}

// change makes the endpoint of service i on the last node ready or not, and gives when the API server acknowledged that.
func (c *apiCluster) change(i int, ready bool) time.Time {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	_, err := c.Client().DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Update(ctx, slice(i, ready), metav1.UpdateOptions{})
	at := time.Now()
	if err != nil {
		c.t.Fatal(err)
	}
	return at
}

// usages is what the API server's processes have used.
func (c *apiCluster) usages() map[string]usage {
	out := map[string]usage{}
	for name, pid := range c.Processes() {
		out[name] = usageOf(pid)
	}
	return out
}
