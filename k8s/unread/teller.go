// SPDX-License-Identifier: Apache-2.0

package unread

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	eventsv1 "k8s.io/api/events/v1"

	"fairlead.io/fairlead/k8s/convert"
	"fairlead.io/fairlead/k8s/keep"
	"fairlead.io/fairlead/k8s/writes"
)

// How many Events there may be at most: of one namespace, and of all.
const (
	burstOfOne = 10
	everyOfOne = 30 * time.Second
	burstOfAll = 30
	perSecond  = 1
	againAfter = time.Hour // when an API server has forgotten Events, unless it was told otherwise (--event-ttl)
	lookEvery  = time.Second
)

// Config is everything a Teller is made of. Fields without "optional" are required.
type Config struct {
	// Namespaces are those from which objects are read.
	Namespaces convert.Namespaces
	// Write creates an Event of the group events.k8s.io.
	Write func(context.Context, *eventsv1.Event) error
	Clock keep.Clock
	Log   *slog.Logger
	// Ours tells whether the objects are those of the cluster that the record is of. Optional.
	Ours func() bool
	// Instance names this member in Events.
	Instance string
	// Metrics is optional.
	Metrics prometheus.Registerer
}

// Teller tells people of objects that are not read, while this member leads. It is shown objects all the time (Show), is made once and run
// once in every term.
type Teller struct {
	c       Config
	events  *prometheus.CounterVec
	objects prometheus.GaugeFunc

	mu    sync.Mutex
	seen  map[Key]Seen
	queue *writes.Queue[Key] // what is to be told of this term, and when
	// all and of bound Events. They outlive a term; the allowance of a namespace that is full again is forgotten.
	all *writes.Bucket
	of  map[string]*writes.Bucket
}

// New makes a Teller that does nothing yet. It fails on a missing field and on metrics that are registered already.
func New(c Config) (*Teller, error) {
	for _, field := range []struct {
		missing bool
		name    string
	}{
		{len(c.Namespaces) == 0, "Namespaces"}, {c.Write == nil, "Write"}, {c.Clock == nil, "Clock"}, {c.Log == nil, "Log"}, {c.Instance == "", "Instance"},
	} {
		if field.missing {
			return nil, fmt.Errorf("unread: config lacks %s", field.name)
		}
	}
	if c.Ours == nil {
		c.Ours = func() bool { return true }
	}
	t := &Teller{
		c: c, seen: map[Key]Seen{}, queue: writes.NewQueue[Key](), all: writes.NewBucket(perSecond, burstOfAll), of: map[string]*writes.Bucket{},
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_unread_events_total", Help: "Events on objects in namespaces from which they are not read, by what became of them.",
		}, []string{"result"}),
	}
	t.objects = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "fairlead_unread_objects", Help: "Objects that configure the fabric in namespaces from which they are not read.",
	}, func() float64 {
		t.mu.Lock()
		defer t.mu.Unlock()
		return float64(len(t.seen))
	})
	if c.Metrics != nil {
		for _, m := range []prometheus.Collector{t.events, t.objects} {
			if err := c.Metrics.Register(m); err != nil {
				return nil, fmt.Errorf("unread: register metrics: %w", err)
			}
		}
	}
	return t, nil
}

// Show takes in an object that is not read, as it was listed, added or changed. It does not block.
func (t *Teller) Show(k Key, seen Seen) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if before, known := t.seen[k]; known && before == seen {
		return
	}
	t.seen[k] = seen
	t.queue.Add(k, time.Time{})
}

// Gone takes in that an object is not there any more.
func (t *Teller) Gone(k Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.seen, k)
}

// Run tells people for one term, until ctx ends. It returns once everything that it started has ended.
func (t *Teller) Run(ctx context.Context) {
	t.mu.Lock()
	t.queue = writes.NewQueue[Key]()
	for k := range t.seen {
		t.queue.Add(k, time.Time{})
	}
	t.mu.Unlock()
	teller := keep.NewTeller(t.c.Write, t.c.Clock, t.c.Log, t.events)
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { teller.Run(ctx) })
	for ctx.Err() == nil {
		now := t.c.Clock.Now()
		for _, e := range t.due(now) {
			teller.Tell(e, &keep.Allowance{}, now) // what there may be of them was settled when they fell due
		}
		select {
		case <-ctx.Done():
		case <-t.c.Clock.After(lookEvery):
		}
	}
}

// due makes the Events that may be written now.
func (t *Teller) due(now time.Time) (out []*eventsv1.Event) {
	if !t.c.Ours() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.all.Wait(now) == 0 {
		k, any := t.queue.Next(now)
		if !any {
			break
		}
		seen, there := t.seen[k]
		if !there {
			continue
		}
		of := t.of[k.ID.Namespace]
		if of == nil {
			of = writes.NewBucket(1/everyOfOne.Seconds(), burstOfOne)
			t.of[k.ID.Namespace] = of
		}
		if !of.Take(now, 0) {
			t.queue.Add(k, now.Add(of.Wait(now)))
			continue
		}
		t.all.Take(now, 0)
		t.queue.Add(k, now.Add(againAfter))
		out = append(out, event(k, seen, t.c.Namespaces, t.c.Instance, now))
	}
	t.forget(now)
	return out
}

// forget lets go of allowances that are full: namespaces come and go.
func (t *Teller) forget(now time.Time) {
	for namespace, of := range t.of {
		if of.Full(now) {
			delete(t.of, namespace)
		}
	}
}
