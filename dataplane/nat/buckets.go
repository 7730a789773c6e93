// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// A Service whose choice is consistent has its flows hashed into buckets, and each bucket leads to one endpoint. The
// buckets are dealt out as in Maglev (Eisenbud et al., NSDI 2016, section 3.4): nothing but the list of endpoints
// and their weights decides, so that all nodes agree without a word; shares of one weight differ by one bucket at most; and
// with an endpoint that comes or goes, few flows change theirs beside its own.

// bucketsPerEndpoint is how many buckets an endpoint has at least: shares differ by one in that many.
const bucketsPerEndpoint = 16

// leastBuckets serve up to 16 endpoints. Each further step is eight times as many, because a step has most flows of
// the Service change their endpoints.
const (
	leastBuckets = 256
	bucketsStep  = 8
)

// bucketsFor is how many buckets there are for some endpoints, a power of two.
func bucketsFor(endpoints int) int {
	n := leastBuckets
	for n < bucketsPerEndpoint*endpoints {
		n *= bucketsStep
	}
	return n
}

// dealBuckets gives each bucket the index of its endpoint, of at least one.
//
// Every endpoint has an order of its own in which it likes the buckets, and they take turns, by their weights, in taking
// the one that each likes most of those that are left.
func dealBuckets(t targets) []int {
	endpoints := t.at
	buckets := bucketsFor(len(endpoints))
	likes := make([]liking, len(endpoints))
	for i, e := range endpoints {
		likes[i] = likingOf(e, buckets)
	}
	owner := make([]int, buckets) // 1 + index, 0 for none yet
	for _, i := range t.turns(buckets) {
		for owner[likes[i].next] > 0 {
			likes[i].advance(buckets)
		}
		owner[likes[i].next] = i + 1
	}
	for b := range owner {
		owner[b]--
	}
	return owner
}

// liking is an order of all buckets: a bijection of numbers below a power of two, of a key of the endpoint's. Steps of
// one length, as in Maglev, would do less well: among so few buckets two endpoints often have the same one, walk side
// by side, and both change their way when a third takes a bucket from one of them.
type liking struct {
	key  [3]uint64
	at   uint64 // of the order
	next int    // the bucket there
}

func likingOf(e netip.AddrPort, buckets int) liking {
	sum := sha256.Sum256([]byte(e.String()))
	l := liking{at: ^uint64(0)}
	for i := range l.key {
		l.key[i] = binary.BigEndian.Uint64(sum[8*i:])
	}
	l.advance(buckets)
	return l
}

// advance goes on to the bucket that is liked next. Each of its steps can be undone: adding, multiplying by an odd
// number, and mixing the upper half of the bits into the lower.
func (l *liking) advance(buckets int) {
	l.at++
	width := bits.TrailingZeros(uint(buckets))
	x := l.at
	for _, key := range l.key {
		x = (x + key>>32) * (key | 1) & uint64(buckets-1)
		x ^= x >> (width / 2)
	}
	l.next = int(x)
}
