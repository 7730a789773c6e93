// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"net/netip"

	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/network"
)

// Listed are the addresses outside the cluster that policies list, where there is something at them that can be probed.
func Listed() []netip.Addr {
	return []netip.Addr{netip.MustParseAddr("10.20.0.11"), netip.MustParseAddr("10.20.0.12"), netip.MustParseAddr("fd00:10::1")}
}

// listedPorts are those that policies lead to there.
var listedPorts = []string{"9080", "9053", "9443", "17080"}

// furnishListed has each of them accept connections.
func (s *Stage) furnishListed() {
	if !s.options.Sockets.Probes {
		return
	}
	for _, a := range Listed() {
		name := start.ListedPrefix + a.String()
		s.Network.Alias(a.String(), name)
		for _, port := range listedPorts {
			s.Network.Listen(name, port, func(c *network.Conn) {
				c.Handle(func([]byte) {}, func(bool) { c.End() })
				c.Send([]byte("here"))
			})
		}
	}
}
