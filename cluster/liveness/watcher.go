// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/fsm"
)

// Colleague is a member as the leader asks it; the leader itself is one of them. Its methods may be called from any
// goroutine and return soon after ctx has ended.
type Colleague interface {
	// Silences asks which nodes the member has not heard of, and how those stand that it is asked about.
	Silences(ctx context.Context, about []fsm.NodeID) (Report, error)
	// Probe has the member probe nodes and tells which answered. It leaves out those that it does not know.
	Probe(ctx context.Context, nodes []fsm.NodeID) (map[fsm.NodeID]bool, error)
}

// Group is the controller group as this package needs it.
type Group interface {
	// Voters lists the names of the members that vote, this one included.
	Voters() []string
	// Colleague gives a member by name.
	Colleague(name string) Colleague
	// Propose commits commands in order, before everything that can wait, and gives their outcomes. Only the leader
	// can.
	Propose(ctx context.Context, proposals []fsm.Proposal) ([]fsm.Outcome, error)
}

// Clock is the time that a Watcher lives by.
type Clock interface {
	// Now is the reading of a monotonic clock.
	Now() time.Duration
	// After gives the time once d has passed on it.
	After(d time.Duration) <-chan time.Time
	// Wall is what people call the time. It is stamped on proposals and never compared.
	Wall() time.Time
}

// WatcherOptions is what a Watcher is made of. Fields without "optional" are required.
type WatcherOptions struct {
	Record  fsm.Reader
	Group   Group
	Clock   Clock
	Log     *slog.Logger
	Metrics prometheus.Registerer // optional
	Timing  Timing                // zero fields take their default
}

// Watcher is the leader's loop: it asks the members, judges and proposes. It is made once and run once in every
// term that its member leads.
type Watcher struct {
	o       WatcherOptions
	metrics *metrics
}

// NewWatcher makes a Watcher that does nothing yet. Errors: the metrics are registered already.
func NewWatcher(o WatcherOptions) (*Watcher, error) {
	o.Timing = o.Timing.withDefaults()
	m, err := newMetrics(o.Metrics, o.Record)
	if err != nil {
		return nil, err
	}
	return &Watcher{o: o, metrics: m}, nil
}

// actor is who proposes.
const actor = "leader"

// proposeWithin bounds one proposal; the next look proposes again what was not committed.
const proposeWithin = 5 * time.Second

// term is one term of a Watcher. What is not marked otherwise belongs to the goroutine of run.
type term struct {
	*Watcher
	ctx      context.Context
	judge    *Judge
	events   chan func()         // what others found out, to be taken in by run
	pollers  map[string]func()   // what ends the poller of each voter
	running  sync.WaitGroup      // everything that was started
	wanted   asking              // shared with the pollers
	deciding map[fsm.NodeID]bool // verdicts that are being committed
	holding  bool                // holds are being committed
	teller   teller
	log      *slog.Logger
}

// Run watches for one term, until ctx ends, and returns once everything that it started has ended.
func (w *Watcher) Run(ctx context.Context, number uint64) {
	ctx, cancel := context.WithCancel(ctx)
	t := &term{
		Watcher: w, ctx: ctx, log: w.o.Log.With("term", number), judge: NewJudge(w.o.Timing, w.o.Clock.Now()),
		events: make(chan func(), 64), pollers: map[string]func(){}, deciding: map[fsm.NodeID]bool{},
		wanted: asking{every: w.o.Timing.Poll},
	}
	defer w.metrics.rest()
	defer t.running.Wait()
	defer cancel()
	for ctx.Err() == nil {
		t.look()
		select {
		case <-ctx.Done():
		case take := <-t.events:
			take()
		case <-w.o.Clock.After(w.o.Timing.Poll):
		}
	}
}

// tell hands run something to take in; it gives up with the term.
func (t *term) tell(take func()) {
	select {
	case t.events <- take:
	case <-t.ctx.Done():
	}
}

// look judges, and starts what follows from it.
func (t *term) look() {
	for more := true; more; { // what is known already is judged together
		select {
		case take := <-t.events:
			take()
		default:
			more = false
		}
	}
	view := t.o.Record.Read()
	s := Scene{
		Now: t.o.Clock.Now(), Voters: t.o.Group.Voters(),
		Nodes: fsm.List[*fsm.Node](view, fsm.TableNodes), Holds: fsm.List[*fsm.Hold](view, fsm.TableHolds),
	}
	if slices.ContainsFunc(s.Nodes, judged) {
		t.poll(s.Voters)
	} else {
		t.poll(nil)
	}
	d := t.judge.Decide(s)
	t.ask(d)
	for _, p := range d.Probes {
		t.running.Go(func() { t.probe(p) })
	}
	t.show(&d)
	t.commit(&d)
}

// commit proposes verdicts that are not on their way already, and holds.
func (t *term) commit(d *Decision) {
	var verdicts []Verdict
	var proposals []fsm.Proposal
	add := func(reason string, c fsm.Command) {
		proposals = append(proposals, fsm.Proposal{Actor: actor, Reason: reason, AtUnixMilli: t.o.Clock.Wall().UnixMilli(), Command: c})
	}
	for _, v := range d.Verdicts {
		if !t.deciding[v.Node] {
			t.deciding[v.Node] = true
			verdicts = append(verdicts, v)
			add(v.Why, &fsm.SetLiveness{Node: v.Node, Boot: v.Boot, Liveness: v.Liveness})
		}
	}
	holds := len(d.Holds) > 0 && !t.holding
	if holds {
		t.holding = true
		for _, c := range d.Holds {
			add("nodes fell silent together, or did no longer", c)
		}
	}
	if len(proposals) == 0 {
		return
	}
	t.running.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, proposeWithin)
		defer cancel()
		outcomes, err := t.o.Group.Propose(ctx, proposals)
		at := t.o.Clock.Now()
		t.tell(func() {
			for i, v := range verdicts {
				delete(t.deciding, v.Node)
				if err == nil {
					t.committed(v, outcomes[i], at)
				}
			}
			t.holding = t.holding && !holds
			if err != nil && t.ctx.Err() == nil {
				t.log.Warn("liveness not committed", "err", err)
			}
		})
	})
}

// committed tells of a verdict that the group knows by now.
func (t *term) committed(v Verdict, o fsm.Outcome, at time.Duration) {
	if err := o.Err(); err != nil {
		t.log.Debug("liveness refused", "node", v.Node, "err", err) // it booted meanwhile, or is gone
		return
	}
	silent := at - v.Sign
	if v.Liveness != fsm.NodeUp {
		t.metrics.verdicts.WithLabelValues(v.Liveness.String()).Observe(silent.Seconds())
	}
	t.log.Info("node judged", "node", v.Node, "boot", v.Boot, "liveness", v.Liveness.String(), "silent", silent.Round(time.Millisecond), "reason", v.Why)
}

// probe has one member probe.
func (t *term) probe(p Probe) {
	ctx, cancel := context.WithTimeout(t.ctx, t.o.Timing.Within+t.o.Timing.Contact)
	defer cancel()
	answers, err := t.o.Group.Colleague(p.Member).Probe(ctx, p.Nodes)
	if err != nil && !errors.Is(err, context.Canceled) {
		t.log.Debug("probe not made", "member", p.Member, "err", err)
		answers = nil
	}
	at := t.o.Clock.Now()
	t.tell(func() { t.judge.Probed(at, p, answers) })
}
