// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"container/heap"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"time"

	"fairlead.io/fairlead/sim/event"
)

// World is one run. It belongs to the goroutine that calls Run; everything else happens within that call.
type World struct {
	seed    uint64
	now     time.Duration
	order   uint64
	queue   queue
	streams map[string]*rand.Rand
	hear    []func(event.Stamped)
	events  uint64
	err     error
}

// New makes a world in which nothing is planned yet. Its time begins at 0.
func New(seed uint64) *World {
	return &World{seed: seed, streams: map[string]*rand.Rand{}}
}

// Seed is what the world was made of.
func (w *World) Seed() uint64 { return w.seed }

// Now is the time since the world began. It never runs back.
func (w *World) Now() time.Duration { return w.now }

// Pass moves the clock on without anything else happening: what a process does takes time. Events that have become
// due meanwhile are late.
func (w *World) Pass(d time.Duration) { w.now += max(d, 0) }

// Random gives the stream of randomness of that name, the same one each time.
func (w *World) Random(stream string) *rand.Rand {
	r, ok := w.streams[stream]
	if !ok {
		r = rand.New(rand.NewChaCha8(w.Key(stream)))
		w.streams[stream] = r
	}
	return r
}

// Key is the seed of a stream, for those who need bytes and keep their own generator.
func (w *World) Key(stream string) [32]byte {
	return sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, w.seed), stream...))
}

// Timer is something planned.
type Timer struct {
	at    time.Duration
	order uint64
	do    func()
	slot  int // in the queue, -1 outside
	world *World
}

// At plans do for a time; what is in the past happens next.
func (w *World) At(at time.Duration, do func()) *Timer {
	w.order++
	t := &Timer{at: max(at, w.now), order: w.order, do: do, world: w}
	heap.Push(&w.queue, t)
	return t
}

// After plans do for d from now.
func (w *World) After(d time.Duration, do func()) *Timer { return w.At(w.now+max(d, 0), do) }

// Stop takes it back. It does nothing on a timer that was done, and on nil.
func (t *Timer) Stop() {
	if t != nil && t.slot >= 0 {
		heap.Remove(&t.world.queue, t.slot)
	}
}

// When is the time that it is planned for.
func (t *Timer) When() time.Duration { return t.at }

// Hear has f told of everything that is published, in order. Call it before Run.
func (w *World) Hear(f func(event.Stamped)) { w.hear = append(w.hear, f) }

// Publish tells everybody who listens what has happened.
func (w *World) Publish(e event.Event) {
	w.events++
	stamped := event.Stamped{At: w.now, Number: w.events, Event: e}
	for _, f := range w.hear {
		f(stamped)
	}
}

// Fail ends the run: Run returns err. Only the first one counts.
func (w *World) Fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// Failed tells why the run ends, nil as long as it does not.
func (w *World) Failed() error { return w.err }

// Run lets things happen until a time, until nothing is planned any more, or until somebody calls Fail, whose error
// it returns. It may be called again to go on.
func (w *World) Run(until time.Duration) error {
	for w.err == nil && len(w.queue) > 0 && w.queue[0].at <= until {
		t := heap.Pop(&w.queue).(*Timer)
		w.now = max(w.now, t.at)
		t.do()
	}
	if w.err == nil {
		w.now = max(w.now, until)
	}
	return w.err
}

// queue orders timers by time, then by the order in which they were asked for.
type queue []*Timer

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].slot, q[j].slot = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	t := x.(*Timer)
	t.slot = len(*q)
	*q = append(*q, t)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	last.slot = -1
	return last
}
