// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm/wire"
)

// What has no canonical form, or would be lost without a word, is refused before a byte is written.
func TestCompileRefuses(t *testing.T) {
	type untagged struct {
		A string `pb:"1"`
		B string
	}
	type outer struct {
		List []untagged `pb:"1"`
	}
	for name, c := range map[string]struct {
		value     any
		path, why string
	}{
		"exported-untagged": {untagged{}, "untagged.B", "no pb tag (`pb:\"-\"` leaves the field out)"},
		"nested":            {outer{}, "outer.List[].B", "no pb tag (`pb:\"-\"` leaves the field out)"},
		"unexported-tagged": {struct {
			a int `pb:"1"`
		}{}, "struct.a", "tagged but not exported"},
		"number-twice": {struct {
			A, B int `pb:"7"`
		}{}, "struct.B", "number 7 is also that of A"},
		"number-zero": {struct {
			A int `pb:"0"`
		}{}, "struct.A", "number 0 is outside protobuf's range"},
		"number-too-large": {struct {
			A int `pb:"536870912"`
		}{}, "struct.A", "number 536870912 is outside protobuf's range"},
		"number-reserved": {struct {
			A int `pb:"19000"`
		}{}, "struct.A", "number 19000 is outside protobuf's range"},
		"number-padded": {struct {
			A int `pb:"01"`
		}{}, "struct.A", `pb tag "01" is not a number`},
		"tag-no-number": {struct {
			A int `pb:"varint,1"`
		}{}, "struct.A", `pb tag "varint,1" is not a number`},
		"map": {struct {
			A map[string]string `pb:"1"`
		}{}, "struct.A", "map[string]string has no order: use a sorted slice"},
		"float": {struct {
			A []float64 `pb:"1"`
		}{}, "struct.A[]", "float64 has several zeroes and no NaN equals itself: use an integer with a unit"},
		"interface": {struct {
			A any `pb:"1"`
		}{}, "struct.A", "interface {} has no encoding"},
		"uintptr": {struct {
			A uintptr `pb:"1"`
		}{}, "struct.A", "uintptr has no encoding"},
		"array-of-numbers": {struct {
			A [2]int `pb:"1"`
		}{}, "struct.A", "[2]int: only arrays of bytes have an encoding"},
		"slice-of-slices": {struct {
			A [][]int `pb:"1"`
		}{}, "struct.A[]", "[]int: a slice of slices has no encoding"},
		"pointer-to-number": {struct {
			A *int `pb:"1"`
		}{}, "struct.A", "*int: only structs may be pointed to"},
		"pointer-to-address": {struct {
			A []*netip.Addr `pb:"1"`
		}{}, "struct.A[]", "*netip.Addr: only structs may be pointed to"},
		"pointer-to-pointer": {struct {
			A **inner `pb:"1"`
		}{}, "struct.A", "**wire_test.inner: only structs may be pointed to"},
		"opaque": {struct {
			A time.Time `pb:"1"`
		}{}, "struct.A", "time.Time has no tagged field: all of it would be lost"},
		"inlined-value": {struct {
			A inner `pb:"inline"`
		}{}, "struct.A", "wire_test.inner is inlined: only exported pointers to structs can be"},
		"inlined-twice": {struct {
			A *struct {
				B *inner `pb:"inline"`
			} `pb:"inline"`
		}{}, "struct.A.B", "inlined in what is inlined"},
		"inlined-number-twice": {struct {
			A int    `pb:"2"`
			B *inner `pb:"inline"`
		}{}, "struct.Label", "number 2 is also that of A"},
		"inlined-opaque": {struct {
			A *time.Time `pb:"inline"`
		}{}, "struct.A", "time.Time has no tagged field: all of it would be lost"},
		"inlined-untagged": {struct {
			A *untagged `pb:"inline"`
		}{}, "struct.A.B", "no pb tag (`pb:\"-\"` leaves the field out)"},
		"not-a-struct": {netip.Addr{}, "netip.Addr", "not a struct"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := wire.Compile(reflect.TypeOf(c.value))
			wantError(t, err, c.path, c.why)
			_, err = wire.Append(nil, c.value)
			wantError(t, err, c.path, c.why)
			err = wire.Decode(nil, reflect.New(reflect.TypeOf(c.value)).Interface())
			wantError(t, err, c.path, c.why)
		})
	}
}
