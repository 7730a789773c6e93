// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/cmd/internal/config"
)

// Who leaves translation to kube-proxy is told what that costs, and once; who does not is told nothing.
func TestAgentSaysWhatKubeProxyCosts(t *testing.T) {
	edges := Edges{
		Steer: func(config.Agent, *slog.Logger, prometheus.Registerer) (Steering, error) { return nothing{}, nil },
		NAT:   func(config.Agent, *slog.Logger, prometheus.Registerer) (Part, error) { return nothing{}, nil },
	}
	for _, c := range []struct {
		agent config.Agent
		told  int
	}{
		{config.Agent{Steer: true, NAT: config.NATKubeProxy}, 1},
		{config.Agent{Steer: true, NAT: config.NATNftables}, 0},
		{config.Agent{NAT: config.NATKubeProxy}, 0},
	} {
		var log bytes.Buffer
		if _, err := openKernel(c.agent, edges, slog.New(slog.NewTextHandler(&log, nil)), prometheus.NewRegistry()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(log.String(), "nat: nftables in agent.yaml"); got != c.told {
			t.Errorf("steer %t, nat %s: told %d times, want %d:\n%s", c.agent.Steer, c.agent.NAT, got, c.told, &log)
		}
	}
}

// nothing is a part that is never asked for anything.
type nothing struct{ Steering }
