// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/internal/testkit"
)

// hop waits until the record has service i's hop on a node in a state: wanted, acknowledged, announced.
func (s *stage) hop(i, node int, states ...string) {
	s.t.Helper()
	s.Eventually(fmt.Sprintf("hop of %s on node %d is %v", name(i), node, states), func() error {
		out, stderr, code := s.CLI("get", "routes", prefix(i).String(), "-o", "json")
		if code != 0 {
			return fmt.Errorf("get routes: %s", stderr)
		}
		var list struct {
			Items []struct {
				NextHops []struct {
					Node  string `json:"node"`
					State string `json:"state"`
				} `json:"nextHops"`
			} `json:"items"`
		}
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			return err
		}
		for _, r := range list.Items {
			for _, h := range r.NextHops {
				for _, state := range states {
					if h.Node == s.nodes[node-1].Name && h.State == state {
						return nil
					}
				}
			}
		}
		return fmt.Errorf("the record has %s", out)
	})
}

// The whole group is killed between every two stages of a change, and always ends right: seen by the API, committed,
// acknowledged by the node, announced, status written; and the same way back.
func TestGroupKilledBetweenEveryTwoStagesEndsRight(t *testing.T) {
	s := newStage(t, lab.Options{Steered: true})
	s.Machine(1)
	second := s.Machine(2)
	again := func() {
		s.killAll()
		s.startAll()
	}

	s.killAll()
	s.service(0)
	s.pod(0, 1)
	s.startAll() // seen by the API alone
	s.leads(0, 1)

	second.Hold()
	s.pod(0, 2)
	s.hop(0, 2, "wanted") // committed, and no node that acknowledges
	again()
	s.leads(0, 1)
	s.Bird.Kill()
	second.Release()
	s.hop(0, 2, "acknowledged", "announced") // and no switch that hears of it
	again()
	s.Bird.Run()
	s.leads(0, 1, 2)

	third := s.Machine(3)
	third.Hold()
	s.pod(0, 3)
	s.hop(0, 3, "wanted")
	s.kube.Stop()
	third.Release()
	s.leads(0, 1, 2, 3) // announced, and no API that could be told
	s.killAll()
	s.must(s.kube.Start(t.Context()))
	s.startAll()
	s.condition(0, "fairlead.io/Announced", "True")
	s.leads(0, 1, 2, 3)

	version := s.object(0).ResourceVersion
	again() // the status is written
	s.leads(0, 1, 2, 3)
	s.Agreed()
	if now := s.object(0).ResourceVersion; now != version {
		t.Errorf("a restart wrote the Service anew: version %s became %s", version, now)
	}

	s.killAll() // the way back: deleted while everything is down
	s.deleteService(0)
	s.startAll()
	s.leads(0)
	s.Agreed()
}

// Wherever the group is killed, it comes to what the cluster says: the moments are drawn, not chosen.
func TestGroupKilledAtAnyMomentEndsRight(t *testing.T) {
	rounds := 8
	if testing.Short() {
		rounds = 2
	}
	random := testkit.Random(t)
	s := newStage(t, lab.Options{Steered: true})
	for n := 1; n <= 3; n++ {
		s.Machine(n)
	}
	s.service(0)
	s.pod(0, 1)
	s.leads(0, 1)
	on := map[int]bool{1: true}
	for range rounds {
		node := 1 + random.IntN(3)
		if on[node] {
			s.must(s.pods[podName(0, node)].Remove(t.Context()))
			delete(on, node)
		} else {
			s.pod(0, node)
			on[node] = true
		}
		// On this way a change takes some 20 ms; most kills fall into it.
		time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond) // the moment is what is drawn
		s.killAll()
		s.startAll()
		var want []int
		for n := 1; n <= 3; n++ {
			if on[n] {
				want = append(want, n)
			}
		}
		s.leads(0, want...)
	}
	s.Agreed()
}
