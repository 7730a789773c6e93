// SPDX-License-Identifier: Apache-2.0

// Package weights turns weights of backends into turns and slots: whole numbers of equal chances.
package weights

import (
	"container/heap"
	"slices"
)

// Reduce gives weights without their common divisor, and none where all are the same: nobody has to know then that there
// are any.
func Reduce(weights []uint32) []uint32 {
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

// Slots is how many slots backends of reduced weights share: as many as the weights are together, so that shares are
// exact, and at most so many.
func Slots(weights []uint32, most int) int {
	sum := 0
	for _, w := range weights {
		if sum += int(w); sum >= most {
			return most
		}
	}
	return sum
}

// Deal gives turns to as many backends as there are weights, at most as many as turns: by weights, and spread out.
// Each has one at least; beyond that whoever has had least for its weight is next (Webster's method), the first of them
// if several have. Backends of one weight go round.
func Deal(weights []uint32, turns int) []int {
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

// turn is how often a backend had one.
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

// queue is a heap of backends, of which the first is next.
type queue []turn

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].before(q[j]) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(any)          { panic("endpoints do not come while turns are dealt") }
func (q *queue) Pop() any          { panic("endpoints do not go while turns are dealt") }
