// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
)

// A Service whose choice is consistent has its flows hashed into buckets, and each bucket leads to one endpoint. The
// buckets are dealt out as in Maglev (Eisenbud et al., NSDI 2016, section 3.4): nothing but the list of endpoints
// decides, so that all nodes agree without a word; shares differ by one bucket at most; and with an endpoint that comes
// or goes, few flows change theirs beside its own.

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

// dealBuckets gives each bucket the index of its endpoint, of at least one. Endpoints are in order and each once.
//
// Every endpoint has an order of its own in which it likes the buckets, and they take turns in taking the one that
// each likes most of those that are left.
func dealBuckets(endpoints []netip.AddrPort) []int {
	buckets := bucketsFor(len(endpoints))
	likes := make([]liking, len(endpoints))
	for i, e := range endpoints {
		likes[i] = likingOf(e, buckets)
	}
	owner := make([]int, buckets) // 1 + index, 0 for none yet
	for taken := 0; taken < buckets; taken++ {
		i := taken % len(endpoints)
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

// liking walks over all buckets: the step is odd, and their number a power of two.
type liking struct{ next, step int }

func likingOf(e netip.AddrPort, buckets int) liking {
	sum := sha256.Sum256([]byte(e.String()))
	of := func(b []byte) int { return int(binary.BigEndian.Uint64(b) % uint64(buckets)) }
	return liking{of(sum[:8]), of(sum[8:]) | 1}
}

func (l *liking) advance(buckets int) { l.next = (l.next + l.step) % buckets }
