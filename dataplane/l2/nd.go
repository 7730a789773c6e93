// SPDX-License-Identifier: Apache-2.0

package l2

import (
	"encoding/binary"
	"net/netip"
)

// Neighbor Discovery (RFC 4861, section 4) in IPv6 without extension headers: with them it is to be ignored where it
// is fragmented (RFC 6980), and nobody sends others.
const (
	ipv6Header    = 40
	icmpv6        = 58
	hopLimit      = 255 // anything else has passed a router (RFC 4861, 7.1)
	neighborAsk   = 135 // neighbor solicitation
	neighborTell  = 136 // neighbor advertisement
	ndLen         = 24  // without options
	sourceMAC     = 1   // option: link-layer address of who asks
	targetMAC     = 2   // option: link-layer address of the target
	flagSolicited = 0x40
	flagOverride  = 0x20
)

var (
	allNodes    = netip.MustParseAddr("ff02::1")
	allNodesMAC = multicastMAC(allNodes)
)

// SolicitedNode is the group at which an address is asked for (RFC 4291, 2.7.1).
func SolicitedNode(a netip.Addr) netip.Addr {
	b := a.As16()
	return netip.AddrFrom16([16]byte{0: 0xff, 1: 0x02, 11: 1, 12: 0xff, 13: b[13], 14: b[14], 15: b[15]})
}

// multicastMAC is where Ethernet carries a group (RFC 2464, 7).
func multicastMAC(a netip.Addr) MAC {
	b := a.As16()
	return MAC{0x33, 0x33, b[12], b[13], b[14], b[15]}
}

func (q *question) parseND(p []byte) bool {
	if len(p) < ipv6Header+ndLen || p[0]>>4 != 6 || p[6] != icmpv6 || p[7] != hopLimit {
		return false
	}
	length := int(binary.BigEndian.Uint16(p[4:]))
	if length < ndLen || ipv6Header+length > len(p) {
		return false
	}
	source, dest := netip.AddrFrom16([16]byte(p[8:24])), netip.AddrFrom16([16]byte(p[24:40]))
	m := p[ipv6Header : ipv6Header+length]
	if m[0] != neighborAsk && m[0] != neighborTell || m[1] != 0 || checksum(source, dest, m) != 0 || source.IsMulticast() {
		return false
	}
	q.asker = q.from
	for o := m[ndLen:]; len(o) > 0; {
		if len(o) < 8 || o[1] == 0 || int(o[1])*8 > len(o) {
			return false
		}
		if m[0] == neighborAsk && o[0] == sourceMAC {
			q.asker = MAC(o[2:8])
		}
		o = o[int(o[1])*8:]
	}
	target := netip.AddrFrom16([16]byte(m[8:24]))
	if target.IsMulticast() || q.asker.group() {
		return false
	}
	if !source.IsUnspecified() {
		q.source = source
	}
	if m[0] == neighborAsk {
		q.target = target
	}
	return true
}

func advertisement(mac MAC, target netip.Addr, ether MAC, to netip.Addr, flags byte) []byte {
	m := make([]byte, ndLen, ndLen+8)
	m[0], m[4] = neighborTell, flags
	copy(m[8:], target.AsSlice())
	return neighborFrame(mac, target, ether, to, append(m, append([]byte{targetMAC, 1}, mac[:]...)...))
}

func solicitation(mac MAC, own, target netip.Addr) []byte {
	group := SolicitedNode(target)
	m := make([]byte, ndLen, ndLen+8)
	m[0] = neighborAsk
	copy(m[8:], target.AsSlice())
	if own.Is6() {
		m = append(m, append([]byte{sourceMAC, 1}, mac[:]...)...)
	} else {
		own = netip.IPv6Unspecified()
	}
	return neighborFrame(mac, own, multicastMAC(group), group, m)
}

// neighborFrame is a message in its frame, with its checksum.
func neighborFrame(mac MAC, from netip.Addr, ether MAC, to netip.Addr, m []byte) []byte {
	binary.BigEndian.PutUint16(m[2:], checksum(from, to, m))
	f := ethernet(ether, mac, EtherTypeIPv6, etherHeader+ipv6Header+len(m))
	f = append(f, 0x60, 0, 0, 0)
	f = binary.BigEndian.AppendUint16(f, uint16(len(m)))
	f = append(f, icmpv6, hopLimit)
	f = append(append(f, from.AsSlice()...), to.AsSlice()...)
	return append(f, m...)
}

// checksum is that of ICMPv6 over message and pseudo-header (RFC 4443, 2.3): 0 for a message that carries its own.
func checksum(from, to netip.Addr, m []byte) uint16 {
	sum := uint32(len(m)) + icmpv6
	add := func(b []byte) {
		for i := 0; i+1 < len(b); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(b[i:]))
		}
		if len(b)%2 == 1 {
			sum += uint32(b[len(b)-1]) << 8
		}
	}
	add(from.AsSlice())
	add(to.AsSlice())
	add(m)
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
