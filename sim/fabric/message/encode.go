// SPDX-License-Identifier: Apache-2.0

package message

import (
	"encoding/binary"
	"net/netip"
	"time"
)

// head is the length of a message's head: its length with the head (2 bytes) and its kind (1).
const head = 3

// Encode writes a message. A message that is longer than Most is given as it is; Decode refuses it.
func Encode(m Message) []byte {
	w := &writer{b: []byte{0, 0, m.kind()}}
	switch m := m.(type) {
	case Open:
		w.open(m)
	case Update:
		w.nlris(m.Withdrawn)
		w.nlris(m.Announced)
		if len(m.Announced) > 0 {
			w.attributes(m.Attributes)
		}
	case EndOfRIB:
		w.byte(byte(m.Family))
	case Arrived:
		w.u32(m.Count)
	case Notification:
		w.byte(m.Code)
		w.byte(m.Subcode)
		w.text(m.Text)
	}
	binary.BigEndian.PutUint16(w.b, uint16(min(len(w.b), 1<<16-1)))
	return w.b
}

// Size is how many bytes a path takes in an Update.
func (n NLRI) Size() int { return 4 + 2 + n.Prefix.Addr().BitLen()/8 }

// Room is how many bytes of paths fit into an Update with these attributes.
func (a Attributes) Room() int {
	w := &writer{}
	w.attributes(a)
	return Most - head - 4 - len(w.b)
}

type writer struct{ b []byte }

func (w *writer) byte(b byte)             { w.b = append(w.b, b) }
func (w *writer) u16(n uint16)            { w.b = binary.BigEndian.AppendUint16(w.b, n) }
func (w *writer) u32(n uint32)            { w.b = binary.BigEndian.AppendUint32(w.b, n) }
func (w *writer) seconds(d time.Duration) { w.u32(uint32(d / time.Second)) }

func (w *writer) bool(b bool) {
	if b {
		w.byte(1)
	} else {
		w.byte(0)
	}
}

func (w *writer) text(s string) {
	w.u16(uint16(len(s)))
	w.b = append(w.b, s...)
}

func (w *writer) address(a netip.Addr) {
	b := a.AsSlice()
	w.byte(byte(len(b)))
	w.b = append(w.b, b...)
}

func (w *writer) open(m Open) {
	w.u32(m.ASN)
	w.address(m.RouterID)
	w.seconds(m.Hold)
	w.byte(byte(len(m.Families)))
	for _, f := range m.Families {
		w.byte(byte(f))
	}
	w.bool(m.AddPath)
	w.byte(m.SendMax)
	w.text(m.Key)
	w.bool(m.Restart != nil)
	if r := m.Restart; r != nil {
		w.seconds(r.Time)
		w.bool(r.Forwarding)
		w.bool(r.Notification)
		w.seconds(r.Stale)
	}
}

func (w *writer) nlris(list []NLRI) {
	w.u16(uint16(len(list)))
	for _, n := range list {
		w.u32(n.PathID)
		w.byte(byte(n.Prefix.Bits()))
		w.address(n.Prefix.Addr())
	}
}

func (w *writer) attributes(a Attributes) {
	w.address(a.NextHop)
	w.byte(a.Origin)
	w.u16(uint16(len(a.ASPath)))
	for _, n := range a.ASPath {
		w.u32(n)
	}
	w.u32(a.MED)
	w.u32(a.LocalPref)
	w.u16(uint16(len(a.Communities)))
	for _, c := range a.Communities {
		w.u32(c)
	}
	w.u16(uint16(len(a.LargeCommunities)))
	for _, c := range a.LargeCommunities {
		w.u32(c[0])
		w.u32(c[1])
		w.u32(c[2])
	}
}
