// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/e2e/lab"
)

// Specification of kube-loadbalancer-controller §13, row 8: fifty Services come and go in any order; the switch follows
// each and ends empty.
func fiftyServicesComeAndGo(t *testing.T, s *stage) {
	const many = 50
	random := rand.New(rand.NewPCG(8, 8))
	there := map[int]bool{}
	var took []time.Duration
	follow := func(i int) {
		begin := time.Now()
		if there[i] {
			s.deleteService(i)
			delete(there, i)
			s.leads(i)
		} else {
			s.service(i)
			there[i] = true
			s.leads(i, 1+i%3)
		}
		took = append(took, time.Since(begin))
	}
	for i := range many {
		s.pod(i, 1+i%3)
	}
	for _, i := range random.Perm(many) {
		follow(i)
		if j := random.IntN(many); random.IntN(3) == 0 && there[j] {
			follow(j)
		}
	}
	for _, i := range random.Perm(many) {
		if there[i] {
			follow(i)
		}
	}
	if left := s.Bird.Routes(); len(left) > 0 {
		t.Errorf("the switch has %d routes at the end: %v", len(left), left)
	}
	slices.Sort(took)
	t.Logf("%d changes: median %v, longest %v, from the call to the API until the switch has it", len(took), took[len(took)/2], took[len(took)-1])
}

// Row 10 and kube-loadbalancer-controller §11, "node drained": while a node is emptied the path moves, and there is never a moment without one.
func drainedNodeLeavesWithoutAGap(t *testing.T, s *stage) {
	s.service(0)
	old := s.pod(0, 1)
	s.leads(0, 1)
	stop := s.NeverMissing(prefix(0))
	s.must(old.Terminate(t.Context())) // it serves while it ends, and nobody else does yet
	s.pod(0, 2)
	s.leads(0, 2)
	s.must(old.Remove(t.Context()))
	s.leads(0, 2)
	stop()
}

// kube-loadbalancer-controller §11, "node crash / NotReady": what Kubernetes says of a node counts; its Services go on elsewhere.
func notReadyNodeLeavesTheRoutes(t *testing.T, s *stage) {
	s.service(0)
	s.pod(0, 1)
	s.pod(0, 2)
	s.leads(0, 1, 2)
	s.must(s.nodes[0].SetReady(t.Context(), false))
	s.leads(0, 2)
	s.must(s.nodes[0].SetReady(t.Context(), true))
	s.leads(0, 1, 2)
}

// kube-loadbalancer-controller §11, "EIP replaced by another": the new one is announced before the old one is withdrawn.
func replacedAddressIsAnnouncedBeforeTheOldOneGoes(t *testing.T, s *stage) {
	s.service(0)
	s.pod(0, 1)
	s.leads(0, 1)
	seen := make(chan bool, 1)
	watch, done := make(chan struct{}), make(chan struct{})
	go func() { // was there ever neither?
		defer close(done)
		gap := false
		for {
			select {
			case <-watch:
				seen <- gap
				return
			case <-time.After(2 * time.Millisecond):
				gap = gap || len(s.Bird.NextHops(prefix(0))) == 0 && len(s.Bird.NextHops(prefix(9))) == 0
			}
		}
	}()
	s.update(0, func(svc *corev1.Service) { svc.Spec.ExternalIPs = []string{lab.VIP(9).String()} })
	s.leads(9, 1)
	s.leads(0)
	close(watch)
	<-done
	if <-seen {
		t.Error("for a moment the Service had no address at the switch")
	}
}

// kube-loadbalancer-controller §11, "Service deleted / type changed": a Service that is no LoadBalancer any more leaves the switch, but for an address of
// spec.externalIPs, which it has whatever its type (K4).
func serviceOfAnotherTypeLeavesTheSwitch(t *testing.T, s *stage) {
	s.service(0)
	s.pod(0, 1)
	s.leads(0, 1)
	s.update(0, func(svc *corev1.Service) {
		svc.Spec.Type, svc.Spec.AllocateLoadBalancerNodePorts = corev1.ServiceTypeClusterIP, nil
		for i := range svc.Spec.Ports {
			svc.Spec.Ports[i].NodePort = 0
		}
		svc.Spec.ExternalIPs = nil
	})
	s.leads(0)
	s.update(0, func(svc *corev1.Service) { svc.Spec.ExternalIPs = []string{lab.VIP(0).String()} })
	s.leads(0, 1)
	s.update(0, func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeLoadBalancer })
	s.leads(0, 1)
}

// update changes service i, whoever else writes to it meanwhile.
func (s *stage) update(i int, change func(*corev1.Service)) {
	s.t.Helper()
	s.must(retry.RetryOnConflict(kubetest.Conflicts(), func() error {
		svc := s.object(i)
		change(svc)
		_, err := s.kube.Client().CoreV1().Services(namespace).Update(s.t.Context(), svc, metav1.UpdateOptions{})
		return err
	}))
}

// Row 17: a thousand addresses in a cluster of a hundred nodes; one endpoint that changes is one UPDATE of each member.
// Rule: kube-loadbalancer-controller §13 row 17.
func TestOneChangeAmongAThousandIsOneUpdate(t *testing.T) {
	const services, nodes = 1000, 100
	kube := kubetest.Start(t, kubetest.Options{NoControllers: true})
	s := stageOf(t, kube, lab.Options{Log: "info"})
	for n := len(s.nodes) + 1; n <= nodes; n++ {
		node, err := kube.Node(t.Context(), fmt.Sprintf("n%d", n), nil, lab.NodeAddress(n))
		s.must(err)
		s.nodes = append(s.nodes, node)
	}
	begin := time.Now()
	var filling sync.WaitGroup
	queue := make(chan int)
	for range 8 {
		filling.Go(func() {
			for i := range queue {
				s.service(i)
				s.slice(i, 1+i%nodes, 1+(i+1)%nodes)
			}
		})
	}
	for i := range services {
		queue <- i
	}
	close(queue)
	filling.Wait()
	t.Logf("%d Services were made in %v", services, time.Since(begin))
	begin = time.Now()
	s.Eventually("all prefixes at the switch", func() error {
		if n := len(s.Bird.Routes()); n < services*2*len(s.Members) {
			return fmt.Errorf("%d paths", n)
		}
		return nil
	})
	t.Logf("the switch had all of them %v later", time.Since(begin))
	s.Agreed()
	before := s.Updates()
	slice, err := kube.Client().DiscoveryV1().EndpointSlices(namespace).Get(t.Context(), name(500), metav1.GetOptions{})
	s.must(err)
	slice.Endpoints[0].Conditions.Ready = ptr.To(false)
	_, err = kube.Client().DiscoveryV1().EndpointSlices(namespace).Update(t.Context(), slice, metav1.UpdateOptions{})
	s.must(err)
	s.leads(500, 1+501%nodes)
	s.Agreed()
	if n := s.Updates() - before; n != len(s.Members) {
		t.Errorf("%d UPDATEs for one change, want one of each of %d members", n, len(s.Members))
	}
}

// slice writes the endpoints of service i as the endpointslice controller would.
func (s *stage) slice(i int, nodes ...int) {
	s.t.Helper()
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name(i), Namespace: namespace, Labels: labels{discoveryv1.LabelServiceName: name(i)}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To(int32(8080)), Protocol: ptr.To(corev1.ProtocolTCP)}},
	}
	for _, n := range nodes {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{netip.AddrFrom4([4]byte{10, 244 + byte(i>>8), byte(n), byte(i)}).String()},
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}, NodeName: ptr.To(s.nodes[n-1].Name),
		})
	}
	_, err := s.kube.Client().DiscoveryV1().EndpointSlices(namespace).Create(s.t.Context(), slice, metav1.CreateOptions{})
	s.must(err)
}
