// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"net/netip"
	"reflect"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// Compile turns a struct type into its encoding.
//
// The error, an *Error whose path names the field, tells what the type may not contain: a field without pb
// tag that is exported (tag it `pb:"-"` to leave it out), a tagged one that is not, a number used twice or
// outside protobuf's range, a map, a float, or another type without a canonical form.
func Compile(t reflect.Type) (*Type, error) {
	if t.Kind() != reflect.Struct || isAddr(t) || isPrefix(t) {
		return nil, &Error{Path: t.String(), Why: "not a struct"}
	}
	c := compiler{messages: map[reflect.Type]*message{}}
	root, err := c.message(t)
	if err != nil {
		return nil, err.within(nameOf(t))
	}
	return &Type{root: root}, nil
}

// compiler remembers the structs of one compilation, so that a type may contain pointers to itself.
type compiler struct {
	messages map[reflect.Type]*message
}

func (c *compiler) message(t reflect.Type) (*message, *Error) {
	if m, ok := c.messages[t]; ok {
		return m, nil
	}
	m := &message{goType: t}
	c.messages[t] = m
	for i := range t.NumField() {
		if err := c.add(m, t.Field(i)); err != nil {
			return nil, err.within(t.Field(i).Name)
		}
	}
	if len(m.fields) == 0 && t.NumField() > 0 {
		return nil, fault("%s has no tagged field: all of it would be lost", t)
	}
	slices.SortStableFunc(m.fields, func(a, b field) int { return int(a.number - b.number) })
	for i := 1; i < len(m.fields); i++ {
		if m.fields[i].number == m.fields[i-1].number {
			return nil, fault("number %d is also that of %s", m.fields[i].number, m.fields[i-1].name).within(m.fields[i].name)
		}
	}
	return m, nil
}

// add adds a field of a struct to its message.
func (c *compiler) add(m *message, goField reflect.StructField) *Error {
	if goField.Tag.Get("pb") == "inline" {
		return c.inline(m, goField)
	}
	number, err := fieldNumber(goField)
	if err != nil || number == 0 {
		return err
	}
	most, err := mostBytes(goField)
	if err != nil {
		return err
	}
	f, err := c.field(goField.Type, number)
	f.name, f.offset, f.number, f.most = goField.Name, goField.Offset, number, most
	m.fields = append(m.fields, f)
	return err
}

// inline adds the fields of what a field points to.
func (c *compiler) inline(m *message, goField reflect.StructField) *Error {
	t := goField.Type
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct || isAddr(t.Elem()) || isPrefix(t.Elem()) || !goField.IsExported() {
		return fault("%s is inlined: only exported pointers to structs can be", t)
	}
	target := &message{goType: t.Elem()} // of its own, so that a struct within itself comes to an end
	inside := &inlined{goField.Offset, t.Elem()}
	for i := range t.Elem().NumField() {
		goField := t.Elem().Field(i)
		if goField.Tag.Get("pb") == "inline" {
			return fault("inlined in what is inlined").within(goField.Name)
		}
		if err := c.add(target, goField); err != nil {
			return err.within(goField.Name)
		}
	}
	if len(target.fields) == 0 {
		return fault("%s has no tagged field: all of it would be lost", t.Elem())
	}
	for i := range target.fields {
		target.fields[i].inside = inside
	}
	m.fields = append(m.fields, target.fields...)
	return nil
}

// fieldNumber returns the number in f's tag, or 0 when f is to be left out.
func fieldNumber(f reflect.StructField) (protowire.Number, *Error) {
	tag, tagged := f.Tag.Lookup("pb")
	switch {
	case !f.IsExported() && !tagged:
		return 0, nil
	case !f.IsExported():
		return 0, fault("tagged but not exported")
	case !tagged:
		return 0, fault("no pb tag (`pb:\"-\"` leaves the field out)")
	case tag == "-":
		return 0, nil
	}
	n, err := strconv.ParseUint(tag, 10, 32)
	if err != nil || strconv.FormatUint(n, 10) != tag {
		return 0, fault("pb tag %q is not a number", tag)
	}
	number := protowire.Number(n)
	if n > uint64(protowire.MaxValidNumber) || !number.IsValid() ||
		number >= protowire.FirstReservedNumber && number <= protowire.LastReservedNumber {
		return 0, fault("number %s is outside protobuf's range", tag)
	}
	return number, nil
}

// field picks how a field of type t is laid out: once, when there is something to say, or once per element.
func (c *compiler) field(t reflect.Type, number protowire.Number) (field, *Error) {
	if t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 {
		elem, err := c.element(t.Elem())
		switch {
		case err != nil:
			return field{}, err.within("[]")
		case elem.wire == protowire.VarintType:
			return packed(elem, t, number), nil
		}
		return repeated(elem, t, number), nil
	}
	elem, err := c.element(t)
	switch {
	case err != nil:
		return field{}, err
	case t.Kind() == reflect.Pointer:
		return optional(elem, number), nil
	}
	return singular(elem, number), nil
}

// element returns the coder of anything but a slice with tags of its own.
func (c *compiler) element(t reflect.Type) (*coder, *Error) {
	if t.Kind() != reflect.Pointer {
		return c.coder(t)
	}
	if target := t.Elem(); target.Kind() != reflect.Struct || isAddr(target) || isPrefix(target) {
		return nil, fault("%s: only structs may be pointed to", t)
	}
	m, err := c.message(t.Elem())
	return pointerCoder(m), err
}

func (c *compiler) coder(t reflect.Type) (*coder, *Error) {
	switch t.Kind() {
	case reflect.Bool:
		return boolCoder(t), nil
	case reflect.Int:
		return intCoder[int](t, "sint64"), nil
	case reflect.Int8:
		return intCoder[int8](t, "sint32"), nil
	case reflect.Int16:
		return intCoder[int16](t, "sint32"), nil
	case reflect.Int32:
		return intCoder[int32](t, "sint32"), nil
	case reflect.Int64:
		return intCoder[int64](t, "sint64"), nil
	case reflect.Uint:
		return uintCoder[uint](t, "uint64"), nil
	case reflect.Uint8:
		return uintCoder[uint8](t, "uint32"), nil
	case reflect.Uint16:
		return uintCoder[uint16](t, "uint32"), nil
	case reflect.Uint32:
		return uintCoder[uint32](t, "uint32"), nil
	case reflect.Uint64:
		return uintCoder[uint64](t, "uint64"), nil
	case reflect.String:
		return stringCoder(t), nil
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return bytesCoder(t), nil
		}
		return nil, fault("%s: a slice of slices has no encoding", t)
	case reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return arrayCoder(t), nil
		}
		return nil, fault("%s: only arrays of bytes have an encoding", t)
	case reflect.Struct:
		return c.structCoder(t)
	case reflect.Map:
		return nil, fault("%s has no order: use a sorted slice", t)
	case reflect.Float32, reflect.Float64:
		return nil, fault("%s has several zeroes and no NaN equals itself: use an integer with a unit", t)
	default:
		return nil, fault("%s has no encoding", t)
	}
}

func (c *compiler) structCoder(t reflect.Type) (*coder, *Error) {
	switch {
	case isAddr(t):
		return addrCoder(), nil
	case isPrefix(t):
		return prefixCoder(), nil
	}
	m, err := c.message(t)
	return structCoder(m), err
}

func isAddr(t reflect.Type) bool   { return sameLayout(t, reflect.TypeFor[netip.Addr]()) }
func isPrefix(t reflect.Type) bool { return sameLayout(t, reflect.TypeFor[netip.Prefix]()) }

// sameLayout tells whether t is want or a type defined by it, such as "type VIP netip.Addr".
func sameLayout(t, want reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.ConvertibleTo(want)
}
