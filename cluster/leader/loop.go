// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/fsm"
)

// NamedSource is a source and the name under which the record keeps how far it was acted on.
type NamedSource struct {
	Name string
	Source
}

// Config is everything a Leader is made of. Fields without "optional" are required.
type Config struct {
	Sources []NamedSource // where two show one object the first wins
	Record  fsm.Reader
	Group   Group
	Clock   Clock
	Log     *slog.Logger

	Options Options
	Limits  Limits
	Timing  Timing

	// ServiceCIDRs are the prefixes from which the API server gives out ClusterIPs, as far as that is known, sorted; optional.
	ServiceCIDRs func() []netip.Prefix
	// Drivers finds the driver of an outside load balancer; optional: without it nothing is operated.
	Drivers func(name string) (Driver, bool)
	// Judge asks drivers which pods stay; optional: without it nobody is asked.
	Judge Judge
	// OutsideBusy tells whether somebody else looks after outside load balancers, and who; nothing of them is planned or
	// operated then. Optional.
	OutsideBusy func() (reason string, busy bool)
	// OutsideUnsure tells whether that is not known at present. What the record has of outside load balancers goes on then, and
	// nothing is added. Optional.
	OutsideUnsure func() bool
	// DryRun logs what would be planned of outside load balancers, proposes nothing of it, and calls drivers but to ask, with
	// Request.DryRun, what they would do.
	DryRun bool
	// Rehearsed is told in a dry run what the record would be: Drivers and Judge are asked about the drivers of that one. Optional.
	Rehearsed func(*fsm.View)
	// Agree gives a view of this member's record that most members have alike, and tells whether all have that can be asked. Optional: nobody is asked.
	Agree func(ctx context.Context) (v *fsm.View, alike bool, err error)
	// Random spreads retries; optional with Drivers nil.
	Random *rand.Rand
	// Metrics is optional.
	Metrics prometheus.Registerer
}

// Timing is what tests, simulations and unusual networks change. Zero fields take their default.
type Timing struct {
	// Spacing is the least time from the end of one plan to the next: what happens within it is planned together.
	// Default 5 ms.
	Spacing time.Duration
	// Replan is how often to look whether to plan when nothing seems to have changed: what a plan came to stands while what it was
	// made from does, for five minutes at most. Default 10 s.
	Replan time.Duration
	// Reports is how long acknowledgements and marks are collected before they are proposed. Default 10 ms.
	Reports time.Duration
	// Checkpoint is how often the digest of the record is compared on all members. Default 1 min.
	Checkpoint time.Duration
	// SwitchHolds is how long a switch may keep the paths of a lost member; zero means what the peers in the record
	// ask for: hold time, restart time and stale time together, and at least the defaults of those three.
	SwitchHolds time.Duration
	// Drift is how much longer than the deadline of an attempt of another leader this one waits before it takes the
	// attempt's outcome for unknown: what the two clocks may differ by in that time. Default 2 s.
	Drift time.Duration
	// RetryFloor and RetryCap bound the wait between attempts that fail. Default 250 ms and 2 min, LBCF's max-retry-delay.
	RetryFloor time.Duration
	RetryCap   time.Duration
	// RetryLeast is the least wait after an attempt that did not succeed, and between periodic ones, whatever else is said.
	// Default 0.
	RetryLeast time.Duration
	// RetryStep, where it is set, takes the place of RetryFloor with LBCF's formula (lbcf §4.1): it is waited for after
	// the first failure, and doubled by each further one.
	RetryStep time.Duration
}

func (t Timing) withDefaults() Timing {
	t.Spacing = cmp.Or(t.Spacing, 5*time.Millisecond)
	t.Replan = cmp.Or(t.Replan, 10*time.Second)
	t.Reports = cmp.Or(t.Reports, 10*time.Millisecond)
	t.Checkpoint = cmp.Or(t.Checkpoint, time.Minute)
	t.Drift = cmp.Or(t.Drift, 2*time.Second)
	t.RetryFloor = cmp.Or(t.RetryFloor, 250*time.Millisecond)
	t.RetryCap = cmp.Or(t.RetryCap, 2*time.Minute)
	return t
}

// Leader is what this member does while it leads. It is made once and run once in every term that it leads; its
// other methods may be called at any time, from any goroutine.
type Leader struct {
	c       Config
	metrics *metrics
	reports *reports
	judging *judging

	unfit        unfit
	queued       atomic.Int64 // calls that wait for a place at their driver
	asks         chan chan<- Input
	asksOutside  chan chan<- OutsideInput
	asksOperator chan questionOfLines

	mu      sync.Mutex
	status  Status
	outside OutsideStatus
	waiting []Explanation // of policies of client-side balancing
}

// New makes a Leader that does nothing yet. It fails on a missing field and on metrics that are registered already.
func New(c Config) (*Leader, error) {
	for _, field := range []struct {
		missing bool
		name    string
	}{
		{c.Record == nil, "Record"}, {c.Group == nil, "Group"}, {c.Clock == nil, "Clock"}, {c.Log == nil, "Log"},
		{c.Drivers != nil && c.Random == nil, "Random"},
	} {
		if field.missing {
			return nil, fmt.Errorf("leader: config lacks %s", field.name)
		}
	}
	if c.Agree == nil {
		c.Agree = func(context.Context) (*fsm.View, bool, error) { return c.Record.Read(), true, nil }
	}
	c.Timing = c.Timing.withDefaults()
	m := newMetrics()
	if err := m.register(c.Metrics); err != nil {
		return nil, fmt.Errorf("leader: register metrics: %w", err)
	}
	return &Leader{c: c, metrics: m, reports: newReports(), judging: newJudging(c), asks: make(chan chan<- Input), asksOutside: make(chan chan<- OutsideInput), asksOperator: make(chan questionOfLines)}, nil
}

// Run plans and operates for one term, until ctx ends. It returns once everything that it started has ended: the
// next term may then begin. The error is nil.
func (l *Leader) Run(ctx context.Context, term uint64) error {
	l.setStatus(func(s *Status) { *s = Status{Term: term} })
	defer l.setStatus(func(s *Status) { *s = Status{} })
	defer l.unfit.end()
	defer l.setOutside(OutsideStatus{})
	defer l.setPolicies(nil)
	for _, s := range l.c.Sources {
		if r, ok := s.Source.(Relister); ok {
			r.Begin() // what is absent has to be confirmed anew
		}
	}
	plan := newPlanning(l)
	watchers := []*sentry{plan.sentry}
	policies := newPolicyPlanning(l)
	if l.c.Options.BalancingPolicies {
		watchers = append(watchers, policies.sentry)
	}
	parts := []func(context.Context){plan.run, policies.run, l.runReports, l.runCheckpoints}
	if l.c.Drivers != nil {
		out := newOutsidePlanning(l)
		plan.adopting = out.adopting.Load
		watchers = append(watchers, out.sentry)
		ours := []func(context.Context){out.run, func(ctx context.Context) { l.operate(ctx) }}
		if l.c.DryRun {
			ours = []func(context.Context){out.run, out.rehearsal.run} // nor goes on what the record has from before
		}
		if l.c.Judge != nil {
			ours = append(ours, l.judging.run)
		}
		parts = append(parts, func(ctx context.Context) { l.whileOurs(ctx, ours) })
	}
	parts = append(parts, func(ctx context.Context) { l.forward(ctx, watchers...) })
	runAll(ctx, parts)
	return nil
}

// Acknowledged takes in that a node carried out the record up to a mark. It is proposed within a short while together
// with others; one that gets lost is repeated by its node.
func (l *Leader) Acknowledged(mark fsm.AppliedMark) {
	l.metrics.programming.acknowledged(mark, l.c.Clock.Wall())
	l.reports.acknowledged(mark)
}

// Announced takes in that a member shows the record up to a mark on all its sessions.
func (l *Leader) Announced(mark fsm.AnnouncedMark) { l.reports.announced(mark) }

// propose commits proposals in order, as many at once as an entry may hold. Refusals are counted and logged; the
// record tells what became of them. What was set aside, since no entry can hold it, is none: to propose it again would not help.
func (l *Leader) propose(ctx context.Context, u Urgency, part Part, proposals []fsm.Proposal) (refused int, err error) {
	most := maxTogether
	for len(proposals) > 0 {
		n := min(most, len(proposals))
		outcomes, err := l.c.Group.Propose(ctx, u, proposals[:n])
		if errors.Is(err, fsm.ErrTooLarge) {
			if n > 1 {
				most = n / 2
				continue
			}
			outcomes, err = []fsm.Outcome{fsm.Unfit(proposals[0], err)}, nil
		}
		if err != nil {
			l.metrics.failed(proposals[:n])
			return refused, err
		}
		for i, o := range outcomes {
			refused += l.hear(part, proposals[i].Command, o)
		}
		proposals = proposals[n:]
	}
	return refused, nil
}

// hear takes in what became of a command, and counts 1 for one that was refused.
func (l *Leader) hear(part Part, c fsm.Command, o fsm.Outcome) (refused int) {
	l.metrics.proposed(c, o.Reject)
	switch {
	case o.Reject == fsm.Accepted:
		l.metrics.programming.committed(c, o.Revision, l.c.Clock.Wall())
		return 0
	case o.Reject == fsm.RejectUnfit:
		l.unfit.note(part, c, o)
		return 0
	}
	l.c.Log.Debug("proposal refused", "command", kindOf(c), "err", o.Err())
	return 1
}

// maxTogether is how many commands go into one entry: a few milliseconds of applying, so that urgent ones need not
// wait long behind it.
const maxTogether = 256

// sleep waits for d, for one of the tokens or for the end of ctx; it tells whether to go on.
func sleep(ctx context.Context, clock Clock, d time.Duration, wake <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-clock.After(d):
	}
	return ctx.Err() == nil
}

// follow leaves a token in wake whenever one of the tables changes, until ctx ends.
func follow(ctx context.Context, record fsm.Reader, wake chan<- struct{}, tables ...fsm.Table) {
	for {
		v := record.Read()
		poke(wake)
		if err := record.Wait(ctx, v, tables...); err != nil {
			return
		}
	}
}

// poke leaves a token if there is none.
func poke(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// gaveUp tells whether an error is only the end of the term.
func gaveUp(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.Canceled)
}
