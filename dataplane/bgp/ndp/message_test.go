// SPDX-License-Identifier: Apache-2.0

package ndp

import (
	"net"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// What we send is read as what it is, with and without a link-layer address, but not if it came over a router, was cut, or grew a
// tail that is no option.
func TestPropertyMessagesCountOnlyWholeAndFromTheLink(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		from := net.HardwareAddr(rapid.SampledFrom([][]byte{nil, {2, 0, 0, 0, 0, 1}, make([]byte, 20)}).Draw(t, "from"))
		b, kind := solicitation(from), byte(typeSolicitation)
		fixed := 8
		if rapid.Bool().Draw(t, "advertisement") {
			b, kind, fixed = advertisement(from), typeAdvertisement, 16
		}
		if got := read(b, 255); got != kind {
			t.Fatalf("%x is of kind %d, want %d", b, got, kind)
		}
		if hops := rapid.IntRange(0, 254).Draw(t, "hops"); read(b, hops) != 0 {
			t.Fatalf("counts with hop limit %d", hops)
		}
		cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
		if got := read(b[:cut], 255); got != 0 && cut != fixed {
			t.Fatalf("counts cut to %d of %d bytes", cut, len(b))
		}
		tail := rapid.SliceOfN(rapid.Just(byte(0)), 1, 9).Draw(t, "tail")
		if read(append(b, tail...), 255) != 0 {
			t.Fatalf("counts with a tail of %d bytes", len(tail))
		}
	})
}

// No bytes from the network are too much.
func TestPropertyReadTakesAnything(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes")
		if len(b) > 0 {
			b[0] = rapid.SampledFrom([]byte{typeSolicitation, typeAdvertisement, 135, b[0]}).Draw(t, "type")
		}
		if kind := read(b, 255); kind != 0 && (kind != b[0] || kind == 135) {
			t.Fatalf("%x is of kind %d", b, kind)
		}
	})
}
