// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"encoding/binary"
	"maps"
	"slices"

	"pgregory.net/rapid"
)

// headerLength is that of a message (RFC 4271 §4.1).
const headerLength = 19

// Draw draws a message: one of Messages, or an UPDATE with attributes of all families, as it is or changed in a few places. Its header
// says how long it is, so that what follows is read as the next one; now and then it lies.
func Draw(t *rapid.T) []byte {
	kept := Messages()
	var m []byte
	if rapid.Bool().Draw(t, "kept") {
		m = kept[rapid.SampledFrom(slices.Sorted(maps.Keys(kept))).Draw(t, "message")]
	} else {
		m = drawUpdate(t)
	}
	body := slices.Clone(m[headerLength:])
	for range rapid.IntRange(0, 4).Draw(t, "changes") {
		body = change(t, body)
	}
	kind := m[headerLength-1]
	if rapid.IntRange(0, 19).Draw(t, "another type") == 0 {
		kind = rapid.Byte().Draw(t, "type")
	}
	out := message(kind, body[:min(len(body), 4096-headerLength)])
	if rapid.IntRange(0, 19).Draw(t, "lie") == 0 {
		binary.BigEndian.PutUint16(out[16:], rapid.Uint16().Draw(t, "length"))
	}
	return out
}

// change cuts, doubles, flips or inserts bytes.
func change(t *rapid.T, b []byte) []byte {
	at := rapid.IntRange(0, len(b)).Draw(t, "at")
	n := rapid.IntRange(0, len(b)-at).Draw(t, "of")
	switch rapid.SampledFrom([]string{"cut", "double", "set", "insert"}).Draw(t, "change") {
	case "cut":
		return slices.Delete(b, at, at+n)
	case "double":
		return slices.Insert(b, at, slices.Clone(b[at:at+n])...)
	case "set":
		if at < len(b) {
			b[at] = rapid.Byte().Draw(t, "byte")
		}
		return b
	}
	return slices.Insert(b, at, rapid.SliceOfN(rapid.Byte(), 0, 16).Draw(t, "bytes")...)
}

// drawUpdate draws an UPDATE whose attributes have lengths that are right, and types, families and values that are any.
func drawUpdate(t *rapid.T) []byte {
	attributes := [][]byte{attribute(0x40, 1, 0), attribute(0x40, 2, 2, 1, 0, 0, ASN>>8, ASN&0xff), attribute(0x40, 3, 192, 0, 2, 254)}
	for range rapid.IntRange(0, 4).Draw(t, "attributes") {
		attributes = append(attributes, drawAttribute(t))
	}
	attributes = rapid.Permutation(attributes).Draw(t, "order")
	return update(rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "withdrawn"), []byte{24, 203, 0, 113}, attributes...)
}

func drawAttribute(t *rapid.T) []byte {
	flags := rapid.SampledFrom([]byte{0x40, 0x80, 0xc0, 0xe0, 0x50, 0}).Draw(t, "flags")
	value := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "value")
	if rapid.Bool().Draw(t, "of a family") { // MP_REACH_NLRI or MP_UNREACH_NLRI (RFC 4760)
		afi := rapid.SampledFrom([]uint16{1, 2, 25, 0x4004, 0x400f}).Draw(t, "afi")
		safi := rapid.SampledFrom([]byte{1, 2, 4, 5, 65, 70, 71, 72, 73, 128, 129, 132, 133, 134, 241}).Draw(t, "safi")
		head := append(binary.BigEndian.AppendUint16(nil, afi), safi)
		if rapid.Bool().Draw(t, "announced") {
			hop := rapid.SampledFrom([]int{0, 4, 12, 16, 24, 32, 48}).Draw(t, "next hop")
			head = append(append(append(head, byte(hop)), make([]byte, hop)...), 0)
			return attribute(flags, 14, append(head, value...)...)
		}
		return attribute(flags, 15, append(head, value...)...)
	}
	return attribute(flags, rapid.SampledFrom([]byte{4, 5, 6, 7, 8, 9, 10, 16, 17, 18, 22, 23, 25, 26, 29, 32, 33, 40, 128, 255}).Draw(t, "type"), value...)
}
