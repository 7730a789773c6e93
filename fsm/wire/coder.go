// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"reflect"
	"time"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// Coders reach values by pointer: every p below points to a value of the Go type that the coder was made
// for, as a field's offset in its struct says. That takes half the time of reflect.Value, and the digest encodes
// every record that a command touches.

// appendFunc appends *p to dst: behind a tag and only if it is not zero, or without a tag and whatever it is.
// What it returns with an error may hold half a value.
type appendFunc func(dst []byte, tag string, p unsafe.Pointer, depth int) ([]byte, *Error)

// decodeFunc sets *p, which is zero, from the start of in, and returns how many bytes it took: more than none.
type decodeFunc func(in []byte, p unsafe.Pointer, depth int) (int, *Error)

// coder knows the bytes of one value without a tag. The zero value, and nothing else, is the one byte 0.
type coder struct {
	wire   protowire.Type
	append appendFunc
	decode decodeFunc
	check  checkFunc // nil where nothing can be unfit

	proto   string   // the .proto type; "" for a message
	note    string   // what the .proto type does not say
	message *message // of structs and pointers to them
}

func boolCoder(t reflect.Type) *coder {
	return &coder{
		wire: protowire.VarintType, proto: "bool", note: named(t),
		append: func(dst []byte, tag string, p unsafe.Pointer, _ int) ([]byte, *Error) {
			x := uint64(0)
			if *(*bool)(p) {
				x = 1
			}
			return appendNumber(dst, tag, x), nil
		},
		decode: func(in []byte, p unsafe.Pointer, _ int) (int, *Error) {
			x, n, err := consumeVarint(in)
			if err == nil && x > 1 {
				err = fault("%d is not a bool", x)
			}
			*(*bool)(p) = x == 1
			return n, err
		},
	}
}

func uintCoder[T uint | uint8 | uint16 | uint32 | uint64](t reflect.Type, proto string) *coder {
	return &coder{
		wire: protowire.VarintType, proto: proto, note: named(t),
		append: func(dst []byte, tag string, p unsafe.Pointer, _ int) ([]byte, *Error) {
			return appendNumber(dst, tag, uint64(*(*T)(p))), nil
		},
		decode: func(in []byte, p unsafe.Pointer, _ int) (int, *Error) {
			x, n, err := consumeVarint(in)
			if err == nil && uint64(T(x)) != x {
				err = fault("%d overflows %s", x, t)
			}
			*(*T)(p) = T(x)
			return n, err
		},
	}
}

func intCoder[T int | int8 | int16 | int32 | int64](t reflect.Type, proto string) *coder {
	note := named(t)
	if t == reflect.TypeFor[time.Duration]() {
		note = "nanoseconds"
	}
	return &coder{
		wire: protowire.VarintType, proto: proto, note: note,
		append: func(dst []byte, tag string, p unsafe.Pointer, _ int) ([]byte, *Error) {
			return appendNumber(dst, tag, protowire.EncodeZigZag(int64(*(*T)(p)))), nil
		},
		decode: func(in []byte, p unsafe.Pointer, _ int) (int, *Error) {
			u, n, err := consumeVarint(in)
			x := protowire.DecodeZigZag(u)
			if err == nil && int64(T(x)) != x {
				err = fault("%d overflows %s", x, t)
			}
			*(*T)(p) = T(x)
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
func structCoder(m *message) *coder {
	return &coder{
		wire: protowire.BytesType, message: m,
		append: func(dst []byte, tag string, p unsafe.Pointer, depth int) ([]byte, *Error) {
			start := len(dst)
			dst = append(append(dst, tag...), 0)
			body := len(dst)
			dst, err := m.append(dst, p, depth+1)
			switch {
			case err != nil:
				return dst, err
			case len(dst) == body && tag != "":
				return dst[:start], nil
			}
			return putLength(dst, body), nil
		},
		decode: func(in []byte, p unsafe.Pointer, depth int) (int, *Error) {
			body, n, err := consumeBytes(in)
			if err == nil {
				err = m.decode(body, p, depth+1)
			}
			return n, err
		},
		check: func(p unsafe.Pointer, c checking) *Error {
			c.depth++
			return m.check(p, c)
		},
	}
}

// pointerCoder writes what a pointer points to; there are no bytes for nil.
func pointerCoder(m *message) *coder {
	target := structCoder(m)
	return &coder{
		wire: protowire.BytesType, message: m,
		append: func(dst []byte, tag string, p unsafe.Pointer, depth int) ([]byte, *Error) {
			to := *(*unsafe.Pointer)(p)
			switch {
			case to != nil: // also a pointer to a zero struct is not zero
				return target.append(append(dst, tag...), "", to, depth)
			case tag == "":
				return dst, fault("nil")
			}
			return dst, nil
		},
		decode: func(in []byte, p unsafe.Pointer, depth int) (int, *Error) {
			to := reflect.New(m.goType).UnsafePointer()
			*(*unsafe.Pointer)(p) = to
			return target.decode(in, to, depth)
		},
		check: func(p unsafe.Pointer, c checking) *Error {
			to := *(*unsafe.Pointer)(p)
			if to == nil {
				return nil
			}
			return target.check(to, c)
		},
	}
}
