// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"container/heap"
	"iter"
	"maps"
	"time"
)

// Queue orders objects by when to look at them. An object stands in it once, at the earliest time asked for, so that
// it never holds more than there are objects.
type Queue[K comparable] struct {
	heap  dueHeap[K]
	items map[K]*due[K]
}

type due[K comparable] struct {
	key   K
	at    time.Time
	place int
}

// NewQueue makes an empty queue.
func NewQueue[K comparable]() *Queue[K] { return &Queue[K]{items: map[K]*due[K]{}} }

// Add asks for an object at a time, or earlier if it was asked for earlier.
func (q *Queue[K]) Add(key K, at time.Time) {
	d := q.items[key]
	switch {
	case d == nil:
		d = &due[K]{key: key, at: at}
		q.items[key] = d
		heap.Push(&q.heap, d)
	case at.Before(d.at):
		d.at = at
		heap.Fix(&q.heap, d.place)
	}
}

// Next takes the first object that is due.
func (q *Queue[K]) Next(now time.Time) (key K, isDue bool) {
	if len(q.heap) == 0 || q.heap[0].at.After(now) {
		return key, false
	}
	d := heap.Pop(&q.heap).(*due[K])
	if delete(q.items, d.key); len(q.heap) == 0 {
		*q = *NewQueue[K]() // without the room that it grew into: once, that of all objects
	}
	return d.key, true
}

// Wait tells how long until something is due; false for never.
func (q *Queue[K]) Wait(now time.Time) (time.Duration, bool) {
	if len(q.heap) == 0 {
		return 0, false
	}
	return max(0, q.heap[0].at.Sub(now)), true
}

// Len is how many objects stand in it.
func (q *Queue[K]) Len() int { return len(q.heap) }

// Keys gives the objects that stand in it, in no order.
func (q *Queue[K]) Keys() iter.Seq[K] { return maps.Keys(q.items) }

// dueHeap implements heap.Interface.
type dueHeap[K comparable] []*due[K]

func (h dueHeap[K]) Len() int           { return len(h) }
func (h dueHeap[K]) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h dueHeap[K]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push is for container/heap.
func (h *dueHeap[K]) Push(x any) {
	d := x.(*due[K])
	d.place = len(*h)
	*h = append(*h, d)
}

// Pop is for container/heap.
func (h *dueHeap[K]) Pop() any {
	old := *h
	d := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return d
}
