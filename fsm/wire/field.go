// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"reflect"
	"strconv"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

func tagOf(number protowire.Number, wire protowire.Type) string {
	return string(protowire.AppendTag(nil, number, wire))
}

// singular takes the zero value, which in every coder is the one byte 0, for no field.
func singular(c *coder, number protowire.Number) field {
	return field{
		tag: tagOf(number, c.wire), wire: c.wire, elem: c, append: c.append, check: c.check,
		decode: func(in []byte, p unsafe.Pointer, depth int) (int, *Error) {
			n, err := c.decode(in, p, depth)
			if err == nil && in[0] == 0 {
				err = fault("a zero value is written")
			}
			return n, err
		},
	}
}

// optional is for pointers: nil is no field, and a pointer to a zero struct is a field.
func optional(c *coder, number protowire.Number) field {
	return field{tag: tagOf(number, c.wire), wire: c.wire, elem: c, append: c.append, decode: c.decode, check: c.check}
}

// slice is how Go lays out a slice of any type.
type slice struct {
	data     unsafe.Pointer
	len, cap int
}

func makeSlice(t reflect.Type, n int) slice {
	return slice{data: reflect.MakeSlice(t, n, n).UnsafePointer(), len: n, cap: n}
}

func (s *slice) at(i int, size uintptr) unsafe.Pointer {
	return unsafe.Add(s.data, uintptr(i)*size)
}

// repeated writes a tag before each element, zero ones included.
func repeated(c *coder, t reflect.Type, number protowire.Number) field {
	size := t.Elem().Size()
	tag := tagOf(number, c.wire)
	return field{
		tag: tag, wire: c.wire, elem: c, repeated: true, check: checkEach(c.check, size),
		append: func(dst []byte, tag string, p unsafe.Pointer, depth int) ([]byte, *Error) {
			s := (*slice)(p)
			if s.len > MaxElements {
				return dst, tooMany(s.len)
			}
			var err *Error
			for i := range s.len {
				dst = append(dst, tag...)
				if dst, err = c.append(dst, "", s.at(i, size), depth); err != nil {
					return dst, err.within(index(i))
				}
			}
			return dst, nil
		},
		decode: func(in []byte, p unsafe.Pointer, depth int) (int, *Error) {
			count := countRun(in, tag)
			if count > MaxElements {
				return 0, tooMany(count)
			}
			s := makeSlice(t, count)
			*(*slice)(p) = s
			at := 0
			for i := range count {
				if i > 0 {
					at += len(tag)
				}
				n, err := c.decode(in[at:], s.at(i, size), depth)
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
func countRun(in []byte, tag string) int {
	for count := 1; ; count++ {
		_, n, err := consumeBytes(in)
		if err != nil || !bytes.HasPrefix(in[n:], []byte(tag)) {
			return count
		}
		in = in[n+len(tag):]
	}
}

// packed writes all elements behind one tag and their length in bytes.
func packed(c *coder, t reflect.Type, number protowire.Number) field {
	size := t.Elem().Size()
	return field{
		tag: tagOf(number, protowire.BytesType), wire: protowire.BytesType, elem: c, repeated: true,
		append: func(dst []byte, tag string, p unsafe.Pointer, depth int) ([]byte, *Error) {
			s := (*slice)(p)
			switch {
			case s.len == 0:
				return dst, nil
			case s.len > MaxElements:
				return dst, tooMany(s.len)
			}
			dst = append(dst, tag...)
			dst = append(dst, 0)
			start := len(dst)
			for i := range s.len {
				dst, _ = c.append(dst, "", s.at(i, size), depth) // numbers cannot fail
			}
			return putLength(dst, start), nil
		},
		decode: func(in []byte, p unsafe.Pointer, depth int) (int, *Error) {
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
			s := makeSlice(t, count)
			*(*slice)(p) = s
			for i := range count {
				used, err := c.decode(body, s.at(i, size), depth)
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
