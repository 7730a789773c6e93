// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"net/netip"
	"reflect"

	"google.golang.org/protobuf/encoding/protowire"
)

// pointerTo returns a function that views an addressable value of type t, defined by T, as a *T.
func pointerTo[T any](t reflect.Type) func(reflect.Value) *T {
	if t == reflect.TypeFor[T]() {
		return func(v reflect.Value) *T { return v.Addr().Interface().(*T) }
	}
	pointer := reflect.TypeFor[*T]()
	return func(v reflect.Value) *T { return v.Addr().Convert(pointer).Interface().(*T) }
}

// addrCoder writes 4 bytes, 16 bytes, or 16 bytes and the zone; nothing for the zero Addr. An IPv4-mapped
// address has 16: it is not the IPv4 address.
func addrCoder(t reflect.Type) coder {
	addr := pointerTo[netip.Addr](t)
	return coder{
		wire: protowire.BytesType, proto: "bytes", note: "address: 4 bytes, or 16 and the zone's name",
		append: func(dst []byte, v reflect.Value, _ int) ([]byte, *Error) {
			a := *addr(v)
			if !a.IsValid() {
				return append(dst, 0), nil
			}
			zone := a.Zone()
			dst = protowire.AppendVarint(dst, uint64(a.BitLen()/8+len(zone)))
			return append(appendAddr(dst, a), zone...), nil
		},
		decode: func(in []byte, v reflect.Value, _ int) (int, *Error) {
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
			*addr(v) = a
			return n, nil
		},
	}
}

// prefixCoder writes the address, host bits included, and one byte of length; nothing for the zero Prefix.
func prefixCoder(t reflect.Type) coder {
	prefix := pointerTo[netip.Prefix](t)
	return coder{
		wire: protowire.BytesType, proto: "bytes", note: "prefix: address of 4 or 16 bytes, length in one byte",
		append: func(dst []byte, v reflect.Value, _ int) ([]byte, *Error) {
			p := *prefix(v)
			if p == (netip.Prefix{}) {
				return append(dst, 0), nil
			}
			if !p.IsValid() {
				return dst, fault("invalid prefix")
			}
			dst = protowire.AppendVarint(dst, uint64(p.Addr().BitLen()/8+1))
			return append(appendAddr(dst, p.Addr()), byte(p.Bits())), nil
		},
		decode: func(in []byte, v reflect.Value, _ int) (int, *Error) {
			body, n, err := consumeBytes(in)
			if err != nil || len(body) == 0 {
				return n, err
			}
			a, ok := netip.AddrFromSlice(body[:len(body)-1])
			bits := int(body[len(body)-1])
			if !ok || bits > a.BitLen() {
				return n, fault("%d bytes with length %d are no prefix", len(body), bits)
			}
			*prefix(v) = netip.PrefixFrom(a, bits)
			return n, nil
		},
	}
}

func appendAddr(dst []byte, a netip.Addr) []byte {
	if a.Is4() {
		b := a.As4()
		return append(dst, b[:]...)
	}
	b := a.As16()
	return append(dst, b[:]...)
}
