// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync"

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

// sumOf is hashOf a record that can be put.
func sumOf(r Record, buf []byte) (Digest, []byte) {
	sum, buf, err := hashOf(r, buf)
	if err != nil {
		panic(&unrecordable{r, err})
	}
	return sum, buf
}

// hashOf hashes a record's table and canonical bytes. It returns buf, grown, for the next call.
func hashOf(r Record, buf []byte) (Digest, []byte, error) {
	buf = append(append(buf[:0], r.Table()...), 0)
	buf, err := wire.Append(buf, r)
	if err != nil {
		return Digest{}, buf, err
	}
	h := sha256.Sum256(buf)
	return Digest{binary.BigEndian.Uint64(h[:8]), binary.BigEndian.Uint64(h[8:16])}, buf, nil
}

// recentDigests is how many entries back a checkpoint can still be compared: many minutes of an idle group,
// seconds of a busy one; what has left the window is not compared.
const recentDigests = 4096

// digests remembers the digest after each of the newest entries, and the newest checkpoint that says otherwise. It is this member's own memory, no part of
// the record. One goroutine applies, any number ask.
type digests struct {
	mu    sync.Mutex
	ring  [recentDigests]indexed
	wrong *Contradiction
}

type indexed struct {
	index  Index
	digest Digest
}

func (d *digests) remember(i Index, sum Digest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ring[uint64(i)%recentDigests] = indexed{i, sum}
}

// forget forgets those of another record.
func (d *digests) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ring, d.wrong = [recentDigests]indexed{}, nil
}

func (d *digests) at(i Index) (Digest, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.atLocked(i)
}

func (d *digests) atLocked(i Index) (Digest, bool) {
	slot := d.ring[uint64(i)%recentDigests]
	return slot.digest, slot.index == i && i != 0
}

// compare notes whether a checkpoint says otherwise. One of an index that is not remembered says nothing.
func (d *digests) compare(c *Checkpoint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	have, known := d.atLocked(c.Index)
	switch {
	case !known:
	case have == c.Digest:
		d.wrong = nil
	default:
		d.wrong = &Contradiction{Index: c.Index, Have: have, Told: c.Digest}
	}
}

// Contradiction is a checkpoint that says of an index what this copy of the record does not. Which of the two is wrong only the others can tell.
type Contradiction struct {
	Index      Index
	Have, Told Digest // of this copy, and of whoever proposed the checkpoint
}

// Contradicted gives what the newest checkpoint that could be compared says otherwise, nil for nothing. Whoever waits for TableGroup hears of it.
func (s *State) Contradicted() *Contradiction {
	s.recent.mu.Lock()
	defer s.recent.mu.Unlock()
	return s.recent.wrong
}

// DigestAt is that of this copy after an entry, if it is one of the newest.
func (s *State) DigestAt(i Index) (Digest, bool) { return s.recent.at(i) }
