// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"encoding/hex"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"fairlead.io/fairlead/fsm/wire"
)

// The bytes of some values, worked out by hand from the protobuf specification.
func TestAppendWritesProtobuf(t *testing.T) {
	for name, c := range map[string]struct {
		value sample
		want  string
	}{
		"nothing":            {sample{}, ""},
		"ordered-by-number":  {sample{Name: "ab", On: true}, "08 01  12 02 61 62"},
		"zigzag":             {sample{Int: -1, Int64: 1, Wait: 150}, "18 01  38 02  68 ac02"},
		"number-of-two":      {sample{Uint16: 300}, "50 ac02"},
		"packed":             {sample{Uints: []uint64{3, 270, 86942}}, "ca01 06 03 8e02 9ea705"},
		"packed-zeroes":      {sample{Flags: []bool{false}, Ints: []int32{0, 0}}, "ba01 01 00  c201 02 00 00"},
		"repeated-zeroes":    {sample{Names: []string{"", "a", ""}}, "828001 00  828001 01 61  828001 00"},
		"address-4":          {sample{Addr: netip.MustParseAddr("192.0.2.1")}, "8201 04 c0000201"},
		"address-mapped":     {sample{Addr: netip.MustParseAddr("::ffff:192.0.2.1")}, "8201 10 00000000000000000000ffffc0000201"},
		"address-zone":       {sample{Addr: netip.MustParseAddr("fe80::1%e0")}, "8201 12 fe800000000000000000000000000001 6530"},
		"prefix":             {sample{Prefix: netip.MustParsePrefix("192.0.2.1/24")}, "9201 05 c0000201 18"},
		"prefix-all":         {sample{Prefix: netip.MustParsePrefix("0.0.0.0/0")}, "9201 05 00000000 00"},
		"struct-is-absent":   {sample{Inner: inner{}}, ""},
		"struct":             {sample{Inner: inner{Port: 1}}, "9a01 02 08 01"},
		"inlined":            {sample{Alike: &alike{Text: "a", One: inner{Port: 1}}, Rare: &rare{Perhaps: &inner{}}, On: true}, "08 01  b201 01 61  9202 00  fa7f 02 08 01"},
		"inlined-nothing":    {sample{Alike: &alike{}, On: true}, "08 01"},
		"pointer-is-present": {sample{Maybe: &inner{}}, "a201 00"},
		"array-of-zeroes":    {sample{IDs: []groupID{{}}}, "e201 00"},
		"array":              {sample{ID: groupID{15: 1}}, "7a 10 00000000000000000000000000000001"},
		"largest-number":     {sample{Last: 5}, "f8ffffff0f 05"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := wire.Append(nil, &c.value)
			if err != nil {
				t.Fatal(err)
			}
			if want := unhex(t, c.want); string(got) != string(want) {
				t.Fatalf("got %x, want %x", got, want)
			}
		})
	}
}

// Everything that protobuf would let pass and that would be a second encoding of some value is refused.
func TestDecodeRefuses(t *testing.T) {
	for name, c := range map[string]struct{ data, path, why string }{
		"unknown-field":          {"d802 01", "sample", "unknown field 43"},
		"unknown-field-inside":   {"9a01 02 18 01", "sample.Inner", "unknown field 3"},
		"field-number-zero":      {"00", "sample", "unknown field 0"},
		"field-number-too-large": {"ffffffffffffffffff01 01", "sample", "unknown field 2305843009213693951"},
		"wrong-wire-type":        {"0a 01 01", "sample.On", "wire type 2, want 0"},
		"fixed32":                {"4d 01000000", "sample.Uint8", "wire type 5, want 0"},
		"group":                  {"9b01 9c01", "sample.Inner", "wire type 3, want 2"},
		"unpacked":               {"c001 02", "sample.Ints", "wire type 0, want 2"},
		"twice":                  {"08 01 08 01", "sample.On", "comes twice"},
		"packed-twice":           {"c201 01 02 c201 01 02", "sample.Ints", "comes twice"},
		"repeated-apart":         {"828001 00 08 01", "sample.On", "comes after a field of a higher number"},
		"out-of-order":           {"12 01 61 08 01", "sample.On", "comes after a field of a higher number"},
		"long-tag":               {"8800 01", "sample", "a number of 2 bytes that needs fewer"},
		"long-number":            {"40 8100", "sample.Uint", "a number of 2 bytes that needs fewer"},
		"long-length":            {"12 8100 61", "sample.Name", "a number of 2 bytes that needs fewer"},
		"number-too-large":       {"40 ffffffffffffffffff02", "sample.Uint", "a number of more than 64 bits"},
		"zero-number":            {"40 00", "sample.Uint", "a zero value is written"},
		"zero-string":            {"12 00", "sample.Name", "a zero value is written"},
		"zero-struct":            {"9a01 00", "sample.Inner", "a zero value is written"},
		"zero-address":           {"8201 00", "sample.Addr", "a zero value is written"},
		"zero-inside-pointer":    {"a201 02 08 00", "sample.Maybe.Port", "a zero value is written"},
		"zero-array":             {"7a 10 00000000000000000000000000000000", "sample.ID", "a zero value is written"},
		"empty-packed":           {"c201 00", "sample.Ints", "an empty list is written"},
		"cut-in-tag":             {"08 01 82", "sample", "a number is cut off"},
		"cut-in-number":          {"40 80", "sample.Uint", "a number is cut off"},
		"cut-before-value":       {"40", "sample.Uint", "a number is cut off"},
		"cut-in-packed":          {"c201 02 02 80", "sample.Ints[1]", "a number is cut off"},
		"length-too-long":        {"12 05 61", "sample.Name", "length 5, but 1 bytes are left"},
		"length-huge":            {"12 ffffffffffffffffff01 61", "sample.Name", "length 18446744073709551615, but 1 bytes are left"},
		"element-too-long":       {"828001 01 61 828001 05 61", "sample.Names[1]", "length 5, but 1 bytes are left"},
		"inner-leaves-outer":     {"9a01 03 12 05 61", "sample.Inner.Label", "length 5, but 1 bytes are left"},
		"overflow-uint8":         {"48 8002", "sample.Uint8", "256 overflows uint8"},
		"overflow-int16":         {"28 808004", "sample.Int16", "32768 overflows int16"},
		"overflow-named":         {"f8ffffff0f 8002", "sample.Last", "256 overflows wire_test.state"},
		"not-a-bool":             {"08 02", "sample.On", "2 is not a bool"},
		"not-utf8":               {"12 01 ff", "sample.Name", "not UTF-8"},
		"address-of-5":           {"8201 05 c000020101", "sample.Addr", "5 bytes are no address"},
		"prefix-too-long":        {"9201 05 c0000201 21", "sample.Prefix", "5 bytes with length 33 are no prefix"},
		"prefix-with-zone":       {"9201 12 fe800000000000000000000000000001 65 18", "sample.Prefix", "18 bytes with length 24 are no prefix"},
		"array-too-short":        {"7a 01 01", "sample.ID", "1 bytes, want 16"},
		"array-too-short-in-row": {"e201 00 e201 01 01", "sample.IDs[1]", "1 bytes, want 16"},
		"deep-path":              {"aa01 06 fa01 03 10 00 00", "sample.Self.Inners[0].Label", "wire type 0, want 2"},
	} {
		t.Run(name, func(t *testing.T) {
			v := sample{Name: "left over"}
			err := wire.Decode(unhex(t, c.data), &v)
			wantError(t, err, c.path, c.why)
			if got, want := errors.Is(err, wire.ErrUnknownField), strings.HasPrefix(c.why, "unknown field"); got != want {
				t.Errorf("is ErrUnknownField: %v, want %v", got, want)
			}
			if !reflect.ValueOf(v).IsZero() {
				t.Errorf("left behind: %+v", v)
			}
		})
	}
}

// What could not be read back is not written.
func TestAppendRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		value     any
		path, why string
	}{
		"not-utf8":       {&sample{Name: "\xff"}, "sample.Name", "not UTF-8"},
		"nil-element":    {&sample{Pointers: []*inner{{}, nil}}, "sample.Pointers[1]", "nil"},
		"invalid-prefix": {&sample{Prefix: netip.PrefixFrom(netip.IPv4Unspecified(), 99)}, "sample.Prefix", "invalid prefix"},
		"inside":         {&sample{Inners: []inner{{Label: "\xff"}}}, "sample.Inners[0].Label", "not UTF-8"},
		"nil":            {nil, "nil", "not a struct"},
		"nil-pointer":    {(*sample)(nil), "sample", "not for a nil *wire_test.sample"},
		"no-struct":      {5, "int", "not a struct"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := wire.Append([]byte("before"), c.value)
			wantError(t, err, c.path, c.why)
			if string(out) != "before" {
				t.Errorf("returned %q", out)
			}
		})
	}
}

func TestDecodeRefusesDestinations(t *testing.T) {
	for name, c := range map[string]struct {
		to        any
		path, why string
	}{
		"nil":         {nil, "nil", "not a pointer to a struct"},
		"value":       {sample{}, "a wire_test.sample", "not a pointer to a struct"},
		"nil-pointer": {(*sample)(nil), "sample", "not for a nil *wire_test.sample"},
	} {
		t.Run(name, func(t *testing.T) { wantError(t, wire.Decode(nil, c.to), c.path, c.why) })
	}
	compiled, err := wire.Compile(reflect.TypeFor[inner]())
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, compiled.Decode(nil, &sample{}), "inner", "not for a *wire_test.sample")
}

type list struct {
	Next  *list   `pb:"1"`
	Nexts []*list `pb:"2"`
	Flags []bool  `pb:"3"`
	Raw   []byte  `pb:"4"`
	Rest  []empty `pb:"5"`
}

// Limits hold for both directions: at the limit a value comes back, one beyond it is refused.
func TestLimits(t *testing.T) {
	nested := func(depth int) *list {
		v := &list{}
		for range depth - 1 {
			v = &list{Next: v}
		}
		return v
	}
	roundTrip := func(v *list) {
		t.Helper()
		data, err := wire.Append(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		if err := wire.Decode(data, &list{}); err != nil {
			t.Fatal(err)
		}
	}
	roundTrip(nested(wire.MaxDepth))
	roundTrip(&list{Flags: make([]bool, wire.MaxElements)})
	roundTrip(&list{Rest: make([]empty, wire.MaxElements)})

	_, err := wire.Append(nil, nested(wire.MaxDepth+1))
	wantError(t, err, "list"+strings.Repeat(".Next", wire.MaxDepth), "more than 16 structs within each other")
	cycle := &list{}
	cycle.Nexts = []*list{cycle}
	_, err = wire.Append(nil, cycle)
	wantError(t, err, "list"+strings.Repeat(".Nexts[0]", wire.MaxDepth), "more than 16 structs within each other")
	_, err = wire.Append(nil, &list{Flags: make([]bool, wire.MaxElements+1)})
	wantError(t, err, "list.Flags", "1048577 elements, limit 1048576")
	_, err = wire.Append(nil, &list{Rest: make([]empty, wire.MaxElements+1)})
	wantError(t, err, "list.Rest", "1048577 elements, limit 1048576")
	_, err = wire.Append(nil, &list{Raw: make([]byte, wire.MaxSize)})
	wantError(t, err, "list", "67108869 bytes, limit 67108864")

	var v list
	deep := []byte{}
	for range wire.MaxDepth {
		deep = append([]byte{0x0a, byte(len(deep))}, deep...)
	}
	wantError(t, wire.Decode(deep, &v), "list"+strings.Repeat(".Next", wire.MaxDepth), "more than 16 structs within each other")
	flags := append([]byte{0x1a, 0x81, 0x80, 0x40}, make([]byte, wire.MaxElements+1)...)
	wantError(t, wire.Decode(flags, &v), "list.Flags", "1048577 elements, limit 1048576")
	rest := []byte(strings.Repeat("\x2a\x00", wire.MaxElements+1))
	wantError(t, wire.Decode(rest, &v), "list.Rest", "1048577 elements, limit 1048576")
	wantError(t, wire.Decode(make([]byte, wire.MaxSize+1), &v), "list", "67108865 bytes, limit 67108864")
}

func wantError(t *testing.T, err error, path, why string) {
	t.Helper()
	var got *wire.Error
	if !errors.As(err, &got) {
		t.Fatalf("got %v, want an *Error", err)
	}
	if got.Path != path || got.Why != why {
		t.Fatalf("got  %q: %q\nwant %q: %q", got.Path, got.Why, path, why)
	}
	if want := "wire: " + path + ": " + why; got.Error() != want {
		t.Fatalf("text %q, want %q", got.Error(), want)
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
