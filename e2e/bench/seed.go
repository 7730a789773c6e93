// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"fairlead.io/fairlead/e2e/kubetest"
)

// seed puts services from one number up to another where the API server keeps them, without asking it: to allocate cluster
// addresses takes it an hour for 50,000. The first of all is made as usual, and the others are like it but for what differs
// from Service to Service. External addresses may be nil.
func (c *apiCluster) seed(from, to int, external func(i int) []string, endpoints func(i int) *discoveryv1.EndpointSlice) {
	c.t.progressf("making %d Services", to-from)
	if from == 0 {
		if err := c.serve(0, external(0), endpoints(0)); err != nil {
			c.t.Fatal(err)
		}
		from = 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), fillPatience)
	defer cancel()
	like, address, slice := c.templates(ctx)
	var objects [][]kubetest.Seeded
	for i := from; i < to; i++ {
		s, a, e := like.DeepCopy(), address.DeepCopy(), slice.DeepCopy()
		s.Name, s.UID = apiName(i), seedUID(1, i)
		s.Spec.ClusterIP = clusterAddress(i, like.Spec.ClusterIP)
		s.Spec.ClusterIPs, s.Spec.ExternalIPs = []string{s.Spec.ClusterIP}, external(i)
		s.Spec.Selector = map[string]string{"app": apiName(i)}
		a.Name, a.UID, a.Spec.ParentRef.Name = s.Spec.ClusterIP, seedUID(2, i), s.Name
		next, now := endpoints(i), metav1.Now()
		// The API server takes an old address whose Service it does not know yet for one that leaked.
		s.CreationTimestamp, a.CreationTimestamp, e.CreationTimestamp = now, now, now
		e.Name, e.UID, e.Labels, e.Endpoints = next.Name, seedUID(3, i), next.Labels, next.Endpoints
		objects = append(objects, []kubetest.Seeded{
			{Key: "services/specs/default/" + s.Name, Object: s},
			{Key: "ipaddresses/" + a.Name, Object: a},
			{Key: "endpointslices/default/" + e.Name, Object: e},
		})
	}
	if err := c.Seed(ctx, objects); err != nil {
		c.t.Fatal(err)
	}
}

// templates are the first Service, its cluster address and its endpoints as etcd keeps them.
func (c *apiCluster) templates(ctx context.Context) (*corev1.Service, *networkingv1.IPAddress, *discoveryv1.EndpointSlice) {
	s, err := c.Client().CoreV1().Services(metav1.NamespaceDefault).Get(ctx, apiName(0), metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	a, err := c.Client().NetworkingV1().IPAddresses().Get(ctx, s.Spec.ClusterIP, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	e, err := c.Client().DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Get(ctx, apiName(0), metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}
	a.TypeMeta = metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "IPAddress"}
	e.TypeMeta = metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}
	s.ResourceVersion, a.ResourceVersion, e.ResourceVersion = "", "", ""
	s.Status = corev1.ServiceStatus{}
	return s, a, e
}

func seedUID(kind, i int) types.UID {
	return types.UID(fmt.Sprintf("6b1f0d0e-%04d-4000-8000-%012d", kind, i))
}

// clusterAddress is that of Service i, which is not the one that the API server gave the first.
func clusterAddress(i int, taken string) string {
	i += 256
	if a := netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}).String(); a != taken {
		return a
	}
	return "10.96.0.9"
}
