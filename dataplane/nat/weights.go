// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"container/heap"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/api/desired"
)

// weightOf is an endpoint's share of new connections beside the others' (K40). Quiesced ones have none, and are no candidates.
func weightOf(e *desired.Endpoint) uint32 { return max(uint32(e.Weight), 1) }

// reduced are weights without their common divisor, and none where all are the same: nobody has to know then that there
// are any.
func reduced(weights []uint32) []uint32 {
	if len(weights) == 0 || !slices.ContainsFunc(weights, func(w uint32) bool { return w != weights[0] }) {
		return nil
	}
	divisor := weights[0]
	for _, w := range weights {
		for w != 0 {
			divisor, w = w, divisor%w
		}
	}
	out := slices.Clone(weights)
	for i := range out {
		out[i] /= divisor
	}
	return out
}

// slotsFor is how many slots endpoints of reduced weights share: as many as the weights are together, so that shares are
// exact, and at most as many as there would be buckets.
func slotsFor(weights []uint32) int {
	most, sum := bucketsFor(len(weights)), 0
	for _, w := range weights {
		if sum += int(w); sum >= most {
			return most
		}
	}
	return sum
}

// turns says whose turn it is, for so many turns: at least one target has to be there.
func (t targets) turns(number int) []int {
	if t.weights != nil {
		return deal(t.weights, number)
	}
	out := make([]int, number)
	for i := range out {
		out[i] = i % len(t.at)
	}
	return out
}

// dealt are the targets by slot: those of a weight have as many slots.
func (t targets) dealt() []netip.AddrPort {
	if t.weights == nil {
		return t.at
	}
	var out []netip.AddrPort
	for _, i := range t.turns(slotsFor(t.weights)) {
		out = append(out, t.at[i])
	}
	return out
}

// deal gives turns to as many endpoints as there are weights, at most as many as turns: by weights, and spread out.
// Each has one at least; beyond that whoever has had least for its weight is next (Webster's method), the first of them
// if several have. Endpoints of one weight go round.
func deal(weights []uint32, turns int) []int {
	q := make(queue, len(weights))
	for i, w := range weights {
		q[i] = turn{index: i, weight: uint64(w)}
	}
	out := make([]int, turns) // q is in order: nobody has had a turn
	for n := range out {
		out[n] = q[0].index
		q[0].had++
		heap.Fix(&q, 0)
	}
	return out
}

// turn is how often an endpoint had one.
type turn struct {
	index       int
	weight, had uint64
}

// before compares (had + 1/2) / weight, but the first turns come before all others.
func (a turn) before(b turn) bool {
	x, y := (2*a.had+1)*b.weight, (2*b.had+1)*a.weight
	if a.had == 0 || b.had == 0 {
		x, y = a.had, b.had
	}
	return x < y || x == y && a.index < b.index
}

// queue is a heap of endpoints, of which the first is next.
type queue []turn

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].before(q[j]) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(any)          { panic("endpoints do not come while turns are dealt") }
func (q *queue) Pop() any          { panic("endpoints do not go while turns are dealt") }
