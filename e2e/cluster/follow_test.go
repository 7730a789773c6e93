// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"testing"

	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/internal/testkit"
)

// A group follows a cluster to which nothing happens but changes of objects. Each part begins without a Service and without a pod.
func TestSwitchFollowsTheCluster(t *testing.T) {
	shared := testkit.Share(t)
	s := newStage(shared, lab.Options{})
	part := func(name string, story func(*testing.T, *stage)) {
		shared.Part(name, func(t *testing.T) {
			story(t, s)
			s.sweep()
		})
	}
	part("service-becomes-a-route", serviceBecomesARoute)
	part("row-8-fifty-services-come-and-go", fiftyServicesComeAndGo)
	part("row-10-drained-node-leaves-without-a-gap", drainedNodeLeavesWithoutAGap)
	part("not-ready-node-leaves-the-routes", notReadyNodeLeavesTheRoutes)
	part("replaced-address-is-announced-before-the-old-one-goes", replacedAddressIsAnnouncedBeforeTheOldOneGoes)
	part("service-of-another-type-leaves-the-switch", serviceOfAnotherTypeLeavesTheSwitch)
	part("row-16-dual-stack-service-has-a-route-of-each-family", dualStackServiceHasARouteOfEachFamily)
}

// Specification of kube-loadbalancer-controller §13, rows 3 and 4: a Service with an external address and pods needs no
// other object; the switch gets one path for each node that carries a pod, however many it carries.
func serviceBecomesARoute(t *testing.T, s *stage) {
	s.service(0)
	s.pod(0, 1)
	s.pod(0, 2)
	s.leads(0, 1, 2)
	s.condition(0, "fairlead.io/Announced", "True")
	if in := s.object(0).Status.LoadBalancer.Ingress; len(in) > 0 {
		t.Errorf("an external address is shown a second time: %v", in)
	}
	s.must(s.pods[podName(0, 2)].SetReady(t.Context(), false))
	s.leads(0, 1)
	s.must(s.pods[podName(0, 2)].SetReady(t.Context(), true))
	s.leads(0, 1, 2)
	s.deleteService(0)
	s.leads(0)
}
