// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// Names compute the names of BackendRecords (lbcf §2.4.1). They are those that the leader plans with.
type Names struct {
	Pod     func(loadBalancer, group, podUID string, port world.BackendPort) string
	Service func(loadBalancer, group, service string, port world.BackendPort, node string) string
	Static  func(loadBalancer, group, address string) string
	Bind    func(bind, entry, pod, podIP string, port world.BackendPort) string
	Apart   func(name, ownerUID string) string
}

// portOf is a port as the leader knows it. What is none gets a name that no record has.
func portOf(p v1beta1.PortSelector) world.BackendPort {
	if p.Port < 0 || p.Port > 65535 {
		return world.BackendPort{Protocol: p.Protocol}
	}
	return world.BackendPort{Port: uint16(p.Port), Protocol: p.Protocol}
}
