// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/internal/testkit"
)

// lied is a stage whose members are told everything by a liar, with two Services on the switch.
func lied(t testing.TB) (*stage, *liar) {
	t.Helper()
	kube := kubetest.Start(t, kubetest.Options{})
	l, kubeconfig := newLiar(t, kube)
	s := stageOf(t, kube, lab.Options{Kubeconfig: kubeconfig})
	for i := range 2 {
		s.service(i)
		s.pod(i, 1)
		s.pod(i, 2)
		s.leads(i, 1, 2)
	}
	s.Agreed()
	return s, l
}

// settledFor is longer than a guard needs to believe an absence that two lists agree on.
const settledFor = 5 * time.Second

// S12: an API server that lies is not acted on, and believed again when it tells the truth.
func TestListsThatLieChangeNothing(t *testing.T) {
	shared := testkit.Share(t)
	s, l := lied(shared)
	shared.Part("empty", func(t *testing.T) { emptyListsChangeNothing(t, s, l) })
	shared.Part("stale", func(*testing.T) { staleListsAreNotActedOn(s, l) })
}

// S12: an API server that answers with empty lists changes nothing; the first thing that is true again is acted on.
func emptyListsChangeNothing(t *testing.T, s *stage, l *liar) {
	stop := s.NeverMissing(prefix(0), prefix(1))
	l.says(nothing)
	s.stays("the lists are empty", func() error { return s.bothLead() })
	stop()
	l.says(nil)
	third := s.pod(0, 3)
	s.leads(0, 1, 2, 3)
	s.must(third.Remove(t.Context()))
	s.leads(0, 1, 2)
}

// S12, no time travel: a list that is older than what was acted on is not acted on, however often it comes.
func staleListsAreNotActedOn(s *stage, l *liar) {
	l.keep(true)
	s.Eventually("a list of everything", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, path := range []string{"/api/v1/services", "/apis/discovery.k8s.io/v1/endpointslices", "/api/v1/nodes"} {
			if len(l.kept[path]) == 0 {
				return fmt.Errorf("%s was not listed", path)
			}
		}
		return nil
	})
	l.keep(false)
	s.pod(0, 3)
	s.leads(0, 1, 2, 3)
	s.deleteService(1)
	s.leads(1)
	l.says(l.old)
	s.stays("the lists are old", func() error {
		if n := len(s.Bird.NextHops(prefix(0))); n != 3 {
			return fmt.Errorf("the switch has %d next hops of a Service with 3 pods", n)
		}
		if n := len(s.Bird.NextHops(prefix(1))); n != 0 {
			return fmt.Errorf("a deleted Service is back")
		}
		return nil
	})
	l.says(nil)
	s.service(1)
	s.leads(1, 1, 2)
}

func (s *stage) bothLead() error {
	for i := range 2 {
		if n := len(s.Bird.NextHops(prefix(i))); n != 2 {
			return fmt.Errorf("the switch has %d next hops of %s", n, name(i))
		}
	}
	return nil
}

// stays holds a condition to be true all the while.
func (s *stage) stays(while string, condition func() error) {
	s.t.Helper()
	for end := time.Now().Add(settledFor); time.Now().Before(end); {
		if err := condition(); err != nil {
			s.t.Fatalf("while %s: %v", while, err)
		}
		select {
		case <-s.t.Context().Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// What is deleted while every member is down and the API server is restarted meanwhile is found afterwards.
func TestDeletesWhileEverythingIsDownAreFound(t *testing.T) {
	s := newStage(t, lab.Options{})
	for i := range 2 {
		s.service(i)
		s.pod(i, 1)
		s.leads(i, 1)
	}
	s.killAll()
	s.deleteService(1)
	s.kube.Stop()
	s.startAll()
	s.leads(0, 1)
	s.leads(1, 1) // nobody can tell that it is gone
	s.must(s.kube.Start(t.Context()))
	s.leads(1)
	s.leads(0, 1)
}

// A kubeconfig without rights is one clear line, not a crash, and costs no route.
func TestMissingRightsAreToldAndCostNoRoute(t *testing.T) {
	kube := kubetest.Start(t, kubetest.Options{})
	nobody, err := kube.KubeconfigFor("nobody")
	if err != nil {
		t.Fatal(err)
	}
	s := stageOf(t, kube, lab.Options{Kubeconfig: nobody})
	s.Manifests.Node(1, true)
	s.Manifests.Service(5, 1)
	s.Bird.WaitNextHops(prefix(5), lab.NodeAddress(1))
	s.Eventually("a line about rights", func() error {
		log := s.Members[0].Log()
		for _, word := range []string{"allow list and watch of services"} {
			if !strings.Contains(log, word) {
				return fmt.Errorf("no word of %q", word)
			}
		}
		return nil
	})
}
