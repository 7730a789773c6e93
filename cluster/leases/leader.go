// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"fairlead.io/fairlead/fsm"
)

// Group is the controller group as its leader sees it.
type Group interface {
	// Propose commits commands in order, in one entry and before everything that can wait, and gives their outcomes once
	// this member applied them.
	Propose(ctx context.Context, proposals []fsm.Proposal) ([]fsm.Outcome, error)
	// VerifyLeader has a majority confirm that this member leads, later than the call began.
	VerifyLeader(ctx context.Context) error
}

// Clock is the time that leases are measured with.
type Clock interface {
	// Now is the reading of a clock that never runs back and goes on while the machine sleeps (CLOCK_BOOTTIME).
	Now() time.Duration
	// After gives the time once d has passed on that clock.
	After(d time.Duration) <-chan time.Time
	// Wall is what people call the time. It is stamped on proposals and never compared.
	Wall() time.Time
}

// Options is what a Leader is made of.
type Options struct {
	Record fsm.Reader
	Group  Group
	Clock  Clock
	Log    *slog.Logger
	Timing Timing // zero fields take their default
}

// Errors of Renew. Each says that nothing was granted.
var (
	ErrNotLeading = errors.New("this member does not lead")
	ErrOvertaken  = errors.New("a newer renewal of the node came")
	ErrBoot       = errors.New("the node is not registered under this boot")
)

// Leader answers renewals and proposes while its member leads. It is made once and run once in every term.
type Leader struct {
	o        Options
	verifier verifier

	mu   sync.Mutex
	term *term // nil while this member does not lead
	last *term // the newest
}

// term is one term. Keeper is guarded by the Leader's lock.
type term struct {
	*Keeper
	number  uint64
	wake    chan struct{} // holds a token when it is to be decided anew
	changed chan struct{} // is closed when renewals are to be looked at again
}

// New makes a Leader that does nothing yet.
func New(o Options) *Leader {
	o.Timing = o.Timing.withDefaults()
	return &Leader{o: o, verifier: verifier{verify: o.Group.VerifyLeader}}
}

// Asked tells whether nodes are to renew leases: some addresses are answered for on segments, or were.
func Asked(v *fsm.View) bool {
	return len(fsm.List[*fsm.L2Advertisement](v, fsm.TableL2Advertisements)) > 0 || len(fsm.List[*fsm.Lease](v, fsm.TableLeases)) > 0
}

func tables() []fsm.Table {
	return []fsm.Table{
		fsm.TableL2Advertisements, fsm.TableLeases, fsm.TableAllocations, fsm.TableRoutes, fsm.TableNodes, fsm.TableHolds, fsm.TableGroup,
		fsm.TableMoves,
	}
}

// Run works for one term, until ctx ends. It is run again in the same one when the record begins another life.
func (l *Leader) Run(ctx context.Context, number uint64) {
	t := l.begin(number)
	log := l.o.Log.With("term", number)
	defer l.end()
	var following sync.WaitGroup
	defer following.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	following.Go(func() { l.follow(ctx, t) })
	for ctx.Err() == nil {
		var look <-chan time.Time
		if Asked(l.o.Record.Read()) {
			l.decide(ctx, t, log)
			look = l.o.Clock.After(l.rest(t))
		}
		select {
		case <-ctx.Done():
		case <-t.wake:
		case <-look:
		}
	}
}

// begin enters a term. Who led in it before was this member: what it knows is worth something.
func (l *Leader) begin(number uint64) *term {
	l.mu.Lock()
	defer l.mu.Unlock()
	var former *Keeper
	if l.last != nil && l.last.number == number {
		former = l.last.Keeper
	}
	k := NewKeeper(l.o.Timing, l.o.Record.Read().Group().Epoch, l.o.Clock.Now(), former)
	l.term = &term{Keeper: k, number: number, wake: make(chan struct{}, 1), changed: make(chan struct{})}
	l.last = l.term
	return l.term
}

// end leaves the term: whoever waits learns that.
func (l *Leader) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term.tell()
	l.term = nil
}

// tell has all renewals that wait look again. The Leader's lock is held.
func (t *term) tell() {
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *term) poke() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// follow pokes whenever the record changed.
func (l *Leader) follow(ctx context.Context, t *term) {
	for {
		v := l.o.Record.Read()
		if l.o.Record.Wait(ctx, v, tables()...) != nil {
			return
		}
		t.poke()
	}
}

// Bounds of proposals.
const (
	maxCommands   = 256 // of one entry
	proposeWithin = 5 * time.Second
)

// minLook is the least pause between two looks that nothing was heard of.
const minLook = 2 * time.Millisecond

// rest is how long nothing has to be decided unless something is heard.
func (l *Leader) rest(t *term) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.o.Clock.Now()
	return max(t.Due(now)-now, minLook)
}

// decide decides, and commits what comes of it. What was not committed is decided again.
func (l *Leader) decide(ctx context.Context, t *term, log *slog.Logger) {
	l.mu.Lock()
	steps := t.Decide(l.o.Clock.Now(), l.o.Record.Read())
	t.tell()
	l.mu.Unlock()
	for len(steps) > 0 {
		var proposals []fsm.Proposal
		n := 0
		for n < len(steps) && len(proposals)+len(steps[n].Commands) <= maxCommands {
			for _, c := range steps[n].Commands {
				proposals = append(proposals, fsm.Proposal{Actor: "leader", Reason: steps[n].Why, AtUnixMilli: l.o.Clock.Wall().UnixMilli(), Command: c})
			}
			n++
		}
		if !l.propose(ctx, proposals, log) {
			return
		}
		steps = steps[n:]
	}
}

func (l *Leader) propose(ctx context.Context, proposals []fsm.Proposal, log *slog.Logger) bool {
	ctx, cancel := context.WithTimeout(ctx, proposeWithin)
	defer cancel()
	outcomes, err := l.o.Group.Propose(ctx, proposals)
	if err != nil {
		if ctx.Err() == nil {
			log.Warn("leases not committed", "err", err)
		}
		return false
	}
	for i, o := range outcomes {
		switch c := proposals[i].Command.(type) {
		case *fsm.GrantLease:
			if o.Err() == nil {
				log.Info("lease granted", "vip", c.VIP, "node", c.Holder, "reason", proposals[i].Reason)
				continue
			}
		case *fsm.EndLease:
			if o.Err() == nil {
				log.Info("lease ended", "vip", c.VIP, "reason", proposals[i].Reason)
				continue
			}
		}
		if err := o.Err(); err != nil {
			log.Debug("lease refused", "err", err) // the record changed meanwhile
		}
	}
	return true
}

// Renew answers a renewal with all leases of its node: as soon as there is something to say, and soon in any case.
//
// Errors: ErrNotLeading, ErrOvertaken, ErrBoot, ctx's.
func (l *Leader) Renew(ctx context.Context, r Renewal) ([]Grant, error) {
	t, err := l.hear(r)
	if err != nil {
		return nil, err
	}
	if err := l.park(ctx, t, r); err != nil {
		return nil, err
	}
	if err := l.verifier.confirm(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, ErrNotLeading
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term != t {
		return nil, ErrNotLeading
	}
	grants, newest := t.Answer(l.o.Clock.Now(), l.o.Record.Read(), r.Node, r.Boot, r.Sent)
	if !newest {
		return nil, ErrOvertaken
	}
	return grants, nil
}

// hear takes a renewal in.
func (l *Leader) hear(r Renewal) (*term, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.term
	if t == nil {
		return nil, ErrNotLeading
	}
	n, known := fsm.Get[*fsm.Node](l.o.Record.Read(), fsm.TableNodes, string(r.Node))
	if !known || n.Boot != r.Boot {
		return nil, ErrBoot
	}
	if !t.Heard(l.o.Clock.Now(), r) {
		return nil, ErrOvertaken
	}
	if t.Stirs(r.Node) {
		t.poke()
	}
	return t, nil
}

// park waits until there is something to say to a node, for some time.
func (l *Leader) park(ctx context.Context, t *term, r Renewal) error {
	long := l.o.Timing.Idle
	if len(r.Held) > 0 {
		long = l.o.Timing.Park
	}
	enough := l.o.Clock.After(long)
	for {
		l.mu.Lock()
		over, news, changed := l.term != t, t.News(l.o.Clock.Now(), l.o.Record.Read(), r.Node), t.changed
		l.mu.Unlock()
		if over {
			return ErrNotLeading
		}
		if news {
			return nil
		}
		select {
		case <-changed:
		case <-enough:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// verifier has leadership confirmed for many at once: one confirmation serves all who asked before it began.
type verifier struct {
	verify func(context.Context) error

	mu      sync.Mutex
	running bool
	next    *round
}

// round is a confirmation that has not begun yet, or runs.
type round struct {
	done chan struct{}
	err  error // valid once done is closed
}

// verifyWithin bounds a confirmation: a quorum that takes longer is out of reach.
const verifyWithin = 2 * time.Second

// confirm waits for a confirmation that begins now or later.
func (v *verifier) confirm(ctx context.Context) error {
	v.mu.Lock()
	if v.next == nil {
		v.next = &round{done: make(chan struct{})}
	}
	r := v.next
	if !v.running {
		v.running = true
		go v.work()
	}
	v.mu.Unlock()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// work confirms until nobody asks any more.
func (v *verifier) work() {
	for {
		v.mu.Lock()
		r := v.next
		v.next = nil
		if r == nil {
			v.running = false
			v.mu.Unlock()
			return
		}
		v.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), verifyWithin)
		r.err = v.verify(ctx)
		cancel()
		close(r.done)
	}
}
