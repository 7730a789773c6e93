// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"
)

// Opinion is what is thought of a target or a place.
type Opinion uint8

// Opinions. What is unknown is used.
const (
	Unknown Opinion = iota
	Good
	Bad
)

func (o Opinion) String() string { return [...]string{"unknown", "good", "bad"}[o] }

// Result is what a probe found out. One that is void says nothing of the address: this host could not ask.
type Result struct {
	OK   bool
	Void bool
	Why  string // it is not OK
}

// Limits bound what a Book takes on.
type Limits struct {
	Targets  int // that are probed. Default 4096
	UnderWay int // probes at a time. Default 256
}

func (l Limits) withDefaults() Limits {
	return Limits{cmp.Or(l.Targets, 4096), cmp.Or(l.UnderWay, 256)}
}

// First probes of targets that came together are spread over this much, or their interval if that is shorter.
const spread = time.Second

// Book is what is thought of targets, and when each is probed next. Times are readings of one clock that never runs back.
type Book struct {
	limits   Limits
	random   *rand.Rand
	targets  map[Target]*entry
	waiting  queue // those that no probe is under way of
	underWay int
}

// entry is what is known of a target.
type entry struct {
	target  Target
	opinion Opinion
	streak  int           // results in a row: answers above 0, failures below
	why     string        // the newest failure, or why it could not be asked
	void    bool          // it could not be asked the last time
	next    time.Duration // when it is probed; or when the probe under way began
	asked   bool          // a probe is under way
	gone    bool          // nobody wants it any more
	place   int           // in the queue
}

// NewBook makes one without targets.
func NewBook(l Limits, random *rand.Rand) *Book {
	return &Book{limits: l.withDefaults(), random: random, targets: map[Target]*entry{}}
}

// Want has these targets probed and no others; they are in order, each once. What was known of those that stay is kept. It gives those
// for which there is no room.
func (b *Book) Want(now time.Duration, targets []Target) (unfit []Target) {
	wanted := make(map[Target]bool, len(targets))
	for _, t := range targets {
		wanted[t] = true
	}
	for t, e := range b.targets {
		if !wanted[t] && !e.gone {
			b.drop(e)
		}
	}
	for _, t := range targets {
		switch e, known := b.targets[t]; {
		case known && e.gone: // its probe is under way still, and is the first
			*e = entry{target: t, next: e.next, asked: true}
		case known:
		case len(b.targets) >= b.limits.Targets:
			unfit = append(unfit, t)
		default:
			e = &entry{target: t, next: now + b.draw(min(t.Interval, spread))}
			b.targets[t] = e
			heap.Push(&b.waiting, e)
		}
	}
	return unfit
}

func (b *Book) drop(e *entry) {
	if e.asked {
		e.gone = true
		return
	}
	heap.Remove(&b.waiting, e.place)
	delete(b.targets, e.target)
}

// draw gives a time from 0 up to, but not, most.
func (b *Book) draw(most time.Duration) time.Duration {
	return time.Duration(b.random.Int64N(int64(max(most, 1))))
}

// Begin gives the targets whose probes begin now. Each has to be Done.
func (b *Book) Begin(now time.Duration) (out []Target) {
	for b.underWay < b.limits.UnderWay && len(b.waiting) > 0 && b.waiting[0].next <= now {
		e := heap.Pop(&b.waiting).(*entry)
		e.asked, e.next = true, now
		b.underWay++
		out = append(out, e.target)
	}
	return out
}

// Next is when a probe begins next; false while one has to be Done first, or there is no target.
func (b *Book) Next() (at time.Duration, waits bool) {
	if b.underWay >= b.limits.UnderWay || len(b.waiting) == 0 {
		return 0, false
	}
	return b.waiting[0].next, true
}

// Done takes in what a probe found out. It tells whether something else is thought now.
func (b *Book) Done(now time.Duration, t Target, r Result) (changed bool) {
	e := b.targets[t]
	if e == nil || !e.asked {
		return false
	}
	b.underWay--
	if e.gone {
		delete(b.targets, t)
		return false
	}
	e.asked = false
	// A tenth to either side keeps hosts from asking all at once.
	e.next = max(now, e.next+t.Interval-t.Interval/10+b.draw(t.Interval/5))
	heap.Push(&b.waiting, e)
	return e.take(r)
}

// take takes in a result; it tells whether something else is thought now.
func (e *entry) take(r Result) bool {
	if e.void, e.why = r.Void, r.Why; r.Void {
		return false
	}
	before := e.opinion
	if r.OK {
		e.streak = max(e.streak, 0) + 1
		if e.streak >= e.target.Healthy {
			e.opinion = Good
		}
	} else {
		e.streak = min(e.streak, 0) - 1
		if -e.streak >= e.target.Unhealthy {
			e.opinion = Bad
		}
	}
	return e.opinion != before
}

// Of tells what is thought of a target, and, unless its last probe was answered, why.
func (b *Book) Of(t Target) (Opinion, string) {
	if e := b.targets[t]; e != nil && !e.gone {
		return e.opinion, e.why
	}
	return Unknown, ""
}

// OfPlace tells what is thought of a place.
func (b *Book) OfPlace(c Check) (o Opinion, why string) {
	if len(c.By) == 0 {
		return Unknown, ""
	}
	o = Bad
	for _, t := range c.By {
		switch of, text := b.Of(t); {
		case of == Good:
			return Good, ""
		case of == Unknown:
			o, why = Unknown, cmp.Or(why, text)
		default:
			why = cmp.Or(why, text)
		}
	}
	return o, why
}

// Counts is how many targets are thought what of, and of how many this host could not ask the last time.
func (b *Book) Counts() (by map[Opinion]int, void int) {
	by = map[Opinion]int{}
	for _, e := range b.targets {
		if !e.gone {
			by[e.opinion]++
		}
		if e.void && !e.gone {
			void++
		}
	}
	return by, void
}

// queue is a heap by when a probe is due.
type queue []*entry

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].next, q[j].next), q[i].target.compare(q[j].target)) < 0
}

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push and Pop are package heap's.
func (q *queue) Push(x any) {
	e := x.(*entry)
	e.place = len(*q)
	*q = append(*q, e)
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	*q = slices.Delete(*q, last, last+1)
	return e
}
