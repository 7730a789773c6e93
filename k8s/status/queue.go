// SPDX-License-Identifier: Apache-2.0

package status

import (
	"container/heap"
	"time"

	"fairlead.io/fairlead/fsm"
)

// queue orders Services by when to look at them. A Service stands in it once, at the earliest time asked for, so that
// it never holds more than there are Services.
type queue struct {
	heap  dueHeap
	items map[fsm.ServiceID]*due
}

type due struct {
	id    fsm.ServiceID
	at    time.Time
	place int
}

func newQueue() *queue { return &queue{items: map[fsm.ServiceID]*due{}} }

// add asks for a Service at a time, or earlier if it was asked for earlier.
func (q *queue) add(id fsm.ServiceID, at time.Time) {
	d := q.items[id]
	switch {
	case d == nil:
		d = &due{id: id, at: at}
		q.items[id] = d
		heap.Push(&q.heap, d)
	case at.Before(d.at):
		d.at = at
		heap.Fix(&q.heap, d.place)
	}
}

// next takes the first Service that is due.
func (q *queue) next(now time.Time) (fsm.ServiceID, bool) {
	if len(q.heap) == 0 || q.heap[0].at.After(now) {
		return "", false
	}
	d := heap.Pop(&q.heap).(*due)
	delete(q.items, d.id)
	return d.id, true
}

// wait tells how long until something is due; false for never.
func (q *queue) wait(now time.Time) (time.Duration, bool) {
	if len(q.heap) == 0 {
		return 0, false
	}
	return max(0, q.heap[0].at.Sub(now)), true
}

func (q *queue) len() int { return len(q.heap) }

// dueHeap implements heap.Interface.
type dueHeap []*due

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}
func (h *dueHeap) Push(x any) {
	d := x.(*due)
	d.place = len(*h)
	*h = append(*h, d)
}
func (h *dueHeap) Pop() any {
	old := *h
	d := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return d
}
