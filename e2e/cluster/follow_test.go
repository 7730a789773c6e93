// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"testing"

	"fairlead.io/fairlead/e2e/lab"
)

// Specification of kube-loadbalancer-controller §13, rows 3 and 4: a Service with an external address and pods needs no
// other object; the switch gets one path for each node that carries a pod, however many it carries.
func TestServiceOfAClusterBecomesARoute(t *testing.T) {
	s := newStage(t, lab.Options{})
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
