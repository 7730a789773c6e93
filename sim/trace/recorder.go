// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"

	"fairlead.io/fairlead/sim/event"
)

// DefaultLimit is how many bytes of events a recorder keeps unless it is told otherwise: millions of them.
const DefaultLimit = 64 << 20

// Options of a recorder.
type Options struct {
	// Keep asks for the events themselves, beside their digest.
	Keep bool
	// Limit bounds the memory that kept events take, in bytes: DefaultLimit when 0. Above it the oldest ones are
	// dropped, first those of kinds that a run is full of; Trace.Dropped counts them.
	Limit int
}

// Recorder listens to one run. It belongs to the goroutine of that run.
type Recorder struct {
	hashes [2]*xxhash.Digest // nobody attacks a digest: 128 bits against chance are enough, and cheap
	coder  coder             // writes for the digest; its out is what was not hashed yet
	events uint64
	keeper *keeper // nil unless asked for
}

// batch is how many bytes are hashed at a time: short inputs cost a hash more than long ones.
const batch = 8 << 10

// New makes a recorder that has heard nothing.
func New(o Options) *Recorder {
	r := &Recorder{hashes: [2]*xxhash.Digest{xxhash.NewWithSeed(0), xxhash.NewWithSeed(1)}, coder: coder{mode: plain, out: make([]byte, 0, 2*batch)}}
	if o.Keep {
		if o.Limit == 0 {
			o.Limit = DefaultLimit
		}
		r.keeper = newKeeper(o.Limit)
	}
	return r
}

// Hear takes in one event; give it to engine.World.Hear.
func (r *Recorder) Hear(e event.Stamped) {
	c := &r.coder
	c.at = e.At
	c.out = binary.AppendUvarint(c.out, zigzag(int64(e.At)))
	c.out = binary.AppendUvarint(c.out, e.Number)
	c.show(e.Event)
	if len(c.out) >= batch {
		r.flush()
	}
	r.events++
	if r.keeper != nil {
		r.keeper.add(e)
	}
}

func (r *Recorder) flush() {
	for _, h := range r.hashes {
		_, _ = h.Write(r.coder.out) // a hash never fails
	}
	r.coder.out = r.coder.out[:0]
}

// Digest is of everything heard so far, whether it is kept or not: 32 hexadecimal digits.
func (r *Recorder) Digest() string {
	r.flush()
	return fmt.Sprintf("%016x%016x", r.hashes[0].Sum64(), r.hashes[1].Sum64())
}

// Events is how many were heard so far.
func (r *Recorder) Events() uint64 { return r.events }

// Trace is what was kept so far; it has no events unless Options asked for them. It stays as it is when more is heard.
func (r *Recorder) Trace() Trace {
	t := Trace{Digest: r.Digest(), Heard: r.events}
	if r.keeper == nil {
		return t
	}
	t.Dropped = maps.Clone(r.keeper.dropped)
	for _, s := range append(slices.Clone(r.keeper.full), r.keeper.last) {
		if s.events > 0 {
			t.packed = append(t.packed, s.out[:len(s.out):len(s.out)])
			t.kept += s.events
		}
	}
	return t
}
