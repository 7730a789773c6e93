// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"net/netip"
	"strings"
	"testing"

	"fairlead.io/fairlead/fsm/wire"
)

type bounded struct {
	Boot   string     `pb:"1" max:"8"`
	Names  []string   `pb:"2" max:"4"`
	Spec   []byte     `pb:"3" max:"4"`
	At     netip.Addr `pb:"4"`
	Any    string     `pb:"5"`
	Inner  *bounded   `pb:"6"`
	Inners []bounded  `pb:"7"`
	Count  uint64     `pb:"8"`
}

// What may be encoded for the first time is bounded by its fields; what is encoded already stays readable, whatever its bounds are by now.
func TestCheckHoldsBoundsThatDecodeDoesNot(t *testing.T) {
	long := strings.Repeat("x", wire.MaxText+1)
	zone := netip.MustParseAddr("fe80::1").WithZone
	for name, c := range map[string]struct {
		value     bounded
		path, why string
		decodes   bool
	}{
		"fits":           {bounded{Boot: "12345678", Names: []string{"1234"}, Spec: []byte("1234"), At: zone("eth0"), Any: long[1:]}, "", "", true},
		"text":           {bounded{Boot: "123456789"}, "bounded.Boot", "9 bytes, at most 8 are allowed", true},
		"each-text":      {bounded{Names: []string{"", "12345"}}, "bounded.Names[1]", "5 bytes, at most 4 are allowed", true},
		"bytes":          {bounded{Spec: []byte("12345")}, "bounded.Spec", "5 bytes, at most 4 are allowed", true},
		"no-bound":       {bounded{Any: long}, "bounded.Any", "65537 bytes, at most 65536 are allowed", true},
		"not-UTF-8":      {bounded{Any: "k\xff"}, "bounded.Any", "not UTF-8", false},
		"zone-not-UTF-8": {bounded{At: zone("\xff")}, "bounded.At", "the zone of an address: not UTF-8", true},
		"long-zone":      {bounded{At: zone(long[:65])}, "bounded.At", "the zone of an address: 65 bytes, at most 64 are allowed", true},
		"inside":         {bounded{Inner: &bounded{Inners: []bounded{{}, {Boot: "123456789"}}}}, "bounded.Inner.Inners[1].Boot", "9 bytes, at most 8 are allowed", true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := wire.Check(&c.value); c.why == "" && err != nil {
				t.Fatal(err)
			} else if c.why != "" {
				wantError(t, err, c.path, c.why)
				wantError(t, wire.Check(c.value), c.path, c.why)
			}
			data, err := wire.Append(nil, &c.value)
			if err == nil {
				err = wire.Decode(data, &bounded{})
			}
			if (err == nil) != c.decodes {
				t.Fatalf("encode and decode: %v", err)
			}
		})
	}
	wantError(t, wire.Check(nil), "nil", "not a struct")
	wantError(t, wire.Check((*bounded)(nil)), "bounded", "not for a nil *wire_test.bounded")
}

// A bound on what has no length, and one that is no number of bytes, are refused before anything is checked.
func TestCompileRefusesBounds(t *testing.T) {
	for name, c := range map[string]struct {
		value     any
		path, why string
	}{
		"of-a-number": {struct {
			A int `pb:"1" max:"4"`
		}{}, "struct.A", "int is no text: its length has no bound of its own"},
		"of-structs": {struct {
			A []bounded `pb:"1" max:"4"`
		}{}, "struct.A", "[]wire_test.bounded is no text: its length has no bound of its own"},
		"none": {struct {
			A string `pb:"1" max:"0"`
		}{}, "struct.A", `max tag "0" is no number of bytes`},
		"no-number": {struct {
			A string `pb:"1" max:"64k"`
		}{}, "struct.A", `max tag "64k" is no number of bytes`},
	} {
		t.Run(name, func(t *testing.T) { wantError(t, wire.Check(c.value), c.path, c.why) })
	}
}
