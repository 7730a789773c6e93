// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/internal/netnstest"
)

// agentWays are the lines of agent.yaml under which an agent is measured: as it is by default, and with translation.
var agentWays = map[string]string{
	"steer": "interfaces: [mgmt]\nlog: warn\n",
	"nat":   "interfaces: [mgmt]\nnat: nftables\nlog: warn\n",
}

// agentMemory gives the resident memory of an agent whose node carries out every address of the large cluster, a minute after
// it did so: by default, with translation in detail. Each agent is the only one of its group, and starts with nothing.
func agentMemory(t *bench) figures {
	l := lab.New(t, lab.Options{Log: "warn", Members: 1, Steered: true})
	l.Manifests.Node(1, true)
	l.Manifests.Node(2, true)
	putLarge(l.Manifests, largeServices)
	t.progressf("allocating for %d Services", largeServices)
	l.EventuallyWithin("an address for every Service", 5*time.Minute, func() error {
		if n := allocated(l.Members[0]); n != largeServices {
			return fmt.Errorf("%d Services have an address, want %d", n, largeServices)
		}
		return nil
	})
	detail := map[string]any{"services": largeServices, "endpoints": largeServices * largeEndpoints}
	used := map[string]usage{}
	for i, way := range slices.Sorted(maps.Keys(agentWays)) {
		t.progressf("starting an agent: %s", way)
		node := netnstest.New(t, way)
		l.Link(node, i+1)
		begin := time.Now()
		agent := l.Agent(node, i+1, agentWays[way])
		l.EventuallyWithin("every address carried out", 5*time.Minute, func() error {
			n, _ := strconv.ParseFloat(metric(lab.NodeAddress(i+1).String()+":7480", "fairlead_agent_addresses"), 64)
			if int(n) != largeServices {
				return fmt.Errorf("%.0f addresses, want %d", n, largeServices)
			}
			return nil
		})
		took := time.Since(begin).Seconds()
		time.Sleep(memoryRest)
		used[way] = usageOf(agent.PID())
		detail[way] = map[string]any{"process": used[way], "carried_out_s": took}
		agent.Kill()
	}
	return figures{samples: []float64{used["steer"].RSSMB}, detail: detail}
}
