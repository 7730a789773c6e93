// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"reflect"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// appendFunc appends v, which is addressable, to dst. What it returns with an error may hold half a value.
type appendFunc func(dst []byte, v reflect.Value, depth int) ([]byte, *Error)

// decodeFunc sets v, which is zero, from the start of in, and returns how many bytes it took: more than none.
type decodeFunc func(in []byte, v reflect.Value, depth int) (int, *Error)

// coder knows the bytes of one value without a tag. The zero value, and nothing else, is the one byte 0.
type coder struct {
	wire   protowire.Type
	append appendFunc
	decode decodeFunc

	proto   string   // the .proto type; "" for a message
	note    string   // what the .proto type does not say
	message *message // of structs and pointers to them
}

func boolCoder() coder {
	return coder{
		wire: protowire.VarintType, proto: "bool",
		append: func(dst []byte, v reflect.Value, _ int) ([]byte, *Error) {
			if v.Bool() {
				return append(dst, 1), nil
			}
			return append(dst, 0), nil
		},
		decode: func(in []byte, v reflect.Value, _ int) (int, *Error) {
			x, n, err := consumeVarint(in)
			if err == nil && x > 1 {
				err = fault("%d is not a bool", x)
			}
			v.SetBool(x == 1)
			return n, err
		},
	}
}

func uintCoder(t reflect.Type) coder {
	proto := "uint64"
	if t.Bits() <= 32 && t.Kind() != reflect.Uint {
		proto = "uint32"
	}
	return coder{
		wire: protowire.VarintType, proto: proto, note: named(t),
		append: func(dst []byte, v reflect.Value, _ int) ([]byte, *Error) {
			return protowire.AppendVarint(dst, v.Uint()), nil
		},
		decode: func(in []byte, v reflect.Value, _ int) (int, *Error) {
			x, n, err := consumeVarint(in)
			if err == nil && v.OverflowUint(x) {
				err = fault("%d overflows %s", x, t)
			}
			v.SetUint(x)
			return n, err
		},
	}
}

func intCoder(t reflect.Type) coder {
	proto, note := "sint64", named(t)
	if t.Bits() <= 32 && t.Kind() != reflect.Int {
		proto = "sint32"
	}
	if t == reflect.TypeFor[time.Duration]() {
		note = "nanoseconds"
	}
	return coder{
		wire: protowire.VarintType, proto: proto, note: note,
		append: func(dst []byte, v reflect.Value, _ int) ([]byte, *Error) {
			return protowire.AppendVarint(dst, protowire.EncodeZigZag(v.Int())), nil
		},
		decode: func(in []byte, v reflect.Value, _ int) (int, *Error) {
			u, n, err := consumeVarint(in)
			x := protowire.DecodeZigZag(u)
			if err == nil && v.OverflowInt(x) {
				err = fault("%d overflows %s", x, t)
			}
			v.SetInt(x)
			return n, err
		},
	}
}

// named returns the name of a defined type, "" for a predeclared one.
func named(t reflect.Type) string {
	if t.PkgPath() == "" {
		return ""
	}
	return t.Name()
}

// structCoder writes a struct with its length in front.
func structCoder(m *message) coder {
	return coder{
		wire: protowire.BytesType, message: m,
		append: func(dst []byte, v reflect.Value, depth int) ([]byte, *Error) {
			start := len(dst)
			dst, err := m.append(append(dst, 0), v, depth+1)
			if err != nil {
				return dst, err
			}
			return putLength(dst, start), nil
		},
		decode: func(in []byte, v reflect.Value, depth int) (int, *Error) {
			body, n, err := consumeBytes(in)
			if err == nil {
				err = m.decode(body, v, depth+1)
			}
			return n, err
		},
	}
}

// pointerCoder writes what a pointer points to; there are no bytes for nil.
func pointerCoder(m *message) coder {
	target := structCoder(m)
	c := target
	c.append = func(dst []byte, v reflect.Value, depth int) ([]byte, *Error) {
		if v.IsNil() {
			return dst, fault("nil")
		}
		return target.append(dst, v.Elem(), depth)
	}
	c.decode = func(in []byte, v reflect.Value, depth int) (int, *Error) {
		v.Set(reflect.New(v.Type().Elem()))
		return target.decode(in, v.Elem(), depth)
	}
	return c
}
