// SPDX-License-Identifier: Apache-2.0

// Package wire gives plain Go structs one canonical encoding: equal values become equal bytes on every
// platform and in every release, and every accepted input is the encoding of exactly one value. Log,
// snapshot and digest rest on that, and the protobuf libraries expressly do not promise it.
//
// The bytes are standard protobuf wire format, so that outsiders can read them with the .proto file that
// Schema prints. A struct says what it becomes by field tags:
//
//	type Route struct {
//		Prefix   netip.Prefix `pb:"1"`
//		NextHops []NextHop    `pb:"2"`
//		cache    string       // unexported: not part of the value
//	}
//
// Fields may be bool, integers, string, []byte, [N]byte, netip.Addr, netip.Prefix, time.Duration, structs,
// pointers to structs (nil is absent), slices of all these, and named types of them. A pointer to a struct that is tagged
// "inline" stands for the fields of that struct, for what many values have alike or few have at all: nil is the same value as
// a pointer to a zero struct, and decoding yields nil. Maps and floats have no
// canonical form and are refused, as is everything else, when the type is compiled.
//
// A tag `max:"64"` bounds a text, or each of a slice of texts, in bytes. It is held by Check alone: see there.
//
// The canonical form: fields ascend by number, each at most once; varints are minimal; signed integers are
// zigzag; slices of numbers are packed; the zero value of a singular field is left out. A nil and an empty
// slice are the same value, and decoding yields nil. Decode refuses everything else.
//
// Start reading at Type; compile.go turns a struct into a list of fields, coder.go and its neighbours
// know the bytes of one value.
package wire

import (
	"reflect"
	"sync"
)

// Limits that bound what one encoding may ask of memory and stack. Append and Decode both hold them, so
// that what was written can be read.
const (
	// MaxSize is the longest encoding of one value, in bytes.
	MaxSize = 64 << 20
	// MaxElements is the longest slice of anything but bytes.
	MaxElements = 1 << 20
	// MaxDepth is how many structs may contain each other, the outermost included.
	MaxDepth = 16
)

// Type is the compiled encoding of one struct type. It never changes and is safe for concurrent use.
//
// The functions Append and Decode look the Type of their argument up; holding one saves that.
type Type struct {
	root *message
}

// compiled remembers Types by reflect.Type. A Type follows from the Go type alone and never changes, so this
// is a memo that nobody can tell from compiling anew, not state that members of one process would share.
var compiled sync.Map //nolint:gochecknoglobals // see above

func typeFor(t reflect.Type) (*Type, error) {
	if known, ok := compiled.Load(t); ok {
		return known.(*Type), nil
	}
	made, err := Compile(t)
	if err != nil {
		return nil, err
	}
	known, _ := compiled.LoadOrStore(t, made)
	return known.(*Type), nil
}

// Append appends the encoding of v, a struct or better a pointer to one, to dst: see Type.Append.
func Append(dst []byte, v any) ([]byte, error) {
	goType := reflect.TypeOf(v)
	if goType == nil {
		return dst, &Error{Path: "nil", Why: "not a struct"}
	}
	if goType.Kind() == reflect.Pointer {
		goType = goType.Elem()
	}
	t, err := typeFor(goType)
	if err != nil {
		return dst, err
	}
	return t.Append(dst, v)
}

// Decode sets *v, v being a pointer to a struct, to the value whose encoding data is: see Type.Decode.
func Decode(data []byte, v any) error {
	goType := reflect.TypeOf(v)
	if goType == nil || goType.Kind() != reflect.Pointer {
		return &Error{Path: typeName(v), Why: "not a pointer to a struct"}
	}
	t, err := typeFor(goType.Elem())
	if err != nil {
		return err
	}
	return t.Decode(data, v)
}

// Append appends the encoding of v, a T or better a *T (a T is copied first), to dst.
//
// It allocates only to grow dst. On an error, always an *Error, dst comes back as it was: v is of another
// type, or holds what Decode would refuse (invalid UTF-8, an invalid prefix, a nil element, more than a limit).
func (t *Type) Append(dst []byte, v any) ([]byte, error) {
	p, err := t.root.pointerTo(v)
	if err != nil {
		return dst, err
	}
	out, err := t.root.append(dst, p, 1)
	if err == nil && len(out)-len(dst) > MaxSize {
		err = fault("%d bytes, limit %d", len(out)-len(dst), MaxSize)
	}
	if err != nil {
		return dst, err.within(nameOf(t.root.goType))
	}
	return out, nil
}

// Decode sets *v, v being a *T, to the value whose encoding data is. It keeps no reference to data.
//
// An error is always an *Error; *v is then the zero value. A field number that T does not have also matches
// ErrUnknownField: the bytes may come from a newer release.
func (t *Type) Decode(data []byte, v any) error {
	value := reflect.ValueOf(v)
	if value.Kind() != reflect.Pointer || value.Type().Elem() != t.root.goType || value.IsNil() {
		return t.root.mismatch(v)
	}
	value = value.Elem()
	value.SetZero()
	var err *Error
	if len(data) > MaxSize {
		err = fault("%d bytes, limit %d", len(data), MaxSize)
	} else {
		err = t.root.decode(data, value.Addr().UnsafePointer(), 1)
	}
	if err != nil {
		value.SetZero()
		return err.within(nameOf(t.root.goType))
	}
	return nil
}
