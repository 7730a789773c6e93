// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"fmt"
	"net/netip"
	"slices"

	"google.golang.org/protobuf/proto"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
)

// kindAddress begins the key of an address.
const kindAddress = 'a'

// Port is one protocol (IANA number) and port that an address answers on.
type Port struct {
	Protocol uint8  `json:"protocol"`
	Number   uint16 `json:"number"`
}

// Address is a service address: the node delivers packets to it locally and accepts them on these ports only.
type Address struct {
	Prefix netip.Prefix `json:"prefix"` // a /32 or /128
	Ports  []Port       `json:"ports"`
}

// AddressKey is the key of an address's item.
func AddressKey(a netip.Addr) string { return string(kindAddress) + string(a.AsSlice()) }

// IsAddress tells whether a key is that of an address's item.
func IsAddress(key string) bool { return key != "" && key[0] == kindAddress }

// AddressValue encodes what an address's item says. Ports are sorted and each is there once.
func AddressValue(ports []Port) ([]byte, error) {
	ports = slices.Clone(ports)
	slices.SortStableFunc(ports, func(a, b Port) int {
		return (int(a.Protocol)<<16 | int(a.Number)) - (int(b.Protocol)<<16 | int(b.Number))
	})
	var m fairleadv1.Address
	for _, p := range slices.Compact(ports) {
		m.Ports = append(m.Ports, portMessage(p))
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(&m)
}

// checkAddress tells whether an address's item can be read.
func checkAddress(key string, value []byte) error {
	addr, ok := addressOf(key)
	if !ok {
		return fmt.Errorf("decode item: an address has 4 or 16 bytes, not %d", len(key)-1)
	}
	if _, err := decodePorts(value); err != nil {
		return fmt.Errorf("decode item of address %s: %w", addr, err)
	}
	return nil
}

// addressOf is the address in the key of an address's item.
func addressOf(key string) (a netip.Addr, ok bool) { return netip.AddrFromSlice([]byte(key[1:])) }

// decodePorts reads what an address's item says.
func decodePorts(value []byte) (ports []Port, err error) {
	var m fairleadv1.Address
	if err := proto.Unmarshal(value, &m); err != nil {
		return nil, err
	}
	for _, p := range m.GetPorts() {
		port, err := portOf(p)
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}

func portMessage(p Port) *fairleadv1.Port {
	return &fairleadv1.Port{Protocol: uint32(p.Protocol), Number: uint32(p.Number)}
}

func portOf(p *fairleadv1.Port) (Port, error) {
	if p.GetProtocol() > 0xff || p.GetNumber() > 0xffff {
		return Port{}, fmt.Errorf("no such port: protocol %d, number %d", p.GetProtocol(), p.GetNumber())
	}
	return Port{Protocol: uint8(p.GetProtocol()), Number: uint16(p.GetNumber())}, nil
}
