// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"reflect"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// MaxText is how long a text, or what else has no length of its own, may be where its field's tag `max` says nothing, in bytes.
const MaxText = 64 << 10

// maxZone bounds the zone of an address, bytes. Names of interfaces are shorter.
const maxZone = 64

// checkFunc tells what is unfit about the value at p, whose texts may have so many bytes.
type checkFunc func(p unsafe.Pointer, most, depth int) *Error

// Check tells whether v, a struct or better a pointer to one, is fit to be encoded for the first time: see Type.Check.
func Check(v any) error {
	goType := reflect.TypeOf(v)
	if goType == nil {
		return &Error{Path: "nil", Why: "not a struct"}
	}
	if goType.Kind() == reflect.Pointer {
		goType = goType.Elem()
	}
	t, err := typeFor(goType)
	if err != nil {
		return err
	}
	return t.Check(v)
}

// Check tells whether v, a T or better a *T, is fit to be encoded for the first time. Texts are UTF-8, and so are zones of addresses; none
// is longer than its field's tag says (`max:"64"`, in bytes, of each text where there are several), or MaxText.
//
// It is for whoever takes values from outside. Append and Decode hold no bound of a text: what an earlier release took in stays readable,
// whatever this one thinks of it, and bounds may change.
func (t *Type) Check(v any) error {
	p, err := t.root.pointerTo(v)
	if err == nil {
		err = t.root.check(p, 1)
		if err != nil {
			err = err.within(nameOf(t.root.goType))
		}
	}
	if err != nil {
		return err
	}
	return nil
}

func (m *message) check(p unsafe.Pointer, depth int) *Error {
	if depth > MaxDepth {
		return tooDeep()
	}
	for i := range m.fields {
		f := &m.fields[i]
		if f.check == nil {
			continue
		}
		at := f.read(p)
		if at == nil {
			continue
		}
		if err := f.check(at, f.most, depth); err != nil {
			return err.within(f.name)
		}
	}
	return nil
}

func checkText(p unsafe.Pointer, most, _ int) *Error {
	s := *(*string)(p)
	switch {
	case len(s) > most:
		return tooLong(len(s), most)
	case !utf8.ValidString(s):
		return notUTF8()
	}
	return nil
}

func checkBytes(p unsafe.Pointer, most, _ int) *Error {
	if n := len(*(*[]byte)(p)); n > most {
		return tooLong(n, most)
	}
	return nil
}

func tooLong(have, most int) *Error { return fault("%d bytes, at most %d are allowed", have, most) }

// checkEach checks the elements of a slice.
func checkEach(one checkFunc, size uintptr) checkFunc {
	if one == nil {
		return nil
	}
	return func(p unsafe.Pointer, most, depth int) *Error {
		s := (*slice)(p)
		if s.len > MaxElements {
			return tooMany(s.len)
		}
		for i := range s.len {
			if err := one(s.at(i, size), most, depth); err != nil {
				return err.within(index(i))
			}
		}
		return nil
	}
}

// mostBytes is what a field's tag says of how long its texts may be, MaxText if it says nothing.
func mostBytes(f reflect.StructField) (int, *Error) {
	tag, tagged := f.Tag.Lookup("max")
	if !tagged {
		return MaxText, nil
	}
	t := f.Type
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String {
		t = t.Elem()
	}
	if t.Kind() != reflect.String && (t.Kind() != reflect.Slice || t.Elem().Kind() != reflect.Uint8) {
		return 0, fault("%s is no text: its length has no bound of its own", f.Type)
	}
	n, err := strconv.Atoi(tag)
	if err != nil || n <= 0 || n > MaxSize || strconv.Itoa(n) != tag {
		return 0, fault("max tag %q is no number of bytes", tag)
	}
	return n, nil
}
