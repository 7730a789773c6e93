// SPDX-License-Identifier: Apache-2.0

package keep

import (
	"strconv"
	"sync"
	"time"
)

// Seen is what the API server last showed of an object. It is immutable.
type Seen interface {
	comparable
	// Life is the object's UID, and Version its resourceVersion.
	Life() string
	Version() string
}

// Store keeps what the API server last showed of objects. Whoever watches them fills it, all the time and in the order of the watch, so
// that a member that comes to lead knows at once what people see. Its methods may be called from any goroutine.
type Store[K comparable, S Seen] struct {
	mu   sync.Mutex
	seen map[K]*entry[S]
	// behind are those that the watch showed as they were before a write of ours, and since when.
	behind map[K]time.Time
	dirty  map[K]bool
	wake   chan struct{}
}

type entry[S Seen] struct {
	seen S
	// answered says that it is the answer to a write of ours, which the watch has yet to show; behind is what the watch
	// showed last since.
	answered bool
	behind   S
}

// NewStore makes an empty store.
func NewStore[K comparable, S Seen]() *Store[K, S] {
	return &Store[K, S]{seen: map[K]*entry[S]{}, behind: map[K]time.Time{}, dirty: map[K]bool{}, wake: make(chan struct{}, 1)}
}

// Set takes in an object that was listed, added or changed.
func (s *Store[K, S]) Set(k K, seen S) { s.set(k, seen, false) }

func (s *Store[K, S]) set(k K, seen S, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.seen[k]
	if old != nil && old.seen.Life() == seen.Life() && (old.answered || answered) && older(seen.Version(), old.seen.Version()) {
		if !answered {
			old.behind = seen // the watch is behind our own write
			if _, ok := s.behind[k]; !ok {
				s.behind[k] = time.Time{} // from when somebody looks
			}
		}
		return
	}
	if answered && (old == nil || old.seen.Life() != seen.Life()) {
		return // gone meanwhile
	}
	s.seen[k] = &entry[S]{seen: seen, answered: answered}
	s.changedLocked(k)
}

// Delete takes in that an object is gone.
func (s *Store[K, S]) Delete(k K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[k] != nil {
		delete(s.seen, k)
		s.changedLocked(k)
	}
}

// older tells whether one resourceVersion comes before another. Where they are no numbers nobody can tell.
func older(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX == nil && errY == nil && x < y
}

// changedLocked leaves a token for whoever waits.
func (s *Store[K, S]) changedLocked(k K) {
	s.dirty[k] = true
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// doubt takes the watch at its word again, since the API server does not know what it answered: it was set back.
func (s *Store[K, S]) doubt(k K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var none S
	if e := s.seen[k]; e != nil && e.behind != none {
		s.seen[k] = &entry[S]{seen: e.behind}
		s.changedLocked(k)
	}
}

// trust is how long the answer to a write counts for more than what is watched: a watch that is further behind is one
// that ended, or the API server was set back.
const trust = 30 * time.Second

// settle takes the watch at its word where it stays behind.
func (s *Store[K, S]) settle(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var none S
	for k, since := range s.behind {
		e := s.seen[k]
		switch {
		case e == nil || e.behind == none: // it caught up
			delete(s.behind, k)
		case since.IsZero():
			s.behind[k] = now
		case now.Sub(since) >= trust:
			delete(s.behind, k)
			s.seen[k] = &entry[S]{seen: e.behind}
			s.changedLocked(k)
		}
	}
}

// Get gives what is known of an object; the zero value if it is not there.
func (s *Store[K, S]) Get(k K) (seen S) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.seen[k]; e != nil {
		return e.seen
	}
	return seen
}

// take gives the objects that changed since it was called last.
func (s *Store[K, S]) take() map[K]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.dirty
	s.dirty = map[K]bool{}
	return out
}

// Keys names every object, in no order.
func (s *Store[K, S]) Keys() []K {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]K, 0, len(s.seen))
	for k := range s.seen {
		out = append(out, k)
	}
	return out
}
