// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
)

// ErrDown means that the child has ended, and that the next one does not speak yet.
var ErrDown = errors.New("the bgp speaker's process has ended and is being started again")

// Options are what a Speaker needs.
type Options struct {
	Settings // the child's
	// Start starts a child. Errors: whatever keeps it from being started.
	Start  func() (Child, error)
	Logger *slog.Logger
}

// Times of a Speaker.
const (
	firstPause   = 100 * time.Millisecond // before a child is started again, twice as long each time
	longestPause = 10 * time.Second
	steadyAfter  = time.Minute     // a child that lived for so long is started again at once
	portWait     = 5 * time.Second // for the port of a child whose parent was killed: see leaveWithin
	answerWithin = 2 * time.Minute // a child that takes longer for anything is ended: so long, and
	andPerPath   = time.Millisecond
	silence      = 15 * time.Second       // after which a child that hears nothing ends; a switch whose keepalives fail waits 30 s
	wordEvery    = time.Second            // of those that keep a child from that
	lookEvery    = 100 * time.Millisecond // at how things stand with peers, while others wait for them
	collectWait  = 2 * time.Second
)

// Speaker announces paths by a child. It implements bgp.Speaker; its methods may be called from several goroutines.
type Speaker struct {
	options Options
	stop    context.CancelFunc
	ended   chan struct{} // closed when no child is started any more

	turn chan struct{} // held by who asks the child, and by who starts one

	// What follows is read and changed by who holds the turn.
	child   *child
	stopped bool
	desired *bgp.Desired // applied last; nil before the first
	told    *bgp.Desired // what the child was told last; nil if it was told nothing yet
	doubt   bool         // the last Apply failed: what the next one calls touched is so since another one
	former  former       // peers that may keep what former children told them
	admits  *admission   // says which of the peers the child is to have

	wake chan struct{} // assure has somebody to look at

	mu       sync.Mutex
	restarts int
	heldBack int
}

// New starts a child that announces nothing yet. Detach or Drain ends it. Errors: those of Start; what keeps the child's speaker from being opened.
func New(o Options) (*Speaker, error) {
	o.Silence = silence
	ctx, cancel := context.WithCancel(context.Background())
	s := &Speaker{options: o, stop: cancel, ended: make(chan struct{}), turn: make(chan struct{}, 1), wake: make(chan struct{}, 1), admits: newAdmission()}
	first, err := s.startWhenFree()
	if err != nil {
		cancel()
		return nil, err
	}
	s.child = first
	go s.supervise(ctx, first)
	go s.assure(ctx)
	return s, nil
}

// startWhenFree starts the first child. The child of a parent that was killed may have the port for a moment more.
func (s *Speaker) startWhenFree() (*child, error) {
	for deadline := time.Now().Add(portWait); ; time.Sleep(firstPause) {
		c, err := s.start()
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			return c, err
		}
	}
}

// start starts a child and has it listen.
func (s *Speaker) start() (*child, error) {
	one, err := s.options.Start()
	if err != nil {
		return nil, fmt.Errorf("start bgp speaker: %w", err)
	}
	c := &child{Child: one, channel: newChannel(one.Conn())}
	a, err := c.ask(request{Do: doStart, Start: s.options.Settings, Memory: mayUse(nil)}, answerWithin)
	if err = errors.Join(err, a.err()); err != nil {
		c.Kill()
		c.release()
		return nil, err
	}
	return c, nil
}

// supervise starts another child whenever one has ended, until ctx ends.
func (s *Speaker) supervise(ctx context.Context, c *child) {
	defer close(s.ended)
	pause := firstPause
	for {
		began := time.Now()
		select {
		case <-ctx.Done():
			return
		case <-c.Gone():
		}
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > steadyAfter {
			pause = firstPause
		}
		s.options.Logger.Error("bgp speaker's process ended", "reason", c.Reason(), "output", c.LastWords(), "again_in", pause)
		if c = s.replace(ctx, &pause); c == nil {
			return
		}
	}
}

// assure tells the child now and then that its parent is there, and looks whom it may have.
func (s *Speaker) assure(ctx context.Context) {
	for wait := wordEvery; ; {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-time.After(wait):
		}
		var err error
		if wait, err = with(ctx, s, s.attend); err != nil {
			wait = wordEvery // supervise sees a child that ended
		}
	}
}

// replace has a new child in the place of one that ended announce what that did; nil once ctx has ended.
func (s *Speaker) replace(ctx context.Context, pause *time.Duration) *child {
	s.take()
	s.lost()
	s.give()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(*pause):
		}
		*pause = min(2**pause, longestPause)
		s.take()
		c, err := s.succeed(ctx)
		s.give()
		if err == nil {
			return c
		}
		s.options.Logger.Error("bgp speaker's process not started", "err", err, "again_in", *pause)
	}
}

// lost notes that the child is gone: its sessions are over, and whom it told something may keep that.
func (s *Speaker) lost() {
	s.former.lost(s.desired, time.Now())
	if s.child != nil {
		s.child.release()
	}
	s.child, s.told = nil, nil
	held := s.admits.died(time.Now())
	s.mu.Lock()
	s.restarts++
	s.heldBack += len(held)
	s.mu.Unlock()
	for _, p := range held {
		f := p.fault()
		s.options.Logger.Error("bgp peer held back", "peer", p.peer.Address, "name", p.peer.Name, "deaths", p.strikes, "again_in", time.Until(p.until).Round(time.Second),
			"reason", f.Reason, "remedy", f.Remedy)
	}
}

// succeed starts a child that announces what was applied last.
func (s *Speaker) succeed(ctx context.Context) (*child, error) {
	if s.stopped || ctx.Err() != nil {
		return nil, bgp.ErrStopped
	}
	c, err := s.start()
	if err != nil {
		return nil, err
	}
	c.generation = s.Restarts()
	s.child = c
	if s.desired != nil {
		s.admit()
		s.look()
		if err := s.tell(*s.desired); err != nil {
			s.options.Logger.Error("bgp speaker started again announces not all", "err", err)
		}
	}
	return c, nil
}

// Restarts tells how many children have ended.
func (s *Speaker) Restarts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.restarts
}

// HeldBack tells how often peers were held back.
func (s *Speaker) HeldBack() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heldBack
}

func (s *Speaker) take() { s.turn <- struct{}{} }
func (s *Speaker) give() { <-s.turn }

// with calls f while nobody else asks the child. If ctx ends first, f goes on, and what it finds is lost.
func with[T any](ctx context.Context, s *Speaker, f func() (T, error)) (T, error) {
	type found struct {
		it  T
		err error
	}
	var none T
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return none, ctx.Err()
	}
	done := make(chan found, 1)
	go func() {
		defer s.give()
		if s.stopped {
			done <- found{none, bgp.ErrStopped}
			return
		}
		it, err := f()
		done <- found{it, err}
	}()
	select {
	case got := <-done:
		return got.it, got.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// ask asks the child.
func (s *Speaker) ask(r request) (answer, error) {
	if s.child == nil {
		return answer{}, ErrDown
	}
	a, err := s.child.ask(r, s.within())
	if err != nil {
		return answer{}, fmt.Errorf("%w (%w)", ErrDown, err)
	}
	return a, a.err()
}

// within is how long the child may take: it may look at all paths for whatever it is asked.
func (s *Speaker) within() time.Duration {
	if s.desired == nil {
		return answerWithin
	}
	return answerWithin + time.Duration(s.desired.Paths.Len())*andPerPath
}

// tell has the child announce something, to those whom it may have. What the child knows then it knows even where it could not do all of it.
func (s *Speaker) tell(desired bgp.Desired) error {
	memory := mayUse(&desired)
	desired.Peers = s.admits.given(desired.Peers)
	a, err := s.child.ask(request{Do: doAnnounce, Announce: announcementOf(desired, s.told), Memory: memory}, s.within())
	if err != nil {
		return fmt.Errorf("%w (%w)", ErrDown, err)
	}
	s.told = &desired
	return a.err()
}

// Apply implements bgp.Speaker. Errors: the child's; ErrDown, after which desired is announced all the same once a
// child speaks again.
func (s *Speaker) Apply(ctx context.Context, desired bgp.Desired) error {
	_, err := with(ctx, s, func() (struct{}, error) {
		if s.doubt {
			desired.Touched = nil
		}
		s.desired = &desired
		s.admits.want(desired.Peers, time.Now())
		err := ErrDown
		if s.child != nil {
			s.admit()
			s.look()
			s.handOver()
			err = s.tell(desired)
		}
		s.doubt = err != nil || ctx.Err() != nil
		return struct{}{}, err
	})
	return err
}

// Written implements bgp.Speaker.
func (s *Speaker) Written(ctx context.Context) (bool, error) {
	return with(ctx, s, func() (bool, error) {
		a, err := s.ask(request{Do: doWritten})
		return a.Written && (s.desired == nil || s.told != nil), err
	})
}

// Links implements bgp.Speaker. Peers to whom a former child spoke and that are gone since are told of for as long as they may keep
// what it told them.
func (s *Speaker) Links(ctx context.Context) ([]bgp.Link, error) {
	return with(ctx, s, func() ([]bgp.Link, error) {
		a, err := s.ask(request{Do: doLinks})
		if err != nil {
			return nil, err
		}
		for i := range a.Links {
			if l := &a.Links[i]; l.Session > 0 { // each child counts its own from one
				l.Session += uint64(s.child.generation) << 40
			}
		}
		return s.former.with(a.Links, time.Now()), nil
	})
}

// Mend implements bgp.Speaker.
func (s *Speaker) Mend(ctx context.Context, longer time.Duration) error {
	_, err := with(ctx, s, func() (answer, error) { return s.ask(request{Do: doMend, Longer: longer}) })
	return err
}

// Detach leaves all sessions such that switches keep the paths, and ends the child. The speaker cannot be used any more.
func (s *Speaker) Detach(ctx context.Context) error { return s.end(ctx, doDetach) }

// Drain leaves all sessions for good, and ends the child. The speaker cannot be used any more.
func (s *Speaker) Drain(ctx context.Context) error { return s.end(ctx, doDrain) }

func (s *Speaker) end(ctx context.Context, how verb) error {
	c, err := with(ctx, s, func() (*child, error) {
		s.stop()
		c := s.child
		var err error
		if c != nil {
			_, err = s.ask(request{Do: how})
		}
		s.stopped, s.child = true, nil
		return c, err
	})
	if errors.Is(err, bgp.ErrStopped) {
		return err
	}
	<-s.ended
	if c == nil {
		return err
	}
	select {
	case <-c.Gone():
	case <-ctx.Done():
		c.Kill()
	}
	c.release()
	return err
}
