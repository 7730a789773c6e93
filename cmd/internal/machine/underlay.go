// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"net"
	"net/netip"
	"slices"
)

// underlay are the addresses from which this machine reaches members, IPv4 first. No packet is sent for that.
func underlay(members []string) (out []netip.Addr) {
	for _, member := range members {
		c, err := net.Dial("udp", member)
		if err != nil {
			continue // not resolved, or no route: another one may do
		}
		at, err := netip.ParseAddrPort(c.LocalAddr().String())
		_ = c.Close()
		if a := at.Addr().Unmap().WithZone(""); err == nil && !a.IsLoopback() && !a.IsLinkLocalUnicast() {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	out = slices.Compact(out)
	return out[:min(len(out), 16)]
}
