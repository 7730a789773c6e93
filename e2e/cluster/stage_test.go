// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/fsm"
)

// stage is a group of three that reads a cluster with three nodes and announces to a switch.
type stage struct {
	*lab.Lab
	t     testing.TB
	kube  *kubetest.Cluster
	nodes []*kubetest.Node
	pods  map[string]*kubetest.Pod
}

const namespace = "shop"

func newStage(t testing.TB, o lab.Options) *stage {
	t.Helper()
	return stageOf(t, kubetest.Start(t, kubetest.Options{}), o)
}

// stageOf is a stage around a cluster.
func stageOf(t testing.TB, kube *kubetest.Cluster, o lab.Options) *stage {
	t.Helper()
	s := &stage{t: t, kube: kube, pods: map[string]*kubetest.Pod{}}
	if o.Kubeconfig == "" {
		o.Kubeconfig = s.kube.Kubeconfig()
	}
	for n := 1; n <= 3; n++ {
		node, err := s.kube.Node(t.Context(), fmt.Sprintf("n%d", n), nil, lab.NodeAddress(n))
		if err != nil {
			t.Fatal(err)
		}
		s.nodes = append(s.nodes, node)
	}
	if err := s.kube.EnsureNamespace(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	s.Lab = lab.New(t, o)
	return s
}

func name(i int) string          { return fmt.Sprintf("web-%d", i) }
func prefix(i int) netip.Prefix  { return fsm.HostPrefix(lab.VIP(i)) }
func selects(i int) labels       { return labels{"app": name(i)} }
func podName(i, node int) string { return fmt.Sprintf("web-%d-on-%d", i, node) }

type labels = map[string]string

// service makes service i in the cluster, as users of the old system do.
func (s *stage) service(i int, change ...func(*corev1.Service)) {
	s.t.Helper()
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name(i), Namespace: namespace},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Selector: selects(i), ExternalIPs: []string{lab.VIP(i).String()},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
		},
	}
	for _, c := range change {
		c(svc)
	}
	if _, err := s.kube.Client().CoreV1().Services(namespace).Create(s.t.Context(), svc, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// pod makes a ready pod of service i on a node, from 1.
func (s *stage) pod(i, node int) *kubetest.Pod {
	s.t.Helper()
	p, err := s.kube.Pod(s.t.Context(), kubetest.PodSpec{
		Namespace: namespace, Name: podName(i, node), Node: s.nodes[node-1].Name, Labels: selects(i),
		Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, 244, byte(node), byte(i + 1)})},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.pods[podName(i, node)] = p
	return p
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) deleteService(i int) {
	s.t.Helper()
	s.must(s.kube.Client().CoreV1().Services(namespace).Delete(s.t.Context(), name(i), metav1.DeleteOptions{}))
}

// leads waits until the switch forwards service i to just these nodes.
func (s *stage) leads(i int, nodes ...int) {
	s.t.Helper()
	var hops []netip.Addr
	for _, n := range nodes {
		hops = append(hops, lab.NodeAddress(n))
	}
	s.Bird.WaitNextHops(prefix(i), hops...)
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

// object reads service i from the cluster.
func (s *stage) object(i int) *corev1.Service {
	s.t.Helper()
	svc, err := s.kube.Client().CoreV1().Services(namespace).Get(s.t.Context(), name(i), metav1.GetOptions{})
	s.must(err)
	return svc
}

// condition waits until service i has a condition of a type and status.
func (s *stage) condition(i int, kind string, status metav1.ConditionStatus) {
	s.t.Helper()
	s.Eventually(fmt.Sprintf("condition %s of %s is %s", kind, name(i), status), func() error {
		svc, err := s.kube.Client().CoreV1().Services(namespace).Get(context.Background(), name(i), metav1.GetOptions{})
		if err != nil {
			return err
		}
		at := slices.IndexFunc(svc.Status.Conditions, func(c metav1.Condition) bool { return c.Type == kind })
		if at < 0 {
			return errors.New("there is none")
		}
		if c := svc.Status.Conditions[at]; c.Status != status {
			return fmt.Errorf("it is %s: %s", c.Status, c.Message)
		}
		return nil
	})
}

// sweep takes all Services and pods away, and waits until nothing of them is left.
func (s *stage) sweep() {
	s.t.Helper()
	ctx, core := s.t.Context(), s.kube.Client().CoreV1()
	services, err := core.Services(namespace).List(ctx, metav1.ListOptions{})
	s.must(err)
	for _, svc := range services.Items {
		s.must(core.Services(namespace).Delete(ctx, svc.Name, metav1.DeleteOptions{}))
	}
	s.must(core.Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}, metav1.ListOptions{}))
	clear(s.pods)
	s.Eventually("nothing is left", func() error {
		slices, err := s.kube.Client().DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{})
		if routes := s.Bird.Routes(); err != nil || len(slices.Items) > 0 || len(routes) > 0 {
			return fmt.Errorf("%d EndpointSlices (%v), routes %v", len(slices.Items), err, routes)
		}
		return nil
	})
}
