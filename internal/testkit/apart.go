// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"net/netip"
	"reflect"
	"testing"
)

// TellsApart fails unless compare tells a value from each that differs from it in one field alone, one before the other and the other behind
// the one. A sort by such an order comes out the same whatever the sort does, and however what it sorts was listed. But for fields that it
// cannot set, which are those of no exported name, it looks at all: at those within others, too.
func TellsApart[T comparable](t testing.TB, compare func(a, b T) int) {
	t.Helper()
	var none T
	leaves := 0
	eachLeaf(reflect.TypeFor[T](), nil, func(at []int, name string) {
		leaves++
		set := none
		v := reflect.ValueOf(&set).Elem()
		for _, i := range at {
			v = v.Field(i)
		}
		if !setLeaf(v) {
			t.Fatalf("%T%s is of a kind that nobody sets here: %s", set, name, v.Type())
		}
		if one, other := compare(none, set), compare(set, none); one == 0 || one > 0 == (other > 0) || compare(set, set) != 0 {
			t.Errorf("%T%s: what differs in it alone compares as %d, and the other way round as %d", set, name, one, other)
		}
	})
	if leaves == 0 {
		t.Fatalf("%T has no field that could differ", none)
	}
}

// eachLeaf visits what in a type has no fields of its own, with where it is.
func eachLeaf(of reflect.Type, at []int, visit func(at []int, name string)) {
	if of.Kind() != reflect.Struct || isLeaf(of) {
		visit(at, "")
		return
	}
	for i := range of.NumField() {
		if f := of.Field(i); f.IsExported() {
			eachLeaf(f.Type, append(at[:len(at):len(at)], i), func(at []int, name string) { visit(at, "."+f.Name+name) })
		}
	}
}

func isLeaf(of reflect.Type) bool {
	return of == reflect.TypeFor[netip.Addr]() || of == reflect.TypeFor[netip.Prefix]()
}

// setLeaf makes of the zero value another one.
func setLeaf(v reflect.Value) bool {
	switch {
	case v.Type() == reflect.TypeFor[netip.Addr]():
		v.Set(reflect.ValueOf(netip.MustParseAddr("192.0.2.1")))
	case v.Type() == reflect.TypeFor[netip.Prefix]():
		v.Set(reflect.ValueOf(netip.MustParsePrefix("192.0.2.0/24")))
	case v.Kind() == reflect.String:
		v.SetString("x")
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(1)
	case v.CanUint():
		v.SetUint(1)
	default:
		return false
	}
	return true
}
