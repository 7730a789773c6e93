// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"reflect"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

func tagBytes(number protowire.Number, wire protowire.Type) []byte {
	return protowire.AppendTag(nil, number, wire)
}

// singular leaves out the zero value, which in every coder is the one byte 0, and takes it for no field.
func singular(c coder, number protowire.Number) field {
	tag := tagBytes(number, c.wire)
	return field{
		wire: c.wire, elem: c,
		append: func(dst []byte, v reflect.Value, depth int) ([]byte, *Error) {
			start := len(dst)
			dst = append(dst, tag...)
			dst, err := c.append(dst, v, depth)
			if body := dst[start+len(tag):]; err == nil && len(body) == 1 && body[0] == 0 {
				dst = dst[:start]
			}
			return dst, err
		},
		decode: func(in []byte, v reflect.Value, depth int) (int, *Error) {
			n, err := c.decode(in, v, depth)
			if err == nil && in[0] == 0 {
				err = fault("a zero value is written")
			}
			return n, err
		},
	}
}

// optional is for pointers: nil is no field, and a pointer to an empty struct is a field.
func optional(c coder, number protowire.Number) field {
	tag := tagBytes(number, c.wire)
	return field{
		wire: c.wire, elem: c,
		append: func(dst []byte, v reflect.Value, depth int) ([]byte, *Error) {
			if v.IsNil() {
				return dst, nil
			}
			return c.append(append(dst, tag...), v, depth)
		},
		decode: c.decode,
	}
}

// repeated writes a tag before each element, zero ones included.
func repeated(c coder, slice reflect.Type, number protowire.Number) field {
	tag := tagBytes(number, c.wire)
	return field{
		wire: c.wire, elem: c, repeated: true,
		append: func(dst []byte, v reflect.Value, depth int) ([]byte, *Error) {
			if v.Len() > MaxElements {
				return dst, tooMany(v.Len())
			}
			var err *Error
			for i := range v.Len() {
				dst = append(dst, tag...)
				if dst, err = c.append(dst, v.Index(i), depth); err != nil {
					return dst, err.within(index(i))
				}
			}
			return dst, nil
		},
		decode: func(in []byte, v reflect.Value, depth int) (int, *Error) {
			count := countRun(in, tag)
			if count > MaxElements {
				return 0, tooMany(count)
			}
			v.Set(reflect.MakeSlice(slice, count, count))
			at := 0
			for i := range count {
				if i > 0 {
					at += len(tag)
				}
				n, err := c.decode(in[at:], v.Index(i), depth)
				if err != nil {
					return 0, err.within(index(i))
				}
				at += n
			}
			return at, nil
		},
	}
}

// countRun counts the elements that follow each other at in, which starts behind the first one's tag, so
// that the slice for them is made once and just large enough. What is broken counts: decoding it says why.
func countRun(in, tag []byte) int {
	for count := 1; ; count++ {
		_, n, err := consumeBytes(in)
		if err != nil || !bytes.HasPrefix(in[n:], tag) {
			return count
		}
		in = in[n+len(tag):]
	}
}

// packed writes all elements behind one tag and their length in bytes.
func packed(c coder, slice reflect.Type, number protowire.Number) field {
	tag := tagBytes(number, protowire.BytesType)
	return field{
		wire: protowire.BytesType, elem: c, repeated: true,
		append: func(dst []byte, v reflect.Value, depth int) ([]byte, *Error) {
			switch count := v.Len(); {
			case count == 0:
				return dst, nil
			case count > MaxElements:
				return dst, tooMany(count)
			}
			dst = append(dst, tag...)
			start := len(dst)
			dst = append(dst, 0)
			for i := range v.Len() {
				dst, _ = c.append(dst, v.Index(i), depth) // numbers cannot fail
			}
			return putLength(dst, start), nil
		},
		decode: func(in []byte, v reflect.Value, depth int) (int, *Error) {
			body, n, err := consumeBytes(in)
			if err != nil {
				return 0, err
			}
			if len(body) == 0 {
				return 0, fault("an empty list is written")
			}
			count := countVarints(body)
			if count > MaxElements {
				return 0, tooMany(count)
			}
			v.Set(reflect.MakeSlice(slice, count, count))
			for i := range count {
				used, err := c.decode(body, v.Index(i), depth)
				if err != nil {
					return 0, err.within(index(i))
				}
				body = body[used:]
			}
			return n, nil
		},
	}
}

// countVarints counts the numbers in body; one that is cut off counts, so that decoding it says why.
func countVarints(body []byte) int {
	count := 0
	for i, b := range body {
		if b < 0x80 || i == len(body)-1 {
			count++
		}
	}
	return count
}

func tooMany(count int) *Error { return fault("%d elements, limit %d", count, MaxElements) }

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }
