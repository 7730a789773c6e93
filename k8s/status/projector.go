// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/keep"
	"fairlead.io/fairlead/k8s/writes"
)

// Clock is the time that this package lives by.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// Config is everything a Projector is made of. Fields without "optional" are required.
type Config struct {
	Record fsm.Reader
	// Store is filled by somebody else, all the time.
	Store *Store
	API   API
	// Waiting is the leader's word on what is not as it shall be, as of its newest plan. What it returns is not changed.
	Waiting func() []Explanation
	// Problems is optional: what of each Service the sources cannot use as it is written, a sentence with the remedy each.
	// What it returns is not changed.
	Problems func() map[fsm.ServiceID][]string
	Clock    Clock
	Log      *slog.Logger
	Options  Options
	// Instance names this member in Events.
	Instance string
	// Timing is optional.
	Timing Timing
	// Metrics is optional.
	Metrics prometheus.Registerer
}

// Timing is what tests and simulations change. Zero fields take their default.
type Timing struct {
	// Spacing is the least time between two looks at the record. Default 20 ms.
	Spacing time.Duration
	// Settle is how long what is only on its way, and Events, wait for what comes after it. Default 1 s.
	Settle time.Duration
	// Patience is how long an address may wait for nodes and members before an Event says so. Default 5 s.
	Patience time.Duration
	// Ask is how often to ask what the leader says, and Recheck how often to look at every Service. Defaults 1 s and
	// 10 min.
	Ask, Recheck time.Duration
	// Concurrent is how many writes may be under way. Default 8.
	Concurrent int
}

func (t Timing) withDefaults() Timing {
	t.Spacing = cmp.Or(t.Spacing, 20*time.Millisecond)
	t.Settle = cmp.Or(t.Settle, time.Second)
	t.Patience = cmp.Or(t.Patience, 5*time.Second)
	t.Ask = cmp.Or(t.Ask, time.Second)
	t.Recheck = cmp.Or(t.Recheck, 10*time.Minute)
	t.Concurrent = cmp.Or(t.Concurrent, 8)
	return t
}

// Projector writes the status of Services while this member leads. It is made once and run once in every term.
type Projector struct {
	c       Config
	metrics *metrics
}

// New makes a Projector that does nothing yet. It fails on a missing field and on metrics that are registered already.
func New(c Config) (*Projector, error) {
	for _, field := range []struct {
		missing bool
		name    string
	}{
		{c.Record == nil, "Record"}, {c.Store == nil, "Store"}, {c.API == nil, "API"}, {c.Waiting == nil, "Waiting"},
		{c.Clock == nil, "Clock"}, {c.Log == nil, "Log"}, {c.Instance == "", "Instance"}, {c.Options.Class == "", "Options.Class"},
	} {
		if field.missing {
			return nil, fmt.Errorf("status: config lacks %s", field.name)
		}
	}
	c.Timing = c.Timing.withDefaults()
	m := newMetrics()
	if err := m.register(c.Metrics); err != nil {
		return nil, fmt.Errorf("status: register metrics: %w", err)
	}
	return &Projector{c: c, metrics: m}, nil
}

// Run writes for one term, until ctx ends. It returns once everything that it started has ended: the next leader's
// writes come after it. An API server that is away is waited for.
func (p *Projector) Run(ctx context.Context) {
	r := p.newRun()
	defer p.metrics.pending.Set(0)
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	r.calls = &running
	running.Go(func() { r.teller.Run(ctx) })
	running.Go(func() { r.follow(ctx) })
	r.loop(ctx)
}

func (p *Projector) newRun() *run {
	return &run{
		Projector: p, work: map[fsm.ServiceID]*work{}, writes: writes.NewQueue[fsm.ServiceID](), tales: writes.NewQueue[fsm.ServiceID](),
		results: make(chan result, p.c.Timing.Concurrent), teller: keep.NewTeller(p.c.API.Tell, p.c.Clock, p.c.Log, p.metrics.events),
		changed: make(chan struct{}, 1), complained: map[string]bool{},
	}
}

// follow leaves a token whenever the record changes in a way that may matter.
func (r *run) follow(ctx context.Context) {
	for {
		v := r.c.Record.Read()
		select {
		case r.changed <- struct{}{}:
		default:
		}
		if r.c.Record.Wait(ctx, v, fsm.TableGroup, fsm.TableMembers, fsm.TableAllocations, fsm.TableServices, fsm.TableRoutes,
			fsm.TablePeers, fsm.TableNodes, fsm.TableAdvertisements, fsm.TableL2Advertisements, fsm.TableHolds) != nil {
			return
		}
	}
}
