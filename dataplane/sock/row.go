// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"maps"
	"net/netip"
	"slices"
)

// Choice is one thing to do with a call, as a row of the table of places says it.
type Choice struct {
	Rule     uint32
	Set      uint32 // whose slots to draw from
	Count    uint32 // of slots
	Affinity uint32 // seconds; 0: none
	Verdict  Verdict
	Kind     Kind
	Mode     Mode
	Limited  bool // so many a second; beyond, the other choice counts
	Spares   bool // not for sockets of the rule's own backends: the other choice counts
}

// Row is what is done with calls to a place: First, or Then where First may not be done now.
type Row struct{ First, Then Choice }

// SlotKey is where a backend stands in a set: by its turn, or, with the bit member, by its identity.
type SlotKey struct{ Set, Index uint32 }

// member marks keys by identity. They are there where a backend is remembered, to find out whether it is one still.
const member = 1 << 31

// Slot is a backend.
type Slot struct {
	At netip.AddrPort
	ID uint32 // of the backend within its set, the same in every set that follows; below member
}

// Rows is what the kernel's tables hold. Without a map of slots nobody keeps account of those.
type Rows struct {
	Places  map[Place]Row
	Slots   map[SlotKey]Slot
	Nodes   map[netip.Addr]bool // addresses at which node ports are served
	Windows map[Place]bool      // where calls are counted that are limited
}

// NewRows are empty tables.
func NewRows() Rows {
	return Rows{map[Place]Row{}, map[SlotKey]Slot{}, map[netip.Addr]bool{}, map[Place]bool{}}
}

// Change leads from rows to others. It is carried out in the order of its fields, so that no row names what is not there.
type Change struct {
	PutSlots    map[SlotKey]Slot
	PutWindows  []Place
	PutNodes    []netip.Addr
	PutPlaces   map[Place]Row
	DropPlaces  []Place
	DropNodes   []netip.Addr
	DropWindows []Place
	DropSlots   []SlotKey
}

func newChange() Change {
	return Change{PutSlots: map[SlotKey]Slot{}, PutPlaces: map[Place]Row{}}
}

// Empty is whether nothing is to do.
func (c Change) Empty() bool { return c.Writes() == 0 }

// Writes is how many rows are written or removed.
func (c Change) Writes() int {
	return len(c.PutSlots) + len(c.PutWindows) + len(c.PutNodes) + len(c.PutPlaces) +
		len(c.DropPlaces) + len(c.DropNodes) + len(c.DropWindows) + len(c.DropSlots)
}

// sort puts lists of a change in order, so that equal changes are carried out alike.
func (c *Change) sort() {
	slices.SortFunc(c.PutWindows, Place.compare)
	slices.SortFunc(c.DropPlaces, Place.compare)
	slices.SortFunc(c.DropWindows, Place.compare)
	slices.SortFunc(c.PutNodes, netip.Addr.Compare)
	slices.SortFunc(c.DropNodes, netip.Addr.Compare)
	slices.SortFunc(c.DropSlots, SlotKey.compare)
}

// Apply carries a change out on rows in memory.
func (r Rows) Apply(c Change) {
	if r.Slots != nil {
		maps.Copy(r.Slots, c.PutSlots)
	}
	for _, p := range c.PutWindows {
		r.Windows[p] = true
	}
	for _, a := range c.PutNodes {
		r.Nodes[a] = true
	}
	for p, row := range c.PutPlaces {
		r.Places[p] = row
	}
	for _, p := range c.DropPlaces {
		delete(r.Places, p)
	}
	for _, a := range c.DropNodes {
		delete(r.Nodes, a)
	}
	for _, p := range c.DropWindows {
		delete(r.Windows, p)
	}
	for _, k := range c.DropSlots {
		delete(r.Slots, k)
	}
}
