// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"encoding/binary"
	"errors"
	"net/netip"
)

// packet is an ARP packet for IPv4 over Ethernet (RFC 826), with the frame around it.
type packet struct {
	to, from       MAC // of the frame
	reply          bool
	sender, target MAC
	source, wanted netip.Addr
}

const (
	etherType = 0x0806
	length    = 14 + 28
)

// parse reads a frame. Errors: it is none that anybody here should send.
func parse(frame []byte) (p packet, err error) {
	if len(frame) != length || binary.BigEndian.Uint16(frame[12:]) != etherType {
		return p, errors.New("not a frame of ARP")
	}
	p.to, p.from = MAC(frame), MAC(frame[6:])
	b := frame[14:]
	if [6]byte(b) != [6]byte{0, 1, 8, 0, 6, 4} {
		return p, errors.New("not ARP for IPv4 over Ethernet")
	}
	switch binary.BigEndian.Uint16(b[6:]) {
	case 1:
	case 2:
		p.reply = true
	default:
		return p, errors.New("neither a request nor a reply")
	}
	p.sender, p.target = MAC(b[8:]), MAC(b[18:])
	p.source, p.wanted = netip.AddrFrom4([4]byte(b[14:])), netip.AddrFrom4([4]byte(b[24:]))
	return p, nil
}

func (p packet) frame() []byte {
	f := append(append(make([]byte, 0, length), p.to[:]...), p.from[:]...)
	f = append(binary.BigEndian.AppendUint16(f, etherType), 0, 1, 8, 0, 6, 4, 0, 1)
	if p.reply {
		f[len(f)-1] = 2
	}
	f = append(append(f, p.sender[:]...), p.source.AsSlice()...)
	return append(append(f, p.target[:]...), p.wanted.AsSlice()...)
}

// answer is what who has the address and the MAC answers to a packet that asks for the address; false where it does not.
func (p packet) answer(address netip.Addr, mac MAC) (packet, bool) {
	if p.reply || p.wanted != address || p.source == address {
		return packet{}, false
	}
	return packet{to: p.sender, from: mac, reply: true, sender: mac, source: address, target: p.sender, wanted: p.source}, true
}
