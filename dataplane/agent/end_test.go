// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/internal/testkit"
)

// An agent ends at once, whatever its heartbeats are about to do.
func TestAgentEndsAmidHeartbeats(t *testing.T) {
	t.Parallel()
	w, g := grouptest.NewWorld(t), grouptest.NewGroup(t)
	m := newMember(t, w, "m1", g)
	for range 50 {
		n := startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{m.api.Address}, tuning: func(t *agent.Tuning) {
			t.Heartbeat = 20 * time.Microsecond
		}})
		testkit.Until(t, "the member serves", func() bool { return n.Status().Member != "" })
		ended := make(chan struct{})
		go func() { n.stop(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(grouptest.Patience):
			t.Fatal("it does not end")
		}
	}
}
