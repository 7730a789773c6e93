// SPDX-License-Identifier: Apache-2.0

package keep

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/k8s/writes"
)

// Desk says what objects shall be like, and writes it.
type Desk[K comparable, S Seen, W any] interface {
	// Look gives what to write to an object that is there, and how long that may wait for what comes after it; nil if it is as it
	// shall be. It is called for one object after the other.
	Look(k K, seen S, now time.Time) (w *W, patience time.Duration)
	// Digest is of what people see of a write: not of when.
	Digest(w *W) uint64
	// Write carries out a write and gives what the object is like then. It is called from several goroutines.
	Write(ctx context.Context, k K, w *W) (S, error)
}

// Clock is the time that this package lives by.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// Config is everything a Keeper is made of. Fields without "optional" are required.
type Config[K comparable, S Seen, W any] struct {
	// What is written, as the log has it: "status of policies". Allow is the remedy where the right to write it is missing.
	What, Allow string
	Store       *Store[K, S]
	Desk        Desk[K, S, W]
	Clock       Clock
	Log         *slog.Logger
	// Ours tells whether Store shows the cluster that the record is of: nothing is written to another one. Optional.
	Ours func() bool
	// Recheck is how often to look at every object: what was missed once is found then. Optional, 10 min.
	Recheck time.Duration
	// Concurrent is how many writes may be under way. Optional, 8.
	Concurrent int
	// Writes counts writes by how they ended ("result"), Pending is how many objects are yet to be looked at or written. Optional.
	Writes  *prometheus.CounterVec
	Pending prometheus.Gauge
}

// Keeper keeps objects as they shall be while this member leads. It is made once and run once in every term.
type Keeper[K comparable, S Seen, W any] struct {
	c Config[K, S, W]

	mu      sync.Mutex
	noticed map[K]bool
	all     bool
	wake    chan struct{}
}

// New makes a Keeper that does nothing yet. It fails on a missing field.
func New[K comparable, S Seen, W any](c Config[K, S, W]) (*Keeper[K, S, W], error) {
	for _, field := range []struct {
		missing bool
		name    string
	}{
		{c.What == "", "What"}, {c.Allow == "", "Allow"}, {c.Store == nil, "Store"}, {c.Desk == nil, "Desk"}, {c.Clock == nil, "Clock"}, {c.Log == nil, "Log"},
	} {
		if field.missing {
			return nil, fmt.Errorf("keep: config lacks %s", field.name)
		}
	}
	if c.Ours == nil {
		c.Ours = func() bool { return true }
	}
	if c.Recheck == 0 {
		c.Recheck = 10 * time.Minute
	}
	if c.Concurrent == 0 {
		c.Concurrent = 8
	}
	if c.Writes == nil {
		c.Writes = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "writes"}, []string{"result"})
	}
	if c.Pending == nil {
		c.Pending = prometheus.NewGauge(prometheus.GaugeOpts{Name: "pending"})
	}
	return &Keeper[K, S, W]{c: c, noticed: map[K]bool{}, wake: make(chan struct{}, 1)}, nil
}

// Notice has objects looked at. It may be called from any goroutine.
func (k *Keeper[K, S, W]) Notice(keys ...K) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range keys {
		k.noticed[key] = true
	}
	k.pokeLocked()
}

// NoticeAll has every object looked at.
func (k *Keeper[K, S, W]) NoticeAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = true
	k.pokeLocked()
}

func (k *Keeper[K, S, W]) pokeLocked() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *Keeper[K, S, W]) take() (keys map[K]bool, all bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	keys, all = k.noticed, k.all
	k.noticed, k.all = map[K]bool{}, false
	return keys, all
}

// Run writes for one term, until ctx ends. It returns once everything that it started has ended: the next leader's writes come after
// it. An API server that is away is waited for.
func (k *Keeper[K, S, W]) Run(ctx context.Context) {
	r := &run[K, S, W]{
		Keeper: k, work: map[K]*work{}, queue: writes.NewQueue[K](), results: make(chan result[K, S, W], k.c.Concurrent), complained: map[string]bool{},
	}
	defer k.c.Pending.Set(0)
	ctx, stop := context.WithCancel(ctx)
	defer r.calls.Wait()
	defer stop()
	r.loop(ctx)
}

// run is one term. Its loop owns everything but the channels.
type run[K comparable, S Seen, W any] struct {
	*Keeper[K, S, W]
	work       map[K]*work
	queue      *writes.Queue[K]
	inFlight   int
	results    chan result[K, S, W]
	calls      sync.WaitGroup
	brake      writes.Brake
	complained map[string]bool // remedies that were told since a write succeeded
	checked    time.Time       // every object
	foreign    bool            // objects were left alone for being another cluster's
}

// work is what is known of one object in this term.
type work struct {
	// noticed is when something about it first changed that is not written yet; zero for nothing.
	noticed  time.Time
	failures int
	writing  bool
	again    bool // look again once the write under way has ended
	pace     writes.Pace
}

// result is how a write ended.
type result[K comparable, S Seen, W any] struct {
	key   K
	write *W
	seen  S
	err   error
}

// settleEvery is how often the store is asked to give up waiting for a watch, and whether objects are ours.
const settleEvery = time.Second

func (r *run[K, S, W]) loop(ctx context.Context) {
	for ctx.Err() == nil {
		now := r.c.Clock.Now()
		r.c.Store.settle(now)
		r.takeIn(now)
		r.dispatch(ctx, now)
		r.c.Pending.Set(float64(r.queue.Len() + r.inFlight))
		select {
		case <-ctx.Done():
		case <-r.wake:
		case <-r.c.Store.wake:
		case done := <-r.results:
			r.finished(done, r.c.Clock.Now())
		case <-r.c.Clock.After(r.wait(now)):
		}
	}
}

// takeIn notes the objects that something changed about.
func (r *run[K, S, W]) takeIn(now time.Time) {
	keys, all := r.take()
	for k := range keys {
		r.notice(k, now)
	}
	for k := range r.c.Store.take() {
		r.notice(k, now)
	}
	back := r.foreign && r.c.Ours()
	if !all && !back && now.Sub(r.checked) < r.c.Recheck {
		return
	}
	r.checked, r.foreign = now, r.foreign && !back
	for _, k := range r.c.Store.Keys() {
		r.notice(k, now)
	}
}

func (r *run[K, S, W]) notice(k K, now time.Time) {
	w := r.work[k]
	if w == nil {
		w = &work{}
		r.work[k] = w
	}
	if w.noticed.IsZero() {
		w.noticed = now
	}
	r.queue.Add(k, now)
}

// wait is how long nothing is to do unless something changes.
func (r *run[K, S, W]) wait(now time.Time) time.Duration {
	out := min(settleEvery, max(0, r.checked.Add(r.c.Recheck).Sub(now)))
	if d, any := r.queue.Wait(now); any && r.inFlight < r.brake.Concurrent(r.c.Concurrent) {
		out = min(out, max(d, r.brake.Wait(now)))
	}
	return out
}

// dispatch starts the writes that are due, as many at once as may be.
func (r *run[K, S, W]) dispatch(ctx context.Context, now time.Time) {
	for r.inFlight < r.brake.Concurrent(r.c.Concurrent) && r.brake.Wait(now) == 0 {
		k, due := r.queue.Next(now)
		if !due {
			return
		}
		if w := r.work[k]; w != nil {
			r.look(ctx, k, w, now)
		}
	}
}

// look decides on one object, by what is known just now, and starts a write if one is needed.
func (r *run[K, S, W]) look(ctx context.Context, k K, w *work, now time.Time) {
	if w.writing {
		w.again = true
		return
	}
	var none S
	seen := r.c.Store.Get(k)
	if seen == none {
		delete(r.work, k)
		return
	}
	if !r.c.Ours() {
		r.foreign = true
		return
	}
	write, patience := r.c.Desk.Look(k, seen, now)
	if write == nil {
		w.noticed, w.failures = time.Time{}, 0
		return
	}
	if left := w.noticed.Add(patience).Sub(now); left > 0 {
		r.queue.Add(k, now.Add(left))
		return
	}
	if wait, _ := w.pace.Wait(r.c.Desk.Digest(write), now); wait > 0 {
		r.queue.Add(k, now.Add(wait))
		return
	}
	w.writing = true
	r.inFlight++
	r.calls.Go(func() {
		call, cancel := context.WithTimeout(ctx, writes.CallTimeout)
		defer cancel()
		seen, err := r.c.Desk.Write(call, k, write)
		r.results <- result[K, S, W]{k, write, seen, err} // there is room for every write under way
	})
}

// finished takes in how a write ended.
func (r *run[K, S, W]) finished(done result[K, S, W], now time.Time) {
	k := done.key
	r.inFlight--
	w := r.work[k] // never forgotten while a write is under way
	w.writing = false
	if w.again {
		w.again = false
		r.queue.Add(k, now)
	}
	kind := writes.FailureOf(done.err)
	if kind == "" {
		r.written(done, w, now)
		return
	}
	r.c.Writes.WithLabelValues(kind).Inc()
	if kind == writes.Gone {
		w.noticed, w.failures = time.Time{}, 0 // the watch will say so
		return
	}
	w.failures++
	r.queue.Add(k, now.Add(writes.Backoff(w.failures)))
	if kind == writes.Conflict {
		r.c.Store.doubt(k)
		return // what changed is on its way here
	}
	r.complain(done, kind, r.brake.Pull(kind, done.err, now))
}

// complain says that a write failed: of thousands only the first, and the first that asks for something else to be done.
func (r *run[K, S, W]) complain(done result[K, S, W], kind string, first bool) {
	remedy := r.remedyOf(kind)
	if !first && r.complained[remedy] {
		return
	}
	r.complained[remedy] = true
	r.c.Log.Warn("object not written, trying again", "what", r.c.What, "object", fmt.Sprint(done.key), "err", done.err, "remedy", remedy)
}

func (r *run[K, S, W]) remedyOf(kind string) string {
	switch kind {
	case writes.Forbidden:
		return r.c.Allow
	case writes.Invalid:
		return "the API server does not take what it was sent; report it with the server's version"
	}
	return "nothing, unless it lasts: check that the API server can be reached"
}

func (r *run[K, S, W]) written(done result[K, S, W], w *work, now time.Time) {
	if r.brake.Release() {
		clear(r.complained)
		r.c.Log.Info("objects written again", "what", r.c.What)
	}
	result := "written"
	digest := r.c.Desk.Digest(done.write)
	if _, overwritten := w.pace.Wait(digest, now); overwritten {
		result = "overwritten"
	}
	if w.pace.Wrote(digest, now) {
		r.c.Log.Warn("object keeps being overwritten by somebody else, writing it less often", "what", r.c.What, "object", fmt.Sprint(done.key))
	}
	r.c.Writes.WithLabelValues(result).Inc()
	w.noticed, w.failures = time.Time{}, 0
	r.c.Store.set(done.key, done.seen, true)
}
