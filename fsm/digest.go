// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"

	"fairlead.io/fairlead/fsm/wire"
)

// Digest is the sum, modulo 2^128, of the hashes of all records. Order does not matter and a record can be
// taken out again, so that applying a command costs the records that it touches and no more.
type Digest struct {
	Hi uint64 `pb:"1" json:"hi"`
	Lo uint64 `pb:"2" json:"lo"`
}

// String is 32 hexadecimal digits.
func (d Digest) String() string { return fmt.Sprintf("%016x%016x", d.Hi, d.Lo) }

func (d *Digest) add(o Digest) {
	var carry uint64
	d.Lo, carry = bits.Add64(d.Lo, o.Lo, 0)
	d.Hi, _ = bits.Add64(d.Hi, o.Hi, carry)
}

func (d *Digest) sub(o Digest) {
	var borrow uint64
	d.Lo, borrow = bits.Sub64(d.Lo, o.Lo, 0)
	d.Hi, _ = bits.Sub64(d.Hi, o.Hi, borrow)
}

// sumOf hashes a record's table and canonical bytes. It returns buf, grown, for the next call.
func sumOf(r Record, buf []byte) (Digest, []byte) {
	buf = append(append(buf[:0], r.Table()...), 0)
	buf, err := wire.Append(buf, r)
	if err != nil {
		panic(&unrecordable{r, err})
	}
	h := sha256.Sum256(buf)
	return Digest{binary.BigEndian.Uint64(h[:8]), binary.BigEndian.Uint64(h[8:16])}, buf
}

// recentDigests is how many entries back a checkpoint can still be compared: many minutes of an idle group,
// seconds of a busy one; what has left the window is not compared.
const recentDigests = 4096

// digests remembers the digest after each of the newest entries. It is this member's own memory, no part of
// the record.
type digests struct {
	ring [recentDigests]struct {
		index  Index
		digest Digest
	}
}

func (d *digests) remember(i Index, sum Digest) {
	slot := &d.ring[uint64(i)%recentDigests]
	slot.index, slot.digest = i, sum
}

func (d *digests) at(i Index) (Digest, bool) {
	slot := d.ring[uint64(i)%recentDigests]
	return slot.digest, slot.index == i && i != 0
}
