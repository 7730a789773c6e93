// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"fairlead.io/fairlead/cmd/internal/config"
)

// Who leaves translation to kube-proxy is told what that costs, and once; who does not is told nothing.
func TestAgentSaysWhatKubeProxyCosts(t *testing.T) {
	for _, c := range []struct {
		agent config.Agent
		told  int
	}{
		{config.Agent{Steer: true, NAT: config.NATKubeProxy}, 1},
		{config.Agent{Steer: true, NAT: config.NATNftables}, 0},
		{config.Agent{NAT: config.NATKubeProxy}, 0},
	} {
		var log bytes.Buffer
		tellCosts(c.agent, slog.New(slog.NewTextHandler(&log, nil)))
		if got := strings.Count(log.String(), "nat: nftables in agent.yaml"); got != c.told {
			t.Errorf("steer %t, nat %s: told %d times, want %d:\n%s", c.agent.Steer, c.agent.NAT, got, c.told, &log)
		}
	}
}
