// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/writes"
)

// View is this member's copy of the record.
type View interface {
	Read() *fsm.View
	// Wait returns once any of the tables differs from what v shows, or with ctx's error.
	Wait(ctx context.Context, v *fsm.View, tables ...fsm.Table) error
}

// Clock is the time that this package lives by.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// Config is everything a Mirror is made of. Fields without "optional" are required.
type Config struct {
	Record  View
	Objects Objects
	API     API
	Clock   Clock
	Log     *slog.Logger
	// Ours tells whether Objects shows the cluster that the record is of: nothing is written to another one. Optional.
	Ours func() bool
	// Expected is how many BackendRecords there should be for a BackendGroup, which is named as in Binding.Owner:
	// "BackendGroup/namespace/name/uid". It is false if nobody knows. Optional.
	Expected func(owner string) (int32, bool)
	// Waiting is the leader's word on what is not as it shall be, as of its newest plan. What it returns is not changed.
	// Optional.
	Waiting func() []Explanation
	// Reach is the way to a driver, "namespace/name". Optional.
	Reach func(driver string) Reach
	// Yield tells that bindings are under way which the machine's time is better spent on. Optional.
	Yield func() bool
	// Rate and Burst bound writes of objects. Defaults 200 a second and 400, LBCF's.
	Rate  float64
	Burst int
	// Timing is optional.
	Timing Timing
	// Metrics is optional.
	Metrics prometheus.Registerer
}

// Timing is what tests and simulations change. Zero fields take their default.
type Timing struct {
	// Spacing is the least time between two looks at the record. Default 20 ms.
	Spacing time.Duration
	// Gather is how long a changed binding waits for what comes after it. Default 5 ms.
	Gather time.Duration
	// Patience is how long what nobody waits for, such as a failure, waits for what comes after it, and Pace the least
	// time between two such writes of one object. Defaults 2 s and 10 s.
	Patience, Pace time.Duration
	// Counting is the least time between two writes of the numbers of a BackendGroup. Default 1 s.
	Counting time.Duration
	// Ask is how often to ask Expected, Waiting and Reach, and Recheck how often to look at every object. Defaults 1 s and
	// 10 min.
	Ask, Recheck time.Duration
	// Settle is how long Events wait for their object. Default 1 s.
	Settle time.Duration
	// Yield is how long BackendRecords and Events wait at most while Config.Yield says so. Default 5 s.
	Yield time.Duration
	// Concurrent is how many writes may be under way. Default 16.
	Concurrent int
}

func (t Timing) withDefaults() Timing {
	t.Spacing = cmp.Or(t.Spacing, 20*time.Millisecond)
	t.Gather = cmp.Or(t.Gather, 5*time.Millisecond)
	t.Patience = cmp.Or(t.Patience, 2*time.Second)
	t.Pace = cmp.Or(t.Pace, 10*time.Second)
	t.Counting = cmp.Or(t.Counting, time.Second)
	t.Ask = cmp.Or(t.Ask, time.Second)
	t.Recheck = cmp.Or(t.Recheck, 10*time.Minute)
	t.Settle = cmp.Or(t.Settle, time.Second)
	t.Yield = cmp.Or(t.Yield, 5*time.Second)
	t.Concurrent = cmp.Or(t.Concurrent, 16)
	return t
}

// Default bounds of writes, LBCF's flags.
const (
	defaultRate  = 200
	defaultBurst = 400
)

// Mirror shows the record in Kubernetes while this member leads. It is made once and run once in every term.
type Mirror struct {
	c       Config
	metrics *metrics
}

// New makes a Mirror that does nothing yet. It fails on a missing field and on metrics that are registered already.
func New(c Config) (*Mirror, error) {
	for _, field := range []struct {
		missing bool
		name    string
	}{
		{c.Record == nil, "Record"}, {c.Objects == nil, "Objects"}, {c.API == nil, "API"}, {c.Clock == nil, "Clock"}, {c.Log == nil, "Log"},
	} {
		if field.missing {
			return nil, fmt.Errorf("mirror: config lacks %s", field.name)
		}
	}
	c.Timing = c.Timing.withDefaults()
	if c.Rate == 0 {
		c.Rate = defaultRate
	}
	if c.Burst == 0 {
		c.Burst = defaultBurst
	}
	m := newMetrics()
	if err := m.register(c.Metrics); err != nil {
		return nil, fmt.Errorf("mirror: register metrics: %w", err)
	}
	return &Mirror{c: c, metrics: m}, nil
}

// Run writes for one term, until ctx ends. The record must hold by then whatever an earlier leader decided. It returns
// once everything that it started has ended. An API server that is away is waited for.
func (m *Mirror) Run(ctx context.Context) {
	r := &run{
		Mirror: m, sight: sight{m.c.Objects, map[Key]answer{}}, index: newIndex(), work: map[Key]*work{},
		first: writes.NewQueue[Key](), second: writes.NewQueue[Key](), bucket: writes.NewBucket(m.c.Rate, m.c.Burst),
		results: make(chan result, m.c.Timing.Concurrent), changed: make(chan struct{}, 1), shown: newShown(),
		complete: map[Kind]bool{}, expected: map[string]int32{}, reached: map[Key]Reach{}, waited: map[Explanation]bool{},
		tales: newTales(m.c.Timing.Settle), began: m.c.Clock.Now(),
	}
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer m.metrics.pending.Reset()
	defer running.Wait()
	defer stop()
	defer m.c.Objects.Follow(r.shown.add)()
	r.calls = &running
	running.Go(func() { r.speak(ctx) })
	running.Go(func() { r.follow(ctx) })
	r.loop(ctx)
}

// follow leaves a token whenever the record changes in a way that may matter.
func (r *run) follow(ctx context.Context) {
	for {
		v := r.c.Record.Read()
		select {
		case r.changed <- struct{}{}:
		default:
		}
		if r.c.Record.Wait(ctx, v, fsm.TableBindings, fsm.TableBalancers, fsm.TableDrivers) != nil {
			return
		}
	}
}

// shown are the objects that changed since somebody looked.
type shown struct {
	mu   sync.Mutex
	keys map[Key]bool
	wake chan struct{}
}

func newShown() *shown { return &shown{keys: map[Key]bool{}, wake: make(chan struct{}, 1)} }

func (s *shown) add(k Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[k] = true
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *shown) take() []Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.SortedFunc(maps.Keys(s.keys), Key.compare)
	clear(s.keys)
	return out
}
