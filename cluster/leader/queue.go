// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"container/heap"
	"time"

	"fairlead.io/fairlead/fsm"
)

// queue is the lines that wait for a call to one driver. A place that comes free is for a deregistration, whoever waits how
// long: until it is made, requests go to a backend that may be gone, while one that is not registered yet costs nobody a
// request.
type queue struct {
	driver  string
	leaving lineHeap      // whose backend is to be deregistered; who waited longest is in front
	others  lineHeap      // in the same order
	ahead   int           // deregistrations in a row that went before others that waited
	running int           // calls that are committed or in flight
	rest    time.Duration // nobody calls before this
	full    bool          // the driver has as many calls as it takes
}

// aheadMost is how many deregistrations in a row may go before others: a driver that cannot deregister is asked to again and
// again, and registers others meanwhile.
const aheadMost = 3

// enter has a line wait from a time on.
func (q *queue) enter(l *line, at time.Duration) {
	if l.errand.action == fsm.ActionDeregister {
		q.leaving.enter(l, at)
	} else {
		q.others.enter(l, at)
	}
}

// size is how many lines wait.
func (q *queue) size() int { return len(q.leaving) + len(q.others) }

// first is the line whose turn it is; nil for none.
func (q *queue) first() *line {
	switch {
	case len(q.leaving) > 0 && (q.ahead < aheadMost || len(q.others) == 0):
		return q.leaving[0]
	case len(q.others) > 0:
		return q.others[0]
	}
	return nil
}

// take takes the first line out of the queue.
func (q *queue) take() *line {
	l := q.first()
	if l.in == &q.leaving && len(q.others) > 0 {
		q.ahead++
	} else {
		q.ahead = 0
	}
	l.leave()
	return l
}

// since is since when the line waits that waits longest.
func (q *queue) since() time.Duration {
	since := q.first().at
	for _, h := range []lineHeap{q.leaving, q.others} {
		if len(h) > 0 {
			since = min(since, h[0].at)
		}
	}
	return since
}

// waiting is how many lines wait for a place at a driver that answers.
func (q *queue) waiting() int {
	if !q.full {
		return 0
	}
	return q.size()
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
	wait     wait          // no call of its purpose before that is over
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

// purpose is what a call is for. Whoever waits before it is made again waits with nothing else: a backend that is to go does not
// wait for what its driver said when it was to come.
type purpose struct {
	action     fsm.Action
	binding    fsm.BindingID
	balancer   fsm.BalancerID
	generation uint64 // of the binding or the balancer
}

// wait is until when no call of a purpose goes out, after the attempt that came to it.
type wait struct {
	of      purpose
	until   time.Duration
	attempt fsm.Revision
}

func purposeOf(a fsm.Action, l *fsm.LoadBalancer, b *fsm.Binding) purpose {
	switch {
	case b != nil:
		return purpose{a, b.ID, b.Balancer, b.Generation}
	case l != nil:
		return purpose{action: a, balancer: l.ID, generation: l.Generation}
	}
	return purpose{action: a}
}

func (e errand) purpose() purpose { return purposeOf(e.action, e.balancer, e.binding) }

func (j *job) purpose() purpose { return purposeOf(j.action, j.request.Balancer, j.request.Binding) }

// notBefore is when the errand may go out at the earliest.
func (l *line) notBefore() time.Duration {
	at := max(l.next, l.errand.due)
	if l.wait.of == l.errand.purpose() {
		at = max(at, l.wait.until)
	}
	return at
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
