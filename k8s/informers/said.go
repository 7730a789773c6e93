// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"errors"

	"fairlead.io/fairlead/fsm/world"
)

// said is an event of a watch, by the name that metrics have for it.
type said[T any] struct {
	what string
	converted[T]
	object any // as it came; nil for bookmarks
}

const (
	added    = "added"
	modified = "modified"
	deleted  = "deleted"
	bookmark = "bookmark"
)

// Add takes in an event of the watch.
func (s *shelf[T]) Add(o any) error { return s.hearOf(added, o) }

// Update takes in an event of the watch.
func (s *shelf[T]) Update(o any) error { return s.hearOf(modified, o) }

// Delete takes in an event of the watch, as evidence. The object comes as it last was, at the version of its deletion.
func (s *shelf[T]) Delete(o any) error { return s.hearOf(deleted, o) }

// Bookmark takes in how far the watch is.
func (s *shelf[T]) Bookmark(version string) error {
	v, err := parseVersion(version)
	if err != nil {
		return s.line.misunderstood(err)
	}
	s.hear(said[T]{what: bookmark, converted: converted[T]{version: v}})
	return nil
}

func (s *shelf[T]) hearOf(what string, o any) error {
	c, err := s.watched(o)
	if err != nil {
		return s.line.misunderstood(err)
	}
	s.hear(said[T]{what, c, o})
	return nil
}

// watched converts the object of an event. Without a version there is no telling what it follows.
func (s *shelf[T]) watched(o any) (converted[T], error) {
	c, err := s.convert(o)
	if err == nil && c.version == 0 {
		err = errors.New("an event without resourceVersion")
	}
	return c, err
}

// hear takes in an event, or keeps it until all that was said together with it is there.
func (s *shelf[T]) hear(e said[T]) {
	s.line.source.mu.Lock()
	defer s.line.source.mu.Unlock()
	s.pending = append(s.pending, e)
	if e.version >= s.line.together {
		s.settleLocked()
	}
}

// settleLocked takes in what is pending, at once: no World shows a part of it.
func (s *shelf[T]) settleLocked() {
	s.line.together = 0
	all := s.pending
	s.pending = nil
	for i := range all {
		if !s.line.listed {
			return // a remnant of another cluster's watch
		}
		e := &all[i]
		s.line.event(e.what, e.version)
		switch e.what {
		case bookmark:
		case deleted:
			s.buryLocked(e)
		default:
			s.putLocked(e)
		}
	}
}

func (s *shelf[T]) putLocked(e *said[T]) {
	if known := s.entries[e.key]; e.version <= s.line.floor || known != nil && e.version <= known.version {
		return // known already, from a list that overtook the watch
	}
	if s.line.goneLocked(life{e.key, e.ref.UID}) {
		return
	}
	if s.put(e.converted) {
		s.line.source.poke()
	}
	s.show(&e.converted, e.object)
	s.line.source.metrics.observeLag(e.object, s.line.heard)
}

func (s *shelf[T]) buryLocked(e *said[T]) {
	if s.line.deleted != nil {
		s.line.deleted[e.key] = e.version
	}
	delete(s.line.vouched, life{e.key, e.ref.UID})
	known := s.entries[e.key]
	if known != nil && known.version > e.version {
		return // it has come back since, as a list showed
	}
	if known != nil {
		s.drop(known)
	}
	s.saw(e.key, world.Deletion{Ref: e.ref, Service: e.service, Mirror: e.mirror, Version: e.version, How: world.ByWatch}, s.line.heard)
	s.line.source.gone = true
	s.line.source.poke()
}
