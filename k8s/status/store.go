// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"fairlead.io/fairlead/fsm"
)

// Store keeps what the API server last showed of the Services that concern us: those of type LoadBalancer, those with
// something of ours in their status or our finalizer, and those that may be served for what they name. Whoever watches
// Services fills it, all the time and in the order of the watch, so that a member that comes to lead knows at once what
// people see. It must be given objects with their managedFields. Its methods may be called from any goroutine.
type Store struct {
	mu   sync.Mutex
	seen map[fsm.ServiceID]*entry
	// behind are those that the watch showed as they were before a write of ours, and since when.
	behind map[fsm.ServiceID]time.Time
	dirty  map[fsm.ServiceID]bool
	wake   chan struct{}
}

type entry struct {
	*Seen
	// answered says that it is the answer to a write of ours, which the watch has yet to show; behind is what the watch
	// showed last since.
	answered bool
	behind   *Seen
}

// NewStore makes an empty store.
func NewStore() *Store {
	return &Store{seen: map[fsm.ServiceID]*entry{}, behind: map[fsm.ServiceID]time.Time{}, dirty: map[fsm.ServiceID]bool{}, wake: make(chan struct{}, 1)}
}

// Set takes in a Service that was listed, added or changed.
func (s *Store) Set(o *corev1.Service) { s.set(SeenOf(o), false) }

// answer takes in what the API server answered to a write.
func (s *Store) answer(seen *Seen) { s.set(seen, true) }

func (s *Store) set(seen *Seen, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.seen[seen.ID]
	if old != nil && old.UID == seen.UID && (old.answered || answered) && older(seen.ResourceVersion, old.ResourceVersion) {
		if !answered {
			old.behind = seen // the watch is behind our own write
			if _, ok := s.behind[seen.ID]; !ok {
				s.behind[seen.ID] = time.Time{} // from when somebody looks
			}
		}
		return
	}
	if answered && (old == nil || old.UID != seen.UID) {
		return // gone meanwhile
	}
	if old != nil {
		seen.ID = old.ID // and its memory: it stays for long
	}
	if concerns(seen) {
		s.seen[seen.ID] = &entry{Seen: seen, answered: answered}
	} else if old == nil {
		return
	} else {
		delete(s.seen, seen.ID)
	}
	s.dirty[seen.ID] = true
	s.poke()
}

// Delete takes in that a Service is gone.
func (s *Store) Delete(namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := fsm.ServiceID(namespace + "/" + name)
	if s.seen[id] != nil {
		delete(s.seen, id)
		s.dirty[id] = true
		s.poke()
	}
}

// concerns tells whether a Service is worth keeping.
func concerns(s *Seen) bool { return s.LoadBalancer || s.Owned || s.InPart || s.Finalized }

// older tells whether one resourceVersion comes before another. Where they are no numbers nobody can tell.
func older(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX == nil && errY == nil && x < y
}

// poke leaves a token for whoever waits.
func (s *Store) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// doubt takes the watch at its word again, since the API server does not know what it answered: it was set back.
func (s *Store) doubt(id fsm.ServiceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.seen[id]; e != nil && e.behind != nil {
		s.seen[id] = &entry{Seen: e.behind}
		s.dirty[id] = true
		s.poke()
	}
}

// trust is how long the answer to a write counts for more than what is watched: a watch that is further behind is one
// that ended, or the API server was set back.
const trust = 30 * time.Second

// settle takes the watch at its word where it stays behind.
func (s *Store) settle(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, since := range s.behind {
		e := s.seen[id]
		switch {
		case e == nil || e.behind == nil: // it caught up
			delete(s.behind, id)
		case since.IsZero():
			s.behind[id] = now
		case now.Sub(since) >= trust:
			delete(s.behind, id)
			s.seen[id] = &entry{Seen: e.behind}
			s.dirty[id] = true
			s.poke()
		}
	}
}

// get gives what is known of a Service; nil if it is not there.
func (s *Store) get(id fsm.ServiceID) *Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.seen[id]; e != nil {
		return e.Seen
	}
	return nil
}

// take gives the Services that changed since it was called last.
func (s *Store) take() map[fsm.ServiceID]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.dirty
	s.dirty = map[fsm.ServiceID]bool{}
	return out
}

// all names every Service.
func (s *Store) all() []fsm.ServiceID {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]fsm.ServiceID, 0, len(s.seen))
	for id := range s.seen {
		out = append(out, id)
	}
	return out
}
