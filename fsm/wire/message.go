// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"reflect"
	"sort"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// message is the encoding of a struct: its fields by ascending number.
type message struct {
	goType reflect.Type
	fields []field
}

// field is one field of a struct with its tag. append writes nothing when there is nothing to say; decode
// gets what follows the field's first tag and returns how many bytes were the field's.
type field struct {
	append appendFunc
	decode decodeFunc
	check  checkFunc // nil where nothing can be unfit
	most   int       // how many bytes a text of it may have when it is encoded for the first time
	tag    string    // as it stands before the value
	offset uintptr
	name   string
	number protowire.Number
	wire   protowire.Type
	inside *inlined // the pointer whose target has the field; nil for a field of the struct itself

	elem     *coder // for the schema: what the field holds one or several of
	repeated bool
}

// inlined is a pointer to a struct whose fields stand among those of the struct that has the pointer.
type inlined struct {
	offset uintptr
	target reflect.Type
}

// read gives where the field's value is in the struct at p, nil for inside of nothing.
func (f *field) read(p unsafe.Pointer) unsafe.Pointer {
	if f.inside != nil {
		if p = *(*unsafe.Pointer)(unsafe.Add(p, f.inside.offset)); p == nil {
			return nil
		}
	}
	return unsafe.Add(p, f.offset)
}

// write likewise, for setting it: inside of what is made where it is nothing.
func (f *field) write(p unsafe.Pointer) unsafe.Pointer {
	if f.inside != nil {
		inside := (*unsafe.Pointer)(unsafe.Add(p, f.inside.offset))
		if *inside == nil {
			*inside = reflect.New(f.inside.target).UnsafePointer()
		}
		p = *inside
	}
	return unsafe.Add(p, f.offset)
}

// pointerTo gives where v is, a struct that the message is of or a pointer to one; a struct is copied.
func (m *message) pointerTo(v any) (unsafe.Pointer, *Error) {
	value := reflect.ValueOf(v)
	switch {
	case value.Kind() == reflect.Pointer && value.Type().Elem() == m.goType && !value.IsNil():
		return value.UnsafePointer(), nil
	case value.IsValid() && value.Type() == m.goType:
		copied := reflect.New(m.goType)
		copied.Elem().Set(value)
		return copied.UnsafePointer(), nil
	}
	return nil, m.mismatch(v)
}

func (m *message) mismatch(v any) *Error {
	return &Error{Path: nameOf(m.goType), Why: "not for " + typeName(v)}
}

func typeName(v any) string {
	switch value := reflect.ValueOf(v); {
	case !value.IsValid():
		return "nil"
	case value.Kind() == reflect.Pointer && value.IsNil():
		return "a nil " + value.Type().String()
	default:
		return "a " + value.Type().String()
	}
}

func (m *message) append(dst []byte, p unsafe.Pointer, depth int) ([]byte, *Error) {
	if depth > MaxDepth {
		return dst, tooDeep()
	}
	var err *Error
	for i := range m.fields {
		f := &m.fields[i]
		at := f.read(p)
		if at == nil {
			continue
		}
		if dst, err = f.append(dst, f.tag, at, depth); err != nil {
			return dst, err.within(f.name)
		}
	}
	return dst, nil
}

func (m *message) decode(in []byte, p unsafe.Pointer, depth int) *Error {
	if depth > MaxDepth {
		return tooDeep()
	}
	next := 0 // the first field that may still come
	for len(in) > 0 {
		tag, n, err := consumeVarint(in)
		if err != nil {
			return err
		}
		number, wire := tag>>3, protowire.Type(tag&7)
		for next < len(m.fields) && uint64(m.fields[next].number) < number {
			next++
		}
		if next == len(m.fields) || uint64(m.fields[next].number) != number {
			return m.unexpected(number, next)
		}
		f := &m.fields[next]
		next++
		if wire != f.wire {
			return fault("wire type %d, want %d", wire, f.wire).within(f.name)
		}
		in = in[n:]
		if n, err = f.decode(in, f.write(p), depth); err != nil {
			return err.within(f.name)
		}
		in = in[n:]
	}
	return nil
}

// unexpected says why number may not stand where all fields before next are over.
func (m *message) unexpected(number uint64, next int) *Error {
	i := sort.Search(len(m.fields), func(i int) bool { return uint64(m.fields[i].number) >= number })
	switch {
	case i == len(m.fields) || uint64(m.fields[i].number) != number:
		err := fault("%v %d", ErrUnknownField, number)
		err.cause = ErrUnknownField
		return err
	case i == next-1:
		return fault("comes twice").within(m.fields[i].name)
	default:
		return fault("comes after a field of a higher number").within(m.fields[i].name)
	}
}

func tooDeep() *Error { return fault("more than %d structs within each other", MaxDepth) }
