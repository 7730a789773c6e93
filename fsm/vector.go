// SPDX-License-Identifier: Apache-2.0

package fsm

import "slices"

// A vector holds records by slot number. It is copy-on-write in pages of 16 records: a copy of it costs the same
// whatever its size, but for a pointer in 1,024 records at the first write after it, and each side may then be
// written to without the other noticing.
//
// Replacing a record, which is nearly all that a busy log does, compares no key here and copies at most one
// page and one block.
type vector struct {
	blocks []*block
	shared bool // blocks is also another vector's
	// edition tells what this vector alone refers to, and may therefore write to, from what it shares.
	edition uint64
}

const (
	pageBits  = 4
	blockBits = 6
	pageSize  = 1 << pageBits
	blockSize = 1 << blockBits
)

type block struct {
	edition uint64
	pages   [blockSize]*page
}

type page struct {
	edition uint64
	records [pageSize]Record
}

// at gives the record of a slot that was set.
func (v *vector) at(slot uint32) Record {
	return v.blocks[slot>>(pageBits+blockBits)].pages[slot>>pageBits&(blockSize-1)].records[slot&(pageSize-1)]
}

// set puts a record, or nil, at a slot: one in use or the next after all that were.
func (v *vector) set(slot uint32, r Record) {
	*v.own(slot) = r
}

// own gives a slot's place on a page that no other vector refers to.
func (v *vector) own(slot uint32) *Record {
	if v.shared {
		v.blocks, v.shared = slices.Clone(v.blocks), false
	}
	i := int(slot >> (pageBits + blockBits))
	if i == len(v.blocks) {
		v.blocks = append(v.blocks, &block{edition: v.edition})
	}
	b := v.blocks[i]
	if b.edition != v.edition {
		b = &block{edition: v.edition, pages: b.pages}
		v.blocks[i] = b
	}
	at := &b.pages[slot>>pageBits&(blockSize-1)]
	switch {
	case *at == nil:
		*at = &page{edition: v.edition}
	case (*at).edition != v.edition:
		*at = &page{edition: v.edition, records: (*at).records}
	}
	return &(*at).records[slot&(pageSize-1)]
}

// frozen is v as it is now; v itself may be written to further.
func (v *vector) frozen() vector {
	v.edition++
	v.shared = true
	return vector{blocks: v.blocks, shared: true}
}
