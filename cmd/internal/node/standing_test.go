// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"
	"time"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/fsm"
)

// K46: a restart helps only an agent that carries nothing out.
func TestHealthFailsOnlyWhenNothingIsCarriedOutForLong(t *testing.T) {
	now := time.Now()
	at := func(index fsm.Index) fsm.Revision { return fsm.Revision{Epoch: 1, Index: index} }
	for name, c := range map[string]struct {
		status         agent.Status
		ready, healthy bool
	}{
		"nothing-told":      {agent.Status{}, false, true},
		"told-at-start":     {agent.Status{Member: "m", Told: at(1), Behind: now}, false, true},
		"done":              {agent.Status{Member: "m", Told: at(1), Applied: at(1)}, true, true},
		"at-work":           {agent.Status{Member: "m", Told: at(2), Applied: at(1), Behind: now.Add(-time.Second)}, true, true},
		"at-work-too-long":  {agent.Status{Member: "m", Told: at(2), Applied: at(1), Behind: now.Add(-6 * time.Second)}, false, true},
		"stuck":             {agent.Status{Member: "m", Told: at(2), Applied: at(1), Behind: now.Add(-61 * time.Second)}, false, false},
		"stuck-at-start":    {agent.Status{Told: at(2), Behind: now.Add(-61 * time.Second)}, false, false},
		"alone":             {agent.Status{Told: at(1), Applied: at(1)}, false, true},
		"an-address-failed": {agent.Status{Member: "m", Told: at(1), Applied: at(1), Failed: make([]agent.Failure, 1)}, true, true},
	} {
		if err := notReady(c.status, now); (err == nil) != c.ready {
			t.Errorf("%s: ready: %v", name, err)
		}
		if err := notAlive(c.status, defaultUnhealthyAfter, now); (err == nil) != c.healthy {
			t.Errorf("%s: healthy: %v", name, err)
		}
	}
}

// K44: how often what the kernel holds is looked at as a whole can be chosen.
// Rule: K44.
func TestComparisonsAreAsOftenAsConfigured(t *testing.T) {
	c := config.Agent{Node: "n1", SyncPeriod: 7 * time.Second}
	if every := SteerOptions(c, nil, nil).Reread; every != 7*time.Second {
		t.Errorf("rules and routes are read every %v", every)
	}
	if every := NATOptions(c, nil, nil).Audit; every != 7*time.Second {
		t.Errorf("translations are read every %v", every)
	}
}

// K46: how long that is can be chosen.
// Rule: K46.
func TestPatienceIsConfigured(t *testing.T) {
	now := time.Now()
	stuck := agent.Status{Told: fsm.Revision{Epoch: 1, Index: 2}, Behind: now.Add(-30 * time.Second)}
	if err := notAlive(stuck, 10*time.Second, now); err == nil {
		t.Error("half a minute is no more than ten seconds")
	}
	if err := notAlive(stuck, 40*time.Second, now); err != nil {
		t.Error(err)
	}
}
