// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"net/netip"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// addrCoder writes 4 bytes, 16 bytes, or 16 bytes and the zone; nothing for the zero Addr. An IPv4-mapped
// address has 16: it is not the IPv4 address.
func addrCoder() *coder {
	return &coder{
		wire: protowire.BytesType, proto: "bytes", note: "address: 4 bytes, or 16 and the zone's name",
		append: func(dst []byte, tag string, p unsafe.Pointer, _ int) ([]byte, *Error) {
			a := *(*netip.Addr)(p)
			zone := a.Zone()
			dst = appendNumber(dst, tag, uint64(a.BitLen()/8+len(zone)))
			return append(appendAddr(dst, a), zone...), nil
		},
		decode: func(in []byte, p unsafe.Pointer, _ int) (int, *Error) {
			body, n, err := consumeBytes(in)
			if err != nil || len(body) == 0 {
				return n, err
			}
			a, ok := netip.AddrFromSlice(body[:min(len(body), 16)])
			if !ok {
				return n, fault("%d bytes are no address", len(body))
			}
			if len(body) > 16 {
				a = a.WithZone(string(body[16:]))
			}
			*(*netip.Addr)(p) = a
			return n, nil
		},
		check: func(p unsafe.Pointer, _ checking) *Error {
			zone := (*netip.Addr)(p).Zone()
			if err := checkText(unsafe.Pointer(&zone), checking{most: maxZone}); err != nil {
				return fault("the zone of an address: %s", err.Why)
			}
			return nil
		},
	}
}

// prefixCoder writes the address, host bits included, and one byte of length; nothing for the zero Prefix.
func prefixCoder() *coder {
	return &coder{
		wire: protowire.BytesType, proto: "bytes", note: "prefix: address of 4 or 16 bytes, length in one byte",
		append: func(dst []byte, tag string, p unsafe.Pointer, _ int) ([]byte, *Error) {
			prefix := *(*netip.Prefix)(p)
			switch {
			case prefix == netip.Prefix{}:
				return appendNumber(dst, tag, 0), nil
			case !prefix.IsValid():
				return dst, fault("invalid prefix")
			}
			dst = appendNumber(dst, tag, uint64(prefix.Addr().BitLen()/8+1))
			return append(appendAddr(dst, prefix.Addr()), byte(prefix.Bits())), nil
		},
		decode: func(in []byte, p unsafe.Pointer, _ int) (int, *Error) {
			body, n, err := consumeBytes(in)
			if err != nil || len(body) == 0 {
				return n, err
			}
			a, ok := netip.AddrFromSlice(body[:len(body)-1])
			bits := int(body[len(body)-1])
			if !ok || bits > a.BitLen() {
				return n, fault("%d bytes with length %d are no prefix", len(body), bits)
			}
			*(*netip.Prefix)(p) = netip.PrefixFrom(a, bits)
			return n, nil
		},
	}
}

func appendAddr(dst []byte, a netip.Addr) []byte {
	switch a.BitLen() {
	case 32:
		b := a.As4()
		return append(dst, b[:]...)
	case 128:
		b := a.As16()
		return append(dst, b[:]...)
	}
	return dst
}
