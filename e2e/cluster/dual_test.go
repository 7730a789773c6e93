// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/fsm"
)

// kube-loadbalancer-controller §13, row 16: a Service with an address of each family has a route of each, and each leads to the nodes' addresses of
// its own family.
func dualStackServiceHasARouteOfEachFamily(t *testing.T, s *stage) {
	six := func(n int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("2001:db8:f::%d", n)) }
	for n := 1; n <= 2; n++ {
		s.must(s.nodes[n-1].SetAddresses(t.Context(), lab.NodeAddress(n), six(n)))
	}
	vip := netip.MustParseAddr("2001:db8:e1::10")
	s.service(0, func(svc *corev1.Service) {
		svc.Spec.ExternalIPs = append(svc.Spec.ExternalIPs, vip.String())
		svc.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyRequireDualStack)
	})
	for n := 1; n <= 2; n++ {
		_, err := s.kube.Pod(t.Context(), kubetest.PodSpec{
			Namespace: namespace, Name: podName(0, n), Node: s.nodes[n-1].Name, Labels: selects(0),
			Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, 244, byte(n), 1}), netip.MustParseAddr(fmt.Sprintf("fd00:10:244:%d::1", n))},
		})
		s.must(err)
	}
	s.leads(0, 1, 2)
	s.Bird.WaitNextHops(fsm.HostPrefix(vip), six(1), six(2))
	s.deleteService(0)
	s.Bird.WaitNextHops(fsm.HostPrefix(vip))
	s.leads(0)
	for n := 1; n <= 2; n++ {
		s.must(s.nodes[n-1].SetAddresses(t.Context(), lab.NodeAddress(n)))
	}
}
