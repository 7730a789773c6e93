// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// takenBy says which proxy port of a policy is a host port on a node, and of which pod; empty for none. It is not taken from that pod
// (A14): the node is left out. Pods that the policy selects may have it, since it leads to them anyway.
func (p *planner) takenBy(o policy, node string, ports []proxyPort) string {
	for _, pod := range p.hostPorts[node] {
		if !pod.Alive() || o.Pods.Matches(pod.Labels) {
			continue
		}
		for _, port := range ports {
			if slices.Contains(pod.HostPorts, world.HostPort{Protocol: protocolOf(port.port), Port: port.port.Number}) {
				return fmt.Sprintf("proxy port %d/%s is a host port of pod %s on node %s", port.port.Number, protocolOf(port.port), pod.ID, node)
			}
		}
	}
	return ""
}

// reportTaken tells which nodes are left out. Where no other node is left the policy captures nothing: that would refuse connections
// that go somewhere without it.
func (p *planner) reportTaken(r *fsm.Policy, taken []string) {
	slices.Sort(taken)
	for _, why := range slices.Compact(taken) {
		if len(r.Backends) > 0 {
			p.explain(r.ID, WaitsForProxyPort, why+", which is left out; choose another port")
			continue
		}
		r.Captures = nil
		r.Pending = fsm.Pending{Code: WaitsForProxyPort, Text: why + ", and no other node is left; choose another port, connections go where they went without the policy"}
		return
	}
}
