// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"iter"
	"time"

	"fairlead.io/fairlead/sim/event"
)

// stretch is a part of a run, packed. It stands by itself: times, numbers and texts begin anew in it.
type stretch struct {
	coder
	number uint64 // of the last event
	events int
	thin   bool // kinds that a run is full of were taken out
}

func newStretch() *stretch { return &stretch{coder: coder{mode: pack, refs: map[string]uint64{}}} }

// add appends an event: distance in time, distance in number, kind, fields.
func (s *stretch) add(e event.Stamped) {
	ahead, next := zigzag(int64(e.At-s.at)), e.Number-s.number
	s.word(&ahead)
	s.word(&next)
	s.at, s.number = e.At, e.Number
	s.show(e.Event)
	s.events++
}

// size is about the memory that it takes. Texts are kept a second time, to find them again.
func (s *stretch) size() int { return 2*len(s.out) + 32*len(s.refs) }

// unpacked goes through packed events and their kinds; err is set when they are damaged.
func unpacked(packed []byte, err *error) iter.Seq2[uint8, event.Stamped] {
	return func(yield func(uint8, event.Stamped) bool) {
		c := coder{mode: unpack, in: packed}
		var number uint64
		for len(c.in) > 0 {
			var ahead, next uint64
			c.word(&ahead)
			c.word(&next)
			if c.err != nil || len(c.in) == 0 {
				*err = errShort
				return
			}
			c.at += time.Duration(unzigzag(ahead))
			number += next
			kind := c.in[0]
			if kind == 0 || int(kind) >= len(kinds) {
				*err = errShort
				return
			}
			c.in = c.in[1:]
			e := kinds[kind].read(&c)
			if c.err != nil {
				*err = c.err
				return
			}
			if !yield(kind, event.Stamped{At: c.at, Number: number, Event: e}) {
				return
			}
		}
	}
}

// stretchSize is when a stretch is full: small against any sensible limit, large against what it costs to begin one.
const stretchSize = 4 << 20

// keeper keeps what was heard last, within a limit.
type keeper struct {
	limit     int
	full      []*stretch // oldest first; nobody appends to them
	fullSize  int
	last      *stretch
	stretches int // size at which one is full
	dropped   map[string]uint64
}

func newKeeper(limit int) *keeper {
	return &keeper{
		limit: limit, last: newStretch(), stretches: min(stretchSize, max(limit/8, 1)), dropped: map[string]uint64{},
	}
}

func (k *keeper) add(e event.Stamped) {
	k.last.add(e)
	if size := k.last.size(); size >= k.stretches {
		k.full, k.last = append(k.full, k.last), newStretch()
		k.fullSize += size
		k.shrink()
	}
}

// shrink makes room for one more stretch: it first takes messages and the like out of the oldest stretches, so that
// lives, terms and faults stay as far back as they can, and then drops what is left of them.
func (k *keeper) shrink() {
	for i := 0; i < len(k.full) && k.fullSize > k.limit-k.stretches; i++ {
		if k.full[i].thin {
			continue
		}
		k.fullSize -= k.full[i].size()
		k.full[i] = k.thinned(k.full[i])
		k.fullSize += k.full[i].size()
	}
	for len(k.full) > 0 && k.fullSize > k.limit-k.stretches {
		k.fullSize -= k.full[0].size()
		k.count(k.full[0], func(kind) bool { return true })
		k.full = k.full[1:]
	}
}

// count adds the events of the kinds in question to those that were dropped, and gives what is left.
func (k *keeper) count(s *stretch, drop func(kind) bool) *stretch {
	left := newStretch()
	var err error
	for number, e := range unpacked(s.out, &err) {
		if of := kinds[number]; drop(of) {
			k.dropped[of.name]++
		} else {
			left.add(e)
		}
	}
	if err != nil {
		panic("trace: " + err.Error() + " in memory") // it was written by add
	}
	return left
}

func (k *keeper) thinned(s *stretch) *stretch {
	left := k.count(s, func(of kind) bool { return of.many })
	left.thin = true
	return left
}
