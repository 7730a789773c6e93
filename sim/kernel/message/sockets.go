// SPDX-License-Identifier: Apache-2.0

package message

import "net/netip"

// Sockets reads all rows of the tables of programs at sockets, has programs work with them, or writes some rows: those of one of the
// other fields, one after the other.
type Sockets struct {
	Read   bool `json:",omitempty"`
	Attach bool `json:",omitempty"`
	// Cgroups asks for those of pods, by the UIDs that their kubelet knows them by. Spares has programs leave the sockets of Spare alone, and of no others.
	Cgroups []string `json:",omitempty"`
	Spares  bool     `json:",omitempty"`
	Spare   []Own    `json:",omitempty"`

	PutSlots    []Slot       `json:",omitempty"`
	PutWindows  []Place      `json:",omitempty"`
	PutNodes    []netip.Addr `json:",omitempty"`
	PutPlaces   []PlaceRow   `json:",omitempty"`
	DropPlaces  []Place      `json:",omitempty"`
	DropNodes   []netip.Addr `json:",omitempty"`
	DropWindows []Place      `json:",omitempty"`
	DropSlots   []SlotKey    `json:",omitempty"`
}

// Adds is how many rows it writes.
func (s *Sockets) Adds() int {
	return len(s.PutSlots) + len(s.PutWindows) + len(s.PutNodes) + len(s.PutPlaces)
}

// Own is that a rule leaves the sockets of a cgroup alone.
type Own struct {
	Cgroup uint64
	Rule   uint32
}

// Place is what programs dial. Protocol is IANA's number.
type Place struct {
	Address  netip.Addr
	Port     uint16
	Protocol uint8
}

// PlaceRow says what is done with calls to a place: First, or Then where that does not count now.
type PlaceRow struct {
	At          Place
	First, Then Choice
}

// Choice is one thing to do with a call.
type Choice struct {
	Rule     uint32 `json:",omitempty"`
	Set      uint32 `json:",omitempty"` // of slots
	Count    uint32 `json:",omitempty"` // of those that are drawn from
	Affinity uint32 `json:",omitempty"`
	Verdict  uint8  `json:",omitempty"` // 0 pass, 1 use a slot, 2 refuse, 3 unreachable
	Kind     uint8  `json:",omitempty"`
	Mode     uint8  `json:",omitempty"`
	Limited  bool   `json:",omitempty"` // so many a second
	Spares   bool   `json:",omitempty"` // not for its own backends
}

// SlotKey is where a backend stands in a set: by its turn, or by its ID with the highest bit.
type SlotKey struct{ Set, Index uint32 }

// Member marks keys by ID.
const Member = 1 << 31

// Slot is a backend.
type Slot struct {
	Key SlotKey
	At  netip.AddrPort
	ID  uint32
}

// Room is how many rows tables have room for.
type Room struct{ Places, Slots, Nodes int }

// RoomFor is the room of tables for so many places, 0 for the usual one: more than any world asks for.
func RoomFor(places int) Room {
	if places == 0 {
		return Room{Places: 4096, Slots: 16384, Nodes: 1024}
	}
	return Room{Places: places, Slots: 3 * places, Nodes: 1024}
}
