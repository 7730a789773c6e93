// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"fmt"
	"net/netip"

	"fairlead.io/fairlead/api/desired"
)

// Check is what is answered at one port.
type Check struct {
	Service string // namespace/name
	// IPv4 and IPv6 are how many ready endpoints of the family the node has: addresses, each counted once however many
	// ports it answers at.
	IPv4, IPv6 int
}

// portsMax bounds how many ports are opened. Kubernetes' range of node ports has 2,768 by default.
const portsMax = 4096

// Plan says what a node answers at which ports, and of Services, by name, that it answers nothing for, why. Services are in
// order of their names: of several that claim a port the first has it.
//
// Endpoints that only terminate do not count, also where packets still go to them for want of better ones: load balancers
// are to leave the node before those end (KEP-1669).
func Plan(services []*desired.Service, node string) (checks map[uint16]Check, refused map[string]string) {
	checks, refused = map[uint16]Check{}, map[string]string{}
	for _, s := range services {
		port := s.HealthCheckNodePort
		if port == 0 {
			continue
		}
		if has, taken := checks[port]; taken {
			refused[s.Name] = fmt.Sprintf("Service %s has the port; give one of both another spec.healthCheckNodePort", has.Service)
			continue
		}
		if len(checks) == portsMax {
			refused[s.Name] = fmt.Sprintf("a node opens %d health-check node ports at most", portsMax)
			continue
		}
		checks[port] = count(s, node)
	}
	return checks, refused
}

func count(s *desired.Service, node string) Check {
	c := Check{Service: s.Name}
	counted := map[netip.Addr]bool{}
	for _, e := range s.Endpoints {
		address := e.Address.Unmap()
		if e.Node != node || !e.Ready || e.Quiesced || len(e.Ports) == 0 || counted[address] {
			continue
		}
		counted[address] = true
		if address.Is4() {
			c.IPv4++
		} else {
			c.IPv6++
		}
	}
	return c
}
