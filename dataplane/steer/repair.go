// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// hear takes note of an event.
func (s *Steer) hear(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.want == nil || s.view == nil {
		return // all will be read anyway
	}
	switch {
	case e.Lost, e.Filter:
		s.view = nil
	case e.Rule != nil && s.view.Rules.Has(*e.Rule) == e.Gone && s.concerns(*e.Rule):
		s.view = nil
	case e.Route != nil && s.view.Routes.Has(*e.Route) == e.Gone:
		s.view = nil
	case e.Node:
		s.nodeOld = true
	default:
		return // what we did ourselves, or what does not concern us
	}
	select {
	case s.damaged <- struct{}{}:
	default:
	}
}

// concerns tells whether a rule is ours, stands where ours do or in front of them, or may be the old system's.
func (s *Steer) concerns(r Rule) bool {
	q := s.query()
	return r.ours() || r.Priority == s.o.PriorityIn || r.Priority == s.o.PriorityOut || r.Priority == s.o.PriorityMark ||
		q.front(r) || r.address().IsValid() && (r.Table == q.InTable || r.Table == q.OutTable)
}

// Run repairs what somebody else changes, within a second, until ctx ends; then it returns its error. While somebody
// goes on changing it back, repairs become rarer, and so they do while the kernel refuses them.
//
// Errors: the kernel's events cannot be heard.
func (s *Steer) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var heard sync.WaitGroup
	defer heard.Wait()
	ready := make(chan struct{})
	heard.Go(func() {
		if err := s.edge.Watch(ctx, ready, s.hear); err != nil {
			cancel(fmt.Errorf("steer: hear of changes: %w", err))
		}
	})
	select {
	case <-ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	// What was changed before anybody listened.
	s.hear(Event{Lost: true})
	var pace pace
	reread := time.NewTicker(s.given.Reread)
	defer reread.Stop()
	var retry <-chan time.Time
	for {
		select {
		case <-s.damaged:
			if !sleep(ctx, pace.next(time.Now())) {
				return context.Cause(ctx)
			}
		case <-retry:
		case <-reread.C:
			s.hear(Event{Lost: true})
			continue
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		began := time.Now()
		if retry = nil; !s.repair(ctx) {
			retry = time.After(retryPause(time.Since(began)))
		}
	}
}

// repair converges once more, and tells whether the kernel took it.
func (s *Steer) repair(ctx context.Context) (done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.want == nil {
		return true
	}
	_, changes, err := s.converge(ctx)
	s.metrics.repaired(changes)
	if changes > 0 {
		s.log.Warn("steering repaired: somebody had changed it", "changes", changes)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Error("steering not repaired", "err", err)
	}
	return err == nil && !s.refused
}
