// SPDX-License-Identifier: Apache-2.0

package outside_test

import (
	"testing"

	"fairlead.io/fairlead/e2e/kubetest"
)

// lbcf §1.2, §5: what is ready is registered, what goes is deregistered, and what others put there stays.
func TestPodsJoinAndLeaveALoadBalancer(t *testing.T) {
	s := newStage(t, kubetest.Options{NoControllers: true})
	s.driver.Foreign(edge, "192.0.2.200:80")
	s.run(upTo(3)...)
	s.balance("10s")
	s.bound(0, 1, 2)
	s.run(3)
	s.bound(0, 1, 2, 3)
	s.remove(1)
	s.bound(0, 2, 3)
	s.must(s.pods[2].SetReady(t.Context(), false))
	s.bound(0, 3)
	s.lawful("192.0.2.200:80")
}

// INV-4: pods that are deleted while the whole group is down are deregistered when it is back, and no others.
func TestHalfOfThePodsAreDeletedWhileTheGroupIsDown(t *testing.T) {
	n := 1000
	if testing.Short() {
		n = 100
	}
	s := newStage(t, kubetest.Options{NoControllers: true})
	s.run(upTo(n)...)
	s.balance("10s")
	s.bound(upTo(n)...)
	s.killAll()
	s.remove(upTo(n / 2)...)
	s.startAll()
	s.bound(upTo(n)[n/2:]...)
	s.lawful()
}

// design §4: everything that a deregistration needs is in the record: the API server may be away, and everything that it
// held gone.
func TestDeregistrationNeedsNoKubernetes(t *testing.T) {
	s := newStage(t, kubetest.Options{NoControllers: true})
	s.run(upTo(5)...)
	s.balance("10s")
	s.bound(upTo(5)...)
	s.driver.Faults(failing(deregister))
	s.deletePods(t.Context())
	s.Eventually("deregistrations that fail", func() error { return atLeast(s.driver.Calls(deregister), 5) })
	s.kube.Kill()
	s.killAll()
	s.startAll()
	s.driver.Faults(nil)
	s.bound()
	s.lawful()
}
