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

// checkFunc tells what is unfit about the value at p.
type checkFunc func(p unsafe.Pointer, c checking) *Error

// checking is what a check goes by on its way through a value.
type checking struct {
	most, depth int               // of the texts at hand, in bytes; of the value at hand
	known       func(string) bool // texts that may be longer; optional
}

// Check tells whether v, a struct or better a pointer to one, is fit to be encoded for the first time: see Type.Check.
func Check(v any) error { return CheckBut(v, nil) }

// CheckBut is Check, but texts that are known may be of any length.
func CheckBut(v any, known func(text string) bool) error {
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
	return t.check(v, known)
}

// Check tells whether v, a T or better a *T, is fit to be encoded for the first time. Texts are UTF-8, and so are zones of addresses; none
// is longer than its field's tag says (`max:"64"`, in bytes, of each text where there are several), or MaxText.
//
// It is for whoever takes values from outside. Append and Decode hold no bound of a text: what an earlier release took in stays readable,
// whatever this one thinks of it, and bounds may change.
func (t *Type) Check(v any) error { return t.check(v, nil) }

func (t *Type) check(v any, known func(string) bool) error {
	p, err := t.root.pointerTo(v)
	if err == nil {
		err = t.root.check(p, checking{depth: 1, known: known})
		if err != nil {
			err = err.within(nameOf(t.root.goType))
		}
	}
	if err != nil {
		return err
	}
	return nil
}

func (m *message) check(p unsafe.Pointer, c checking) *Error {
	if c.depth > MaxDepth {
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
		c.most = f.most
		if err := f.check(at, c); err != nil {
			return err.within(f.name)
		}
	}
	return nil
}

func checkText(p unsafe.Pointer, c checking) *Error {
	s := *(*string)(p)
	switch {
	case len(s) > c.most && (c.known == nil || !c.known(s)):
		return tooLong(len(s), c.most)
	case !utf8.ValidString(s):
		return notUTF8()
	}
	return nil
}

func checkBytes(p unsafe.Pointer, c checking) *Error {
	if n := len(*(*[]byte)(p)); n > c.most {
		return tooLong(n, c.most)
	}
	return nil
}

func tooLong(have, most int) *Error { return fault("%d bytes, at most %d are allowed", have, most) }

// checkEach checks the elements of a slice.
func checkEach(one checkFunc, size uintptr) checkFunc {
	if one == nil {
		return nil
	}
	return func(p unsafe.Pointer, c checking) *Error {
		s := (*slice)(p)
		if s.len > MaxElements {
			return tooMany(s.len)
		}
		for i := range s.len {
			if err := one(s.at(i, size), c); err != nil {
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
