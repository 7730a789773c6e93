// SPDX-License-Identifier: Apache-2.0

package writes

import "time"

// Bucket bounds how much is written: a burst at once, and a rate in the long run. Its zero value lets nothing through.
type Bucket struct {
	burst, rate float64 // rate in tokens a second
	left        float64
	at          time.Time // when left was counted
}

// NewBucket makes a full bucket, of a rate a second.
func NewBucket(rate float64, burst int) *Bucket {
	return &Bucket{burst: float64(burst), rate: rate, left: float64(burst)}
}

// Take takes a token, if more than spare are left.
func (b *Bucket) Take(now time.Time, spare int) bool {
	b.fill(now)
	if b.left < float64(spare)+1 {
		return false
	}
	b.left--
	return true
}

// Wait is how long until there is a token.
func (b *Bucket) Wait(now time.Time) time.Duration {
	b.fill(now)
	if b.left >= 1 || b.rate <= 0 {
		return 0
	}
	return time.Duration((1-b.left)/b.rate*float64(time.Second)) + time.Nanosecond
}

// Full tells whether as much may be written as ever: it is as good as a new one.
func (b *Bucket) Full(now time.Time) bool {
	b.fill(now)
	return b.left >= b.burst
}

func (b *Bucket) fill(now time.Time) {
	if !b.at.IsZero() && now.After(b.at) {
		b.left = min(b.burst, b.left+now.Sub(b.at).Seconds()*b.rate)
	}
	b.at = now
}
