// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/dataplane/bgp/ndp"
)

// openNodeSpeaker starts the BGP speaker that an agent's configuration asks for.
func openNodeSpeaker(c config.Agent, log *slog.Logger) (node.Announcing, error) {
	own := config.BGP{ASN: c.BGP.ASN, RouterID: c.BGP.RouterID, Listen: c.BGP.Listen, Port: -1}
	if c.BGP.Port > 0 {
		own.Port = int(c.BGP.Port)
	}
	if !own.RouterID.IsValid() {
		var err error
		if own.RouterID, err = addressTowards(c.Members); err != nil {
			return nil, fmt.Errorf("no router id: %w; write one into bgp.routerID", err)
		}
	}
	return newSpeaker(own, log)
}

// openLink finds the router behind an interface by its advertisements.
func openLink(name string, changed func()) node.Link { return ndp.New(name, changed) }

// addressTowards is the IPv4 address by which this machine would speak to the first member that it has a route to. No packet is
// sent.
func addressTowards(members []string) (a netip.Addr, err error) {
	for _, m := range members {
		var c net.Conn
		if c, err = net.Dial("udp4", m); err != nil {
			continue
		}
		at := c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
		return at, c.Close()
	}
	return a, err
}
