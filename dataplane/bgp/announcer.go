// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Routes is what a record asks a speaker to announce, and how new that is.
type Routes struct {
	Revision Revision
	Paths    Paths
	Peers    []Peer
	// Since and Touched say what changed, so that a change need not be searched for: only the prefixes in Touched, in
	// order, may have other paths than the routes of revision Since, whose peers are the same.
	// A zero Since says nothing.
	Since   Revision
	Touched []netip.Prefix
}

func (r Routes) sameContent(s Routes) bool {
	return r.Paths.Equal(s.Paths) && slices.EqualFunc(r.Peers, s.Peers, Peer.Equal)
}

// Source is where routes come from.
type Source interface {
	// Routes returns the routes of the state applied last. The caller does not change the slices.
	Routes() Routes
	// Changed is ready to be received from, at least once, after Routes returns something new.
	Changed() <-chan struct{}
}

// Group says how the owner of the speaker stands with the group that decides.
type Group interface {
	Contact() Contact
}

// Speaker announces.
type Speaker interface {
	// Apply makes the speaker announce desired. It may be repeated.
	Apply(ctx context.Context, desired Desired) error
	// Written says whether all that was applied has left for the open sessions.
	Written(ctx context.Context) (bool, error)
	// Links tells how the speaker stands with each peer that holds paths of ours, or may: also with those that it lost,
	// or never reached, while they may keep what was announced before.
	Links(ctx context.Context) ([]Link, error)
	// Mend restarts sessions by what Links told last, where a peer has all that it is to have and may hold more. It waits so much longer
	// than it would by itself since the peer had all.
	Mend(ctx context.Context, longer time.Duration) error
}

// Store keeps what was announced last across a restart.
type Store interface {
	Load() (*Routes, error) // nil if nothing was ever saved
	Save(Routes) error
}

// Clock is a monotonic clock.
type Clock interface {
	Now() time.Duration
	After(d time.Duration) <-chan time.Time
}

// SystemClock returns the clock of this process.
func SystemClock() Clock { return systemClock{time.Now()} }

type systemClock struct{ start time.Time }

func (c systemClock) Now() time.Duration                     { return time.Since(c.start) }
func (c systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// AnnouncerConfig is what an Announcer works with. Rules, Clock, Logger, Announced, Turn and Withdrawn may be left out.
type AnnouncerConfig struct {
	Source  Source
	Group   Group
	Speaker Speaker
	Store   Store
	Rules   Rules
	Clock   Clock
	Logger  *slog.Logger
	// Announced is told, from the announcer's goroutine, up to which revision the routes are on the wire and kept for a
	// restart. The revision never runs back. It must not block.
	Announced func(Revision)
	// Turn is how many speakers that announce the same restart a session with a peer before this one does, where all may have to: one
	// waits for the other, for so long as that takes, and for nobody's word. Nil is none.
	Turn func() int
	// Withdrawn is told in the same way up to which revision no peer holds anything that the routes lack.
	Withdrawn func(Revision)
}

// Announcer keeps a speaker announcing what the record asks for, under the rules of Standing.
type Announcer struct {
	AnnouncerConfig
	metrics  *metrics
	standing Standing
	keeper   *keeper
	stored   *Routes // of an earlier run

	news      news    // since the speaker was last given something
	applied   *Routes // what the speaker was last given without an error
	limited   *Paths  // and its paths without those that are too many for a peer; nil if there were none
	demoted   bool    // whether it was given that demoted
	appliedAt time.Duration
	retryAt   time.Duration // not before, after an error
	backoff   time.Duration
	written   Revision      // up to which the routes have left
	pending   bool          // more has been applied since
	look      time.Duration // until the next look at whether it has left
	announced Revision

	changes   uint64   // that were applied
	receipt   *receipt // that was asked for, nil for none
	asked     change   // that it was asked for at
	askedAt   time.Duration
	slow      change // the newest whose receipt was told to take long
	received  change // the newest that a receipt was given for
	withdrawn Revision

	mu     sync.Mutex
	status Status
}

// Status is how an announcer stands.
type Status struct {
	Verdict
	Announced Revision // see AnnouncerConfig.Announced
	Withdrawn Revision // see AnnouncerConfig.Withdrawn
	Paths     int      // that the speaker was given
	Peers     int
	LeftOut   int            // paths and peers of these that cannot be announced as they are
	Overfull  []netip.Prefix // with more paths than some peer is sent, in order: see Desired.Overfull
	Err       error          // of the last attempt to announce or to keep what was announced; nil if it went well
}

// Times of the loop.
const (
	lookEvery   = 100 * time.Millisecond // at the group: well under every time of Rules
	firstLook   = 2 * time.Millisecond   // at whether everything has left, then twice as long each time
	repeatEvery = 30 * time.Second       // Apply, which compares with what is really there
	firstRetry  = 100 * time.Millisecond
	lastRetry   = 5 * time.Second
)

// NewAnnouncer returns an announcer that does nothing until Run.
func NewAnnouncer(c AnnouncerConfig) *Announcer {
	if c.Clock == nil {
		c.Clock = SystemClock()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Announced == nil {
		c.Announced = func(Revision) {}
	}
	if c.Turn == nil {
		c.Turn = func() int { return 0 }
	}
	if c.Withdrawn == nil {
		c.Withdrawn = func(Revision) {}
	}
	return &Announcer{AnnouncerConfig: c, metrics: newMetrics()}
}

// Status returns how things stand. It may be called from any goroutine.
func (a *Announcer) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.status
}

// Run announces until ctx ends, and returns once what was announced last is kept. The speaker is left as it is: its
// owner decides whether it detaches or drains. Errors are ctx's only; all others are retried and shown by Status.
func (a *Announcer) Run(ctx context.Context) error {
	stored, err := a.Store.Load()
	if err != nil {
		// What cannot be read is not announced; the record will tell once a leader is there.
		a.Logger.Error("announced state not usable", "err", err)
		a.note(func(s *Status) { s.Err = err })
		stored = nil
	}
	a.stored = stored
	a.keeper = startKeeper(a.Store, a.Clock, stored)
	defer a.keeper.stop()
	for {
		wait := a.turn(ctx)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-a.Source.Changed():
		case <-a.keeper.done:
		case <-a.Clock.After(wait):
		}
	}
}

// turn does what there is to do now and says when to look again.
func (a *Announcer) turn(ctx context.Context) time.Duration {
	// The group is asked before the record: what is applied by then is in the routes.
	contact := a.Group.Contact()
	routes := a.Source.Routes()
	now := a.Clock.Now()
	x := Situation{Now: now, Contact: contact, Record: routes.Revision}
	if a.stored != nil {
		x.Stored = &a.stored.Revision
	}
	before := a.Status().Verdict
	v := a.standing.Look(a.Rules, x)
	if v.Open != before.Open || v.Demoted != before.Demoted || v.FromStored != before.FromStored {
		a.Logger.Info("announcing", "open", v.Open, "demoted", v.Demoted, "from_stored", v.FromStored, "reason", v.Reason)
	}
	a.note(func(s *Status) { s.Verdict = v })
	if !v.Open {
		return lookEvery
	}
	if v.FromStored {
		routes = *a.stored
	}
	if a.applied != nil && routes.Revision.Compare(a.applied.Revision) < 0 {
		routes = *a.applied // what is announced never runs back
	}
	if now >= a.retryAt {
		a.lookWritten(ctx, now)
		a.lookReceived(ctx, now)
		a.mend(ctx, now)
		a.news.take(routes)
		if a.due(routes, v.Demoted, now) {
			a.apply(ctx, routes, v.Demoted, now)
		}
	}
	a.advance()
	if a.pending || a.receipt != nil {
		a.look = min(max(2*a.look, firstLook), lookEvery)
		return a.look
	}
	return lookEvery
}

// due says whether the speaker must be told: something changed, or it has not been compared for a while.
func (a *Announcer) due(routes Routes, demoted bool, now time.Duration) bool {
	if a.applied == nil || a.demoted != demoted || now-a.appliedAt >= repeatEvery {
		return true
	}
	if routes.Revision.Compare(a.applied.Revision) <= 0 {
		return a.repeered(routes)
	}
	if a.news.known && len(a.news.touched) > 0 || !a.news.known && !routes.sameContent(*a.applied) {
		return true
	}
	a.applied.Revision = routes.Revision // nothing to tell: what is announced is this new already
	return false
}

// repeered tells whether routes of the revision that was applied have other peers: passwords are not of the record.
func (a *Announcer) repeered(routes Routes) bool {
	return routes.Revision == a.applied.Revision && !slices.EqualFunc(routes.Peers, a.applied.Peers, Peer.Equal)
}

func (a *Announcer) apply(ctx context.Context, routes Routes, demoted bool, now time.Duration) {
	desired := Desired{Paths: routes.Paths, Peers: routes.Peers, Demoted: demoted}
	if a.applied != nil && demoted == a.demoted && now-a.appliedAt < repeatEvery && !a.repeered(routes) {
		desired.Touched = a.news.prefixes()
	}
	overfull := a.overfull(desired)
	limited := a.limit(desired, overfull)
	if limited != nil {
		desired.Paths = *limited
	}
	err := a.Speaker.Apply(ctx, desired)
	a.metrics.applied.Observe((a.Clock.Now() - now).Seconds())
	if ctx.Err() != nil {
		return
	}
	a.noteErr(err, now)
	a.news = news{known: err == nil, upto: routes.Revision}
	// The rest of an invalid set was applied, and trying again is no help. What is left out holds back no report: nothing of it is on the
	// wire, so that withdrawals have nothing to wait for, and drains of other addresses would wait for its mend.
	if err != nil && !errors.Is(err, ErrInvalid) {
		return
	}
	a.backoff, a.retryAt = 0, 0
	a.applied, a.limited, a.demoted, a.appliedAt = &routes, limited, demoted, now
	a.pending, a.look = true, 0
	a.changes++
	a.keeper.keep(routes, desired.Touched != nil)
	if before := a.Status().Overfull; len(overfull) > 0 && !slices.Equal(before, overfull) {
		a.Logger.Warn("more next hops than a peer is sent: raise its send-max", "prefixes", len(overfull), "first", overfull[0])
	}
	a.note(func(s *Status) {
		s.Paths, s.Peers, s.LeftOut, s.Overfull = routes.Paths.Len(), len(routes.Peers), leftOut(err), overfull
	})
}

// overfull lists the prefixes with more paths than some peer is sent.
func (a *Announcer) overfull(d Desired) []netip.Prefix {
	before := a.Status().Overfull
	if d.Touched == nil {
		return slices.SortedFunc(maps.Keys(d.Overfull()), netip.Prefix.Compare)
	}
	part := Desired{Peers: d.Peers, Paths: d.Paths.Only(d.Touched)}
	now := slices.AppendSeq(slices.DeleteFunc(slices.Clone(before), func(p netip.Prefix) bool {
		_, touched := slices.BinarySearchFunc(d.Touched, p, netip.Prefix.Compare)
		return touched
	}), maps.Keys(part.Overfull()))
	slices.SortFunc(now, netip.Prefix.Compare)
	return now
}

// limit gives the paths of what is desired without those that are too many for a peer, where some are overfull; nil if none are.
func (a *Announcer) limit(d Desired, overfull []netip.Prefix) *Paths {
	if len(overfull) == 0 {
		return nil
	}
	most := limitsOf(d.Peers)
	of := func(p netip.Prefix) []Path { return most.of(d.Paths.Of(p)) }
	var out Paths
	if d.Touched != nil && a.limited != nil {
		out = a.limited.With(d.Touched, of)
	} else {
		out = d.Paths.rebuilt().With(overfull, of)
	}
	return &out
}

// noteErr shows an error and puts the next attempt off, longer each time. A speaker that is away fails whatever it is asked in a turn: that
// counts, and is told, once.
func (a *Announcer) noteErr(err error, now time.Duration) {
	a.note(func(s *Status) { s.Err = err })
	if err == nil {
		return
	}
	a.metrics.failures.Inc()
	if now < a.retryAt {
		return
	}
	a.backoff = min(max(2*a.backoff, firstRetry), lastRetry)
	a.retryAt = now + a.backoff
	a.Logger.Error("announce", "err", err)
}

func (a *Announcer) note(change func(*Status)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(&a.status)
}
