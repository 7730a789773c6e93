// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/fsm"
)

// Proposer hands proposals to the leader, whoever that is; *cluster.Node is one.
type Proposer interface {
	Propose(ctx context.Context, u cluster.Urgency, proposals ...fsm.Proposal) ([]fsm.Outcome, error)
}

// Options is what a Service is made of. Fields without "optional" are required.
type Options struct {
	Member   string // this member's name, the actor of what it proposes for agents
	Record   fsm.Reader
	Proposer Proposer
	Contact  func() cluster.Contact
	// Barrier waits until this member has applied all that was committed when it was called (records.NewBarrier).
	Barrier func(context.Context) error
	Leases  Leases // optional: without, nodes are never asked to renew any
	Shares  Shares // optional: without, nodes announce nothing themselves
	Log     *slog.Logger
	Metrics prometheus.Registerer // optional
	// Now is a clock with a monotonic reading. Default time.Now.
	Now    func() time.Time
	Tuning Tuning // zero fields take their default
}

// Tuning is what tests, simulations and unusual networks change.
type Tuning struct {
	// Alone is how long this member may be out of touch with a quorum before it sends its agents away. Default
	// 3 s, as the routes' demotion.
	Alone time.Duration
	// Doubt is how old its record may be before it says so in answer to heartbeats: agents then move to another member whose
	// record is newer, if there is one. An election takes less. The same holds while a write of its log does not come back. Default 1 s.
	Doubt time.Duration
	// Behind is how long it may have entries to apply before it does so, and how long an agent that knows more
	// than this member is kept waiting. Default 3 s.
	Behind time.Duration
	// Note is how often it is committed what hosts outside the cluster carried out. Default 5 s.
	Note time.Duration
	// Look is how often both are looked at. Default 100 ms.
	Look time.Duration
}

func (t Tuning) withDefaults() Tuning {
	t.Alone = cmp.Or(t.Alone, 3*time.Second)
	t.Doubt = cmp.Or(t.Doubt, time.Second)
	t.Behind = cmp.Or(t.Behind, 3*time.Second)
	t.Note = cmp.Or(t.Note, 5*time.Second)
	t.Look = cmp.Or(t.Look, 100*time.Millisecond)
	return t
}

// Service implements fairleadv1connect.AgentServiceHandler. It works while Run does. Who may call it, and that
// an agent speaks for its own node only, is seen to in cluster/admin.
type Service struct {
	o        Options
	log      *slog.Logger
	board    *board
	standing *standing
	marks    *marks
	reports  *reports
	beats    *beats
	revoked  revoked
	metrics  *metrics

	mu      sync.Mutex
	streams map[who]*stream // the newest of each node and host
}

var _ fairleadv1connect.AgentServiceHandler = (*Service)(nil)

// New makes a service. Errors: the metrics are registered already.
func New(o Options) (*Service, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Tuning = o.Tuning.withDefaults()
	m, err := newMetrics(o.Metrics)
	if err != nil {
		return nil, err
	}
	s := &Service{
		o: o, log: o.Log, metrics: m, streams: map[who]*stream{},
		board: newBoard(o.Record), standing: newStanding(o), marks: newMarks(o), reports: newReports(o), beats: newBeats(o.Now),
	}
	return s, nil
}

// Run follows the record, watches this member's standing and proposes acknowledgements until ctx ends. It
// returns ctx's error, or why the record cannot be encoded for agents.
func (s *Service) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for _, part := range []func(context.Context) error{s.board.run, s.watchStanding, s.forgetSilent, s.marks.run, s.reports.run} {
		running.Go(func() { cancel(part(ctx)) })
	}
	running.Wait()
	return context.Cause(ctx)
}

// forgetSilent has what was said in heartbeats forgotten in time.
func (s *Service) forgetSilent(ctx context.Context) error {
	ticks := time.NewTicker(rememberSaid / 2)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			s.beats.forgetSilent()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watchStanding wakes the streams when this member falls behind or out of touch.
func (s *Service) watchStanding(ctx context.Context) error {
	ticks := time.NewTicker(s.o.Tuning.Look)
	defer ticks.Stop()
	for {
		if s.standing.look() {
			s.board.wake()
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
