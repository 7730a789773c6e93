// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"unicode/utf8"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

func stringCoder(t reflect.Type) *coder {
	return &coder{
		wire: protowire.BytesType, proto: "string", note: named(t),
		append: func(dst []byte, tag string, p unsafe.Pointer, _ int) ([]byte, *Error) {
			s := *(*string)(p)
			if !utf8.ValidString(s) {
				return dst, notUTF8()
			}
			return append(appendNumber(dst, tag, uint64(len(s))), s...), nil
		},
		decode: func(in []byte, p unsafe.Pointer, _ int) (int, *Error) {
			body, n, err := consumeBytes(in)
			if err == nil && !utf8.Valid(body) {
				err = notUTF8()
			}
			*(*string)(p) = string(body)
			return n, err
		},
		check: checkText,
	}
}

func notUTF8() *Error { return fault("not UTF-8") }

func bytesCoder(t reflect.Type) *coder {
	return &coder{
		wire: protowire.BytesType, proto: "bytes", note: named(t),
		append: func(dst []byte, tag string, p unsafe.Pointer, _ int) ([]byte, *Error) {
			b := *(*[]byte)(p)
			return append(appendNumber(dst, tag, uint64(len(b))), b...), nil
		},
		decode: func(in []byte, p unsafe.Pointer, _ int) (int, *Error) {
			body, n, err := consumeBytes(in)
			if len(body) > 0 { // an empty slice is nil, as everywhere
				*(*[]byte)(p) = bytes.Clone(body)
			}
			return n, err
		},
		check: checkBytes,
	}
}

// arrayCoder writes an array as its bytes, and one of zeroes as none.
func arrayCoder(t reflect.Type) *coder {
	zero := make([]byte, t.Len())
	note := fmt.Sprintf("%d bytes, or none for zeroes", t.Len())
	if name := named(t); name != "" {
		note = name + ": " + note
	}
	return &coder{
		wire: protowire.BytesType, proto: "bytes", note: note,
		append: func(dst []byte, tag string, p unsafe.Pointer, _ int) ([]byte, *Error) {
			b := unsafe.Slice((*byte)(p), len(zero))
			if bytes.Equal(b, zero) {
				b = nil
			}
			return append(appendNumber(dst, tag, uint64(len(b))), b...), nil
		},
		decode: func(in []byte, p unsafe.Pointer, _ int) (int, *Error) {
			body, n, err := consumeBytes(in)
			switch {
			case err != nil || len(body) == 0:
				return n, err
			case len(body) != len(zero):
				return n, fault("%d bytes, want %d", len(body), len(zero))
			case bytes.Equal(body, zero):
				return n, fault("a zero value is written")
			}
			copy(unsafe.Slice((*byte)(p), len(zero)), body)
			return n, nil
		},
	}
}

// appendNumber appends a number or a length as appendFunc demands.
func appendNumber(dst []byte, tag string, x uint64) []byte {
	if x == 0 && tag != "" {
		return dst
	}
	switch {
	case x >= 0x80:
		return protowire.AppendVarint(append(dst, tag...), x)
	case len(tag) == 1: // by far the most common case
		return append(dst, tag[0], byte(x))
	default:
		return append(append(dst, tag...), byte(x))
	}
}

// consumeVarint returns the number at the start of in, and its length, refusing one written longer than needed.
func consumeVarint(in []byte) (uint64, int, *Error) {
	if len(in) > 0 && in[0] < 0x80 {
		return uint64(in[0]), 1, nil
	}
	x, n := protowire.ConsumeVarint(in)
	switch {
	case n < 0 && errors.Is(protowire.ParseError(n), io.ErrUnexpectedEOF):
		return 0, 0, fault("a number is cut off")
	case n < 0:
		return 0, 0, fault("a number of more than 64 bits")
	case in[n-1] == 0:
		return 0, 0, fault("a number of %d bytes that needs fewer", n)
	}
	return x, n, nil
}

// consumeBytes returns the bytes behind the length at the start of in, and how long both are together.
func consumeBytes(in []byte) ([]byte, int, *Error) {
	size, n, err := consumeVarint(in)
	if err != nil {
		return nil, 0, err
	}
	if size > uint64(len(in)-n) {
		return nil, 0, fault("length %d, but %d bytes are left", size, len(in)-n)
	}
	return in[n : n+int(size)], n + int(size), nil
}

// putLength puts its length in front of the body that starts at dst[start], where one byte was kept free. That
// is enough for most; a longer body is moved.
func putLength(dst []byte, start int) []byte {
	end := len(dst)
	size := uint64(end - start)
	if size < 0x80 {
		dst[start-1] = byte(size)
		return dst
	}
	more := protowire.SizeVarint(size) - 1
	dst = append(dst, make([]byte, more)...)
	copy(dst[start+more:], dst[start:end])
	binary.PutUvarint(dst[start-1:], size)
	return dst
}
