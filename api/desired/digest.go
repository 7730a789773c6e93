// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// DigestSize is the length of a Digest, bytes.
const DigestSize = 16

// Digest is the sum modulo 2^128 of the hashes of all items, so that one item more or less costs one hash
// whatever the number of the others. The zero Digest is that of no items.
type Digest [DigestSize]byte

// DigestOf is the digest of one item alone: who keeps it can tell whether the item changes, and take it out, without its value.
func DigestOf(key string, value []byte) Digest {
	buf := make([]byte, 0, 128)
	buf = binary.BigEndian.AppendUint64(buf, uint64(len(key)))
	buf = append(append(buf, key...), value...)
	sum := sha256.Sum256(buf)
	return Digest(sum[:DigestSize])
}

// Plus is the digest with one more item.
func (d Digest) Plus(key string, value []byte) Digest { return d.With(DigestOf(key, value)) }

// Minus is the digest without an item that it has.
func (d Digest) Minus(key string, value []byte) Digest { return d.Without(DigestOf(key, value)) }

// With is the digest with the items of another one, too.
func (d Digest) With(o Digest) Digest {
	hi, lo := d.words()
	moreHi, moreLo := o.words()
	lo, carry := bits.Add64(lo, moreLo, 0)
	hi, _ = bits.Add64(hi, moreHi, carry)
	return digestOf(hi, lo)
}

// Without is the digest without the items of another one, all of which it has.
func (d Digest) Without(o Digest) Digest {
	hi, lo := d.words()
	lessHi, lessLo := o.words()
	lo, borrow := bits.Sub64(lo, lessLo, 0)
	hi, _ = bits.Sub64(hi, lessHi, borrow)
	return digestOf(hi, lo)
}

func (d Digest) words() (hi, lo uint64) {
	return binary.BigEndian.Uint64(d[:8]), binary.BigEndian.Uint64(d[8:])
}

func digestOf(hi, lo uint64) (d Digest) {
	binary.BigEndian.PutUint64(d[:8], hi)
	binary.BigEndian.PutUint64(d[8:], lo)
	return d
}
