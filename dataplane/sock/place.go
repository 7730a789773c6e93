// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"cmp"
	"fmt"
	"net/netip"
)

// The protocols that are resolved, by their IANA numbers.
const (
	TCP = 6
	UDP = 17
)

// Place is what a client dials: an address (IPv4 unmapped), a port, and a protocol.
type Place struct {
	Address  netip.Addr
	Port     uint16
	Protocol uint8
}

func (p Place) String() string {
	return fmt.Sprintf("%s/%s", netip.AddrPortFrom(p.Address, p.Port), protocolName(p.Protocol))
}

func protocolName(p uint8) string {
	switch p {
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	}
	return fmt.Sprintf("protocol %d", p)
}

func (p Place) compare(q Place) int {
	return cmp.Or(p.Address.Compare(q.Address), cmp.Compare(p.Port, q.Port), cmp.Compare(p.Protocol, q.Protocol))
}

// AnyNode4 and AnyNode6 stand in a Place for every address of every node: a node port.
var (
	AnyNode4 = netip.AddrFrom4([4]byte{255, 255, 255, 255})
	AnyNode6 = netip.AddrFrom16([16]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255})
)

// nodePort is the place of the node port that a dialled place would be.
func (p Place) nodePort() Place {
	return Place{anyNode(!p.Address.Is4()), p.Port, p.Protocol}
}

func anyNode(v6 bool) netip.Addr {
	if v6 {
		return AnyNode6
	}
	return AnyNode4
}
