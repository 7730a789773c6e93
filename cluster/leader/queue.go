// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"container/heap"
	"time"

	"fairlead.io/fairlead/fsm"
)

// queue is the lines that wait for a call to one driver.
type queue struct {
	driver  string
	ready   lineHeap      // who waited longest is in front
	running int           // calls that are committed or in flight
	rest    time.Duration // nobody calls before this
	full    bool          // the driver has as many calls as it takes
}

// waiting is how many lines wait for a place at a driver that answers.
func (q *queue) waiting() int {
	if !q.full {
		return 0
	}
	return len(q.ready)
}

// lineHeap is lines in order of their at, then of their subject. A line is in one heap at most.
type lineHeap []*line

func (h lineHeap) Len() int { return len(h) }

func (h lineHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].at, h[j].at), cmp.Compare(h[i].subject, h[j].subject)) < 0
}

func (h lineHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *lineHeap) Push(x any) {
	l := x.(*line)
	l.place = len(*h)
	*h = append(*h, l)
}

// Pop implements heap.Interface.
func (h *lineHeap) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return l
}

// enter puts a line into a heap, by at.
func (h *lineHeap) enter(l *line, at time.Duration) {
	l.in, l.at = h, at
	heap.Push(h, l)
}

// leave takes a line out of the heap that it is in, if any.
func (l *line) leave() {
	if l.in != nil {
		heap.Remove(l.in, l.place)
		l.in = nil
	}
}

// line is what this term knows of one subject's line of operations, beside the record.
type line struct {
	subject  fsm.Subject
	job      *job          // from the choice of a call until its outcome is committed; nil for none
	next     time.Duration // no call before this
	failures int           // in a row
	polls    int           // answers in a row that the driver is at it
	// unsettled is the newest call of unknown outcome, and ended when it ended at the latest.
	unsettled fsm.Revision
	ended     time.Duration
	// orphan is an open attempt that nobody here works at, and over when no call of it can be written any more.
	orphan fsm.Revision
	over   time.Duration

	// errand is the call that the record asks for, and since when it does.
	errand errand
	since  time.Duration
	in     *lineHeap // that it is in: of the alarms, or of those ready; nil for neither
	at     time.Duration
	place  int
}

// idle tells whether nothing of the line is worth knowing.
func (l *line) idle(now time.Duration) bool {
	return l.job == nil && l.orphan.IsZero() && l.unsettled.IsZero() && l.errand.action == 0 && l.next <= now
}

// queue finds or makes the queue of a driver.
func (o *operator) queue(driver string) *queue {
	q := o.queues[driver]
	if q == nil {
		q = &queue{driver: driver}
		o.queues[driver] = q
	}
	return q
}

// line finds or starts what is known of a subject.
func (o *operator) line(s fsm.Subject) *line {
	l := o.lines[s]
	if l == nil {
		l = &line{subject: s}
		o.lines[s] = l
	}
	return l
}
