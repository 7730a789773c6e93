// SPDX-License-Identifier: Apache-2.0

package outside_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/e2e/outside/balancer"
)

// lbcf §13: an installation that went back to LBCF is taken over again: what LBCF registered anew meanwhile, under names that the
// record has buried or has as bound, is neither registered anew nor dropped, and goes under the ids that LBCF gave it.
func TestAnInstallationThatWentBackToLBCFIsTakenOverAgain(t *testing.T) {
	const n = 6
	s := &stage{t: t, kube: kubetest.Start(t, kubetest.Options{NoControllers: true}), pods: map[int]*kubetest.Pod{}}
	s.must(s.kube.ApplyFiles(t.Context(), "../../deploy/crds/lbcf.*.yaml"))
	s.must(s.kube.EnsureNamespace(t.Context(), namespace))
	_, err := s.kube.Node(t.Context(), "n1", nil, lab.NodeAddress(1))
	s.must(err)
	s.driver = balancer.Start(t)
	s.run(upTo(n)...)
	s.balance("10s")
	s.wasCreated(edge)
	for i := range n {
		s.registersAsLBCF(i)
	}
	s.Lab = lab.New(t, lab.Options{Kubeconfig: s.kube.Kubeconfig()})
	s.Eventually("all adopted", func() error { return s.bindings(n) })

	// Fairlead has it. Of pod 0 a grave is left; pod 1 has a BackendRecord that Fairlead made.
	s.ready(false, 0, 1)
	s.bound(upTo(n)[2:]...)
	s.unshown(0, 1)
	s.ready(true, 1)
	s.bound(upTo(n)[1:]...)
	s.Eventually("all shown", func() error { return errors.Join(s.bindings(n-1), atLeast(s.recorded(), n-1)) })
	for _, m := range s.Members {
		m.Stop()
	}

	// LBCF has it: pod 0 is ready again, and pods 1 and 2 were not for a while. Pod 3 still is not.
	s.apply(oldController)
	s.ready(true, 0)
	s.ready(false, 3)
	s.deregistersAsLBCF(3)
	uids := map[int]string{0: s.registersAsLBCF(0)}
	for _, i := range []int{1, 2} {
		s.deregistersAsLBCF(i)
		uids[i] = s.registersAsLBCF(i)
	}
	ensured := s.driver.Calls(ensure)

	// Forward again.
	s.startAll()
	s.migrate(exitDone, "the group has all 5 adopted backends", "--stop-old", "--verify", "--within", "2m")
	s.run(n) // once this one is bound, everything has been looked at
	s.bound(0, 1, 2, 4, 5, 6)
	if now := s.driver.Calls(ensure); now != ensured+1 {
		t.Errorf("%d calls of ensureBackend, want 1: what LBCF registered was registered anew", now-ensured)
	}
	s.Eventually("all shown", func() error { return errors.Join(s.bindings(n), atLeast(s.recorded(), n)) })
	s.remove(0, 1, 2)
	s.bound(4, 5, 6)
	for i, uid := range uids {
		if want := fmt.Sprintf("deregisterBackend(%s) map[server:old]", uid); !s.driver.Heard(want) {
			t.Errorf("of pod %d the driver did not hear %s", i, want)
		}
	}
	s.unshown(0, 1, 2)
	s.lawful()
}

// ready makes pods ready, or not.
func (s *stage) ready(is bool, numbers ...int) {
	s.t.Helper()
	for _, i := range numbers {
		s.must(s.pods[i].SetReady(s.t.Context(), is))
	}
}

// unshown waits until pods have no BackendRecords.
func (s *stage) unshown(numbers ...int) {
	s.t.Helper()
	for _, i := range numbers {
		s.Eventually("its BackendRecord goes", func() error {
			switch _, err := s.objects(backendRecords).Get(s.t.Context(), s.recordOf(i), metav1.GetOptions{}); {
			case err == nil:
				return fmt.Errorf("that of pod %d is there", i)
			case !apierrors.IsNotFound(err):
				return err
			}
			return nil
		})
	}
}
