// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/keep"
)

// Config is everything a Projector is made of. Fields without "optional" are required.
type Config struct {
	Record fsm.Reader
	API    API
	// Said is what sources and leader say of policies now, of those of which there is anything. What it returns is not changed.
	Said  func() map[fsm.PolicyID]Said
	Clock keep.Clock
	Log   *slog.Logger
	// Ours tells whether the policies are those of the cluster that the record is of. Optional.
	Ours func() bool
	// Instance names this member in Events.
	Instance string
	// Timing is optional.
	Timing Timing
	// Metrics is optional.
	Metrics prometheus.Registerer
}

// Timing is what tests and simulations change. Zero fields take their default.
type Timing struct {
	// Spacing is the least time between two looks at the record. Default 50 ms.
	Spacing time.Duration
	// Settle is how long what is only on its way, and Events, wait for what comes after it. Default 1 s.
	Settle time.Duration
	// Pace is the least time between two writes of one policy that only tell how many nodes and backends there are. Default 5 s.
	Pace time.Duration
	// Ask is how often to ask Said. Default 1 s.
	Ask time.Duration
}

// Projector writes the status of policies while this member leads. It is shown policies all the time (Show), is made once and run once
// in every term.
type Projector struct {
	c        Config
	policies *keep.Store[fsm.PolicyID, *Seen]
	keeper   *keep.Keeper[fsm.PolicyID, *Seen, Write]
	metrics  metrics

	mu      sync.Mutex // what follows is one term's
	said    map[fsm.PolicyID]Said
	work    map[fsm.PolicyID]*work
	teller  *keep.Teller
	changed bool // conditions of policies, since they were counted
}

// work is what is known of one policy in this term.
type work struct {
	told    *story
	uid     string
	since   time.Time // when there came to be something to tell; zero for nothing
	events  keep.Allowance
	written time.Time // when it was last to be written
	now     []metav1.Condition
}

type metrics struct {
	writes, events *prometheus.CounterVec
	pending        prometheus.Gauge
	policies       *prometheus.GaugeVec
}

func newMetrics() metrics {
	return metrics{
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_policy_status_writes_total", Help: "Writes of the status of policies of client-side balancing, by how they ended.",
		}, []string{"result"}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_policy_events_total", Help: "Events on policies of client-side balancing, by what became of them.",
		}, []string{"result"}),
		pending: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fairlead_policy_status_pending", Help: "Policies of client-side balancing whose status is yet to be looked at or written.",
		}),
		policies: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fairlead_policies", Help: "Policies of client-side balancing by condition, as the leader shows them.",
		}, []string{"kind", "condition", "status"}),
	}
}

// New makes a Projector that does nothing yet. It fails on a missing field and on metrics that are registered already.
func New(c Config) (*Projector, error) {
	for _, field := range []struct {
		missing bool
		name    string
	}{
		{c.Record == nil, "Record"}, {c.API == nil, "API"}, {c.Said == nil, "Said"}, {c.Clock == nil, "Clock"}, {c.Log == nil, "Log"}, {c.Instance == "", "Instance"},
	} {
		if field.missing {
			return nil, fmt.Errorf("policystatus: config lacks %s", field.name)
		}
	}
	for _, d := range []struct {
		value     *time.Duration
		otherwise time.Duration
	}{
		{&c.Timing.Spacing, 50 * time.Millisecond}, {&c.Timing.Settle, time.Second}, {&c.Timing.Pace, 5 * time.Second}, {&c.Timing.Ask, time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.otherwise
		}
	}
	p := &Projector{c: c, policies: keep.NewStore[fsm.PolicyID, *Seen](), metrics: newMetrics()}
	if c.Metrics != nil {
		for _, m := range []prometheus.Collector{p.metrics.writes, p.metrics.events, p.metrics.pending, p.metrics.policies} {
			if err := c.Metrics.Register(m); err != nil {
				return nil, fmt.Errorf("policystatus: register metrics: %w", err)
			}
		}
	}
	var err error
	p.keeper, err = keep.New(keep.Config[fsm.PolicyID, *Seen, Write]{
		What: "status of policies", Allow: "let the account patch balancingpolicies/status and localredirectpolicies/status, as deploy/components/balancing does",
		Store: p.policies, Desk: desk{p}, Clock: c.Clock, Log: c.Log, Ours: c.Ours, Writes: p.metrics.writes, Pending: p.metrics.pending,
	})
	return p, err
}

// Show takes in a policy that was listed, added or changed, as a source shows it, or that it is gone. Objects of other kinds are not
// looked at.
func (p *Projector) Show(kind world.Kind, name string, o any) {
	if kind != world.KindBalancingPolicy && kind != world.KindLocalRedirect {
		return
	}
	id := fsm.PolicyID(string(kind) + "/" + name)
	if shown, ok := o.(*unstructured.Unstructured); ok {
		p.policies.Set(id, SeenOf(kind, shown))
	} else {
		p.policies.Delete(id)
	}
}

// Run writes for one term, until ctx ends. It returns once everything that it started has ended: the next leader's writes come after it.
// An API server that is away is waited for.
func (p *Projector) Run(ctx context.Context) {
	p.mu.Lock()
	p.said, p.work, p.changed = p.c.Said(), map[fsm.PolicyID]*work{}, true
	p.teller = keep.NewTeller(p.c.API.Tell, p.c.Clock, p.c.Log, p.metrics.events)
	p.mu.Unlock()
	defer p.metrics.policies.Reset()
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { p.teller.Run(ctx) })
	running.Go(func() { p.follow(ctx) })
	running.Go(func() { p.ask(ctx) })
	p.keeper.NoticeAll()
	p.keeper.Run(ctx)
}

// follow has policies looked at of which the record says something else.
func (p *Projector) follow(ctx context.Context) {
	followed := []fsm.Table{fsm.TableGroup, fsm.TablePolicies, fsm.TableNodes}
	var before *fsm.View
	for ctx.Err() == nil {
		v := p.c.Record.Read()
		concerned, all := scan(before, v)
		if before = v.Only(followed...); all {
			p.keeper.NoticeAll()
		}
		for id := range concerned {
			p.keeper.Notice(id)
		}
		if p.c.Record.Wait(ctx, before, followed...) != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-p.c.Clock.After(p.c.Timing.Spacing):
		}
	}
}

// ask has policies looked at of which something else is said outside of the record, or of which there is still something to tell.
func (p *Projector) ask(ctx context.Context) {
	for ctx.Err() == nil {
		p.askOnce()
		select {
		case <-ctx.Done():
		case <-p.c.Clock.After(p.c.Timing.Ask):
		}
	}
}

func (p *Projector) askOnce() {
	next := p.c.Said()
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, was := range p.said {
		if !reflect.DeepEqual(was, next[id]) {
			p.keeper.Notice(id)
		}
	}
	for id := range next {
		if _, was := p.said[id]; !was {
			p.keeper.Notice(id)
		}
	}
	p.said = next
	for id, w := range p.work {
		if p.policies.Get(id) == nil {
			delete(p.work, id)
			p.changed = true
		} else if !w.since.IsZero() {
			p.keeper.Notice(id)
		}
	}
	if p.changed {
		p.count()
	}
}

// count tells how many policies there are of each condition.
func (p *Projector) count() {
	p.changed = false
	p.metrics.policies.Reset()
	for id, w := range p.work {
		for _, c := range w.now {
			p.metrics.policies.WithLabelValues(kindOf(id), c.Type, string(c.Status)).Inc()
		}
	}
}

type desk struct{ *Projector }

// Look is keep.Desk's. What people know of a policy is noted before anything is written to it.
func (d desk) Look(id fsm.PolicyID, seen *Seen, now time.Time) (*Write, time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v, said := d.c.Record.Read(), d.said[id]
	if seen.Going {
		return nil, 0
	}
	want := statusOf(v, said, seen, now)
	w := d.work[id]
	if w == nil || w.uid != seen.UID {
		w = &work{uid: seen.UID}
		d.work[id] = w
	}
	if !reflect.DeepEqual(w.now, want.Conditions) {
		w.now, d.changed = want.Conditions, true
	}
	d.narrate(v, seen, w, storyOf(want, &said), now)
	write := Project(v, said, seen, now)
	if write == nil {
		return nil, 0
	}
	if write.Urgent {
		return write, 0
	}
	patience := max(d.c.Timing.Settle, w.written.Add(d.c.Timing.Pace).Sub(now))
	return write, patience
}

// narrate tells people what changed, once it has settled.
func (p *Projector) narrate(v *fsm.View, seen *Seen, w *work, next story, now time.Time) {
	if w.told == nil {
		w.told = recall(&seen.Status, &next)
	}
	list := tell(w.told, &next)
	switch {
	case len(list) == 0:
		w.since, w.told = time.Time{}, &next
		return
	case w.since.IsZero():
		w.since = now
	}
	if now.Sub(w.since) < p.c.Timing.Settle {
		return
	}
	at := fsm.Revision{}
	if r, ok := fsm.Get[*fsm.Policy](v, fsm.TablePolicies, string(seen.ID)); ok && r.UID == seen.UID {
		at = r.Since
	}
	for i := range list {
		p.teller.Tell(list[i].event(seen, at, p.c.Instance, now), &w.events, now)
	}
	w.since, w.told = time.Time{}, &next
}

// Digest is keep.Desk's.
func (d desk) Digest(w *Write) uint64 { return w.digest() }

// Write is keep.Desk's.
func (d desk) Write(ctx context.Context, id fsm.PolicyID, w *Write) (*Seen, error) {
	d.mu.Lock()
	if of := d.work[id]; of != nil {
		of.written = d.c.Clock.Now()
	}
	d.mu.Unlock()
	return d.c.API.Write(ctx, w)
}

// API is what this package asks of an API server.
type API interface {
	// Write carries out a Write and gives what the policy is like then.
	Write(ctx context.Context, w *Write) (*Seen, error)
	// Tell creates an Event.
	Tell(ctx context.Context, e *eventsv1.Event) error
}
