// SPDX-License-Identifier: Apache-2.0

package keep

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"fairlead.io/fairlead/k8s/writes"
)

// Bounds of Events: they are for people, and lost ones are no harm.
const (
	waitingEvents = 512              // in memory, while the API server is slow or away
	eventBurst    = 10               // of one object at once
	eventEvery    = 30 * time.Second // then one of it in this time
	eventRetries  = 5
)

// Teller writes Events one after the other. Those that there is no room for are lost.
type Teller struct {
	write  func(context.Context, *eventsv1.Event) error
	clock  Clock
	log    *slog.Logger
	events *prometheus.CounterVec // by result
	queue  chan *eventsv1.Event
}

// NewTeller makes a Teller that writes by a function, and counts Events by what became of them ("result").
func NewTeller(write func(context.Context, *eventsv1.Event) error, clock Clock, log *slog.Logger, events *prometheus.CounterVec) *Teller {
	return &Teller{write, clock, log, events, make(chan *eventsv1.Event, waitingEvents)}
}

// Tell queues an Event, as far as its object has any allowance left. It does not wait.
func (t *Teller) Tell(e *eventsv1.Event, a *Allowance, now time.Time) {
	if !a.Take(now) {
		t.events.WithLabelValues("limited").Inc()
		return
	}
	select {
	case t.queue <- e:
	default:
		t.events.WithLabelValues("dropped").Inc()
	}
}

// Run writes until ctx ends.
func (t *Teller) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-t.queue:
			t.events.WithLabelValues(t.one(ctx, e)).Inc()
		}
	}
}

// one creates one Event, trying again for a while. It tells how that ended.
func (t *Teller) one(ctx context.Context, e *eventsv1.Event) string {
	for try := 0; ; try++ {
		call, cancel := context.WithTimeout(ctx, writes.CallTimeout)
		err := t.write(call, e)
		cancel()
		switch {
		case err == nil:
			return "written"
		case apierrors.IsAlreadyExists(err):
			return "told-before"
		case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsInvalid(err), try == eventRetries, ctx.Err() != nil:
			t.log.Debug("event not written", "object", e.Regarding.Namespace+"/"+e.Regarding.Name, "reason", e.Reason, "err", err)
			return "failed"
		}
		select {
		case <-ctx.Done():
		case <-t.clock.After(writes.Backoff(try + 1)):
		}
	}
}

// Allowance is how many Events an object may still have. Its zero value is full.
type Allowance struct {
	left int
	at   time.Time // when left was counted
}

// Take takes one, if there is one left.
func (a *Allowance) Take(now time.Time) bool {
	if a.at.IsZero() {
		a.left, a.at = eventBurst, now
	}
	if more := int(now.Sub(a.at) / eventEvery); more > 0 {
		a.left, a.at = min(eventBurst, a.left+more), a.at.Add(time.Duration(more)*eventEvery)
	}
	if a.left == 0 {
		return false
	}
	a.left--
	return true
}
