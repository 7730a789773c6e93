// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package program

import (
	"encoding/binary"
	"net/netip"

	"fairlead.io/fairlead/dataplane/sock"
)

// flags of a choice, as sock.c has them
const (
	flagLimited = 1
	flagSpares  = 2
)

// Addresses and ports are in network order in memory, whatever the machine's own is.

func encodeAddress(a netip.Addr) (out [4]uint32) {
	b := a.As16()
	for i := range out {
		out[i] = binary.NativeEndian.Uint32(b[4*i:])
	}
	return out
}

func decodeAddress(words [4]uint32) netip.Addr {
	var b [16]byte
	for i, w := range words {
		binary.NativeEndian.PutUint32(b[4*i:], w)
	}
	return netip.AddrFrom16(b).Unmap()
}

func swapPort(p uint16) uint16 {
	return binary.NativeEndian.Uint16([]byte{byte(p >> 8), byte(p)})
}

func encodePlace(p sock.Place) sockPlace {
	return sockPlace{Address: encodeAddress(p.Address), Port: swapPort(p.Port), Protocol: p.Protocol}
}

func decodePlace(p sockPlace) sock.Place {
	return sock.Place{Address: decodeAddress(p.Address), Port: swapPort(p.Port), Protocol: p.Protocol}
}

func encodeChoice(c sock.Choice) sockChoice {
	out := sockChoice{
		Rule: c.Rule, Set: c.Set, Count: c.Count, Affinity: c.Affinity,
		Verdict: uint8(c.Verdict), Kind: uint8(c.Kind), Mode: uint8(c.Mode),
	}
	if c.Limited {
		out.Flags |= flagLimited
	}
	if c.Spares {
		out.Flags |= flagSpares
	}
	return out
}

func decodeChoice(c sockChoice) sock.Choice {
	return sock.Choice{
		Rule: c.Rule, Set: c.Set, Count: c.Count, Affinity: c.Affinity,
		Verdict: sock.Verdict(c.Verdict), Kind: sock.Kind(c.Kind), Mode: sock.Mode(c.Mode),
		Limited: c.Flags&flagLimited != 0, Spares: c.Flags&flagSpares != 0,
	}
}

func encodeRow(at sock.Place, r sock.Row) sockFrontend {
	return sockFrontend{Self: encodePlace(at), First: encodeChoice(r.First), Then: encodeChoice(r.Then)}
}

func encodeSlot(k sock.SlotKey, s sock.Slot) sockSlot {
	return sockSlot{Self: sockSlotKey{Set: k.Set, Index: k.Index}, Address: encodeAddress(s.At.Addr()), Port: swapPort(s.At.Port()), Id: s.ID}
}

func decodeSlot(s sockSlot) sock.Slot {
	return sock.Slot{At: netip.AddrPortFrom(decodeAddress(s.Address), swapPort(s.Port)), ID: s.Id}
}
