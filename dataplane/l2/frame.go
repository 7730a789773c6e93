// SPDX-License-Identifier: Apache-2.0

package l2

import (
	"encoding/binary"
	"net/netip"
)

// MAC is an Ethernet address.
type MAC [6]byte

var broadcast = MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

func (m MAC) group() bool { return m[0]&1 == 1 }

// question is what a frame asks or tells: who has an address.
type question struct {
	from   MAC        // the Ethernet source
	asker  MAC        // where the answer goes
	source netip.Addr // of the asker, the zero Addr when it has none yet (RFC 5227, RFC 4862)
	target netip.Addr // that is asked for; the zero Addr where nothing is asked
}

// EtherTypes of the frames that are looked at.
const (
	EtherTypeARP  = 0x0806
	EtherTypeIPv6 = 0x86dd
)

const etherHeader = 14

// parse reads a frame of ARP or Neighbor Discovery; false for everything else, and for what is not well formed.
func parse(frame []byte) (question, bool) {
	if len(frame) < etherHeader {
		return question{}, false
	}
	q := question{from: MAC(frame[6:12])}
	if q.from.group() {
		return question{}, false
	}
	switch body := frame[etherHeader:]; binary.BigEndian.Uint16(frame[12:]) {
	case EtherTypeARP:
		return q, q.parseARP(body)
	case EtherTypeIPv6:
		return q, q.parseND(body)
	}
	return question{}, false
}

// The ARP packet for IPv4 over Ethernet (RFC 826).
const (
	arpLen     = 28
	arpRequest = 1
	arpReply   = 2
)

func (q *question) parseARP(p []byte) bool {
	if len(p) < arpLen || [6]byte(p) != [6]byte{0, 1, 8, 0, 6, 4} {
		return false
	}
	op := binary.BigEndian.Uint16(p[6:])
	if op != arpRequest && op != arpReply {
		return false
	}
	q.asker = MAC(p[8:14])
	if q.asker.group() {
		return false
	}
	if source := netip.AddrFrom4([4]byte(p[14:18])); !source.IsUnspecified() {
		q.source = source
	}
	if target := netip.AddrFrom4([4]byte(p[24:28])); op == arpRequest && target != q.source {
		q.target = target
	}
	return true
}

func arp(op uint16, from MAC, source netip.Addr, to MAC, target netip.Addr, ether MAC) []byte {
	f := ethernet(ether, from, EtherTypeARP, etherHeader+arpLen)
	f = append(f, 0, 1, 8, 0, 6, 4)
	f = binary.BigEndian.AppendUint16(f, op)
	f = append(append(f, from[:]...), four(source)...)
	return append(append(f, to[:]...), four(target)...)
}

// four is an IPv4 address as it goes on the wire, 0.0.0.0 for none.
func four(a netip.Addr) []byte {
	if !a.Is4() {
		return make([]byte, 4)
	}
	return a.AsSlice()
}

func ethernet(to, from MAC, etherType uint16, room int) []byte {
	f := make([]byte, 0, room)
	f = append(append(f, to[:]...), from[:]...)
	return binary.BigEndian.AppendUint16(f, etherType)
}

// answer is the frame that answers a question for a node whose interface has the address mac.
func (q question) answer(mac MAC) []byte {
	if q.target.Is4() {
		return arp(arpReply, mac, q.target, q.asker, q.source, q.asker)
	}
	if !q.source.IsValid() { // RFC 4861, 7.2.4: all nodes hear that the address is taken
		return advertisement(mac, q.target, allNodesMAC, allNodes, flagOverride)
	}
	return advertisement(mac, q.target, q.asker, q.source, flagOverride|flagSolicited)
}

// announcement tells everybody on a link where an address is: a gratuitous ARP request (RFC 5227, 3), which updates
// every cache that has the address, or an unsolicited neighbor advertisement (RFC 4861, 7.2.6).
func announcement(mac MAC, a netip.Addr) []byte {
	if a.Is4() {
		return arp(arpRequest, mac, a, MAC{}, a, broadcast)
	}
	return advertisement(mac, a, allNodesMAC, allNodes, flagOverride)
}

// probe asks for the address of somebody who was heard before, so that the link is heard of again if it works. own is
// an address of the link in the family, the zero Addr if it has none.
func probe(mac MAC, own, neighbour netip.Addr) []byte {
	if neighbour.Is4() {
		return arp(arpRequest, mac, own, MAC{}, neighbour, broadcast)
	}
	return solicitation(mac, own, neighbour)
}
