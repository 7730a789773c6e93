// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	defaultEvery = 5 * time.Second
	// againAfter is the pause after a look that failed, at most: LBCF and we can act again as soon as the API server answers.
	againAfter = time.Second
	lookWithin = 10 * time.Second
	// holds is for how many pauses it holds without an answer that nobody is there: whoever starts, finds that it leads, registers
	// something and ends takes longer.
	holds = 2
)

// unknown is the reason before the first answer.
const unknown = "it is not known yet whether an LBCF controller runs"

// Options are what a Check is made of.
type Options struct {
	// Look asks the API server once (Cluster.Look).
	Look func(context.Context) (Sight, error)
	// Settle is called after a look that saw nobody, before that counts: what is acted on must show all that LBCF did. Optional.
	// Errors: it cannot be said yet.
	Settle func(context.Context) error
	// Force never looks: whoever set it answers for LBCF being gone.
	Force bool
	// Every is the pause between two looks; 0 means 5 s.
	Every time.Duration
	// Logger gets each change, and the first of several failures in a row.
	Logger *slog.Logger
	// Registerer gets fairlead_lbcf_handover_busy and fairlead_lbcf_handover_errors_total; nil: nobody.
	Registerer prometheus.Registerer
}

// Check knows whether LBCF's objects may be acted upon. Its methods may be called by anybody at any time.
type Check struct {
	o      Options
	gauge  prometheus.Gauge
	errors prometheus.Counter

	mu      sync.Mutex
	reason  string
	busy    bool
	failed  bool          // a look of this Run did
	changed chan struct{} // closed by the next change
}

// New makes a Check that is busy until Run has heard of the cluster. Errors: Registerer refuses the metrics.
func New(o Options) (*Check, error) {
	if o.Every == 0 {
		o.Every = defaultEvery
	}
	c := &Check{
		o: o, reason: unknown, busy: true, changed: make(chan struct{}),
		gauge: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fairlead_lbcf_handover_busy", Help: "1 while LBCF's objects are left alone, since an LBCF controller runs or may run.",
		}),
		errors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fairlead_lbcf_handover_errors_total", Help: "Looks for an LBCF controller that the API server did not answer.",
		}),
	}
	if o.Force {
		c.reason, c.busy = "", false
	}
	c.show()
	if o.Registerer != nil {
		if err := errors.Join(o.Registerer.Register(c.gauge), o.Registerer.Register(c.errors)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Unanswered tells whether the API server was asked in this Run and has not said yet whether an LBCF controller runs, or what one that
// is gone has left.
func (c *Check) Unanswered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed && c.reason == unknown
}

// Busy tells whether LBCF's objects must be left alone, and why: an LBCF controller runs, or it is not known yet.
func (c *Check) Busy() (reason string, busy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason, c.busy
}

// Changed is closed when Busy has another answer than at this call.
func (c *Check) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// Run looks again and again until ctx ends, and returns ctx's error. It begins and ends by not knowing: what an earlier Run saw
// may be long ago. While the API server does not answer, the last answer holds, but that nobody is there for two pauses only: it may
// answer others, and an LBCF controller may have come, and gone. What that left is read then as at the beginning.
func (c *Check) Run(ctx context.Context) error {
	if c.o.Force {
		<-ctx.Done()
		return ctx.Err()
	}
	defer c.forget()
	failing := false
	pause := time.NewTimer(0)
	defer pause.Stop()
	expiry := time.AfterFunc(holds*c.o.Every, c.expire)
	defer expiry.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-pause.C:
		}
		seen, err := c.settled(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			c.errors.Inc()
			c.fail()
			if !failing {
				c.o.Logger.Warn("cannot look for an LBCF controller", "err", err)
			}
		default:
			c.set(Judge(seen))
			expiry.Reset(holds * c.o.Every)
		}
		failing = err != nil
		next := c.o.Every
		if failing {
			next = min(next, againAfter)
		}
		pause.Reset(next)
	}
}

func (c *Check) look(ctx context.Context) (Sight, error) {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	return c.o.Look(ctx)
}

// settled looks, and once more if that is the first look that sees nobody: what it is settled upon takes a while.
func (c *Check) settled(ctx context.Context) (Sight, error) {
	seen, err := c.look(ctx)
	if err != nil || c.o.Settle == nil {
		return seen, err
	}
	if _, busy := Judge(seen); busy {
		return seen, nil
	}
	if _, was := c.Busy(); !was {
		return seen, nil
	}
	// What takes so long is no answer, either: what was taken over already must not wait for it.
	late := time.AfterFunc(lookWithin, func() {
		c.fail()
		c.o.Logger.Warn("cannot read yet what an LBCF controller may have left", "for", lookWithin)
	})
	defer late.Stop()
	if err := c.o.Settle(ctx); err != nil {
		return Sight{}, err
	}
	return c.look(ctx)
}

func (c *Check) fail() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = true
}

// expire has it not be known any more that nobody is there.
func (c *Check) expire() {
	if _, busy := c.Busy(); busy {
		return
	}
	c.fail()
	c.set(unknown, true)
}

func (c *Check) forget() {
	c.mu.Lock()
	c.failed = false
	c.mu.Unlock()
	c.set(unknown, true)
}

func (c *Check) set(reason string, busy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if reason == c.reason && busy == c.busy {
		return
	}
	switch {
	case !busy:
		c.o.Logger.Info("no LBCF controller runs: its objects are ours")
	case reason != unknown && (!c.busy || c.reason == unknown): // said once, not with each replica that becomes ready
		c.o.Logger.Warn("an LBCF controller runs: its objects are left to it", "reason", reason)
	}
	c.reason, c.busy = reason, busy
	c.show()
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *Check) show() {
	c.gauge.Set(0)
	if c.busy {
		c.gauge.Set(1)
	}
}
