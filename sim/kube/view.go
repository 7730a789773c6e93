// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"
	"time"
)

// view gives what a list shows for a version: the truth, or what faults make of it: with two partial ones a quarter.
func (s *Server) view(c *call, version uint64) ([]Object, uint64) {
	var empty *fault
	var partial []*fault
	for _, f := range s.faults {
		if c.store != s.store {
			break
		}
		switch f.Fault {
		case StaleLists:
			if f.version < version && f.concerns(c) {
				version = f.version
				s.viewed(c, "stale")
			}
		case EmptyLists:
			if f.concerns(c) {
				empty = f
			}
		case PartialLists:
			if f.concerns(c) {
				partial = append(partial, f)
			}
		}
	}
	objects := c.store.listAt(c.resource, version)
	switch {
	case empty != nil && len(objects) > 0:
		s.viewed(c, "empty")
		return nil, version
	case len(partial) > 0:
		whole := len(objects)
		objects = slices.DeleteFunc(slices.Clone(objects), func(o Object) bool {
			return slices.ContainsFunc(partial, func(f *fault) bool { return f.hides(keyOf(o)) })
		})
		if len(objects) < whole {
			s.viewed(c, "partial")
		}
	}
	return objects, version
}

// concealed tells whether a single object is kept from who asks for it by name. Namespaces are not: they say which server
// it is.
func (s *Server) concealed(c *call) bool {
	return c.store == s.store && c.resource != s.namespaces && slices.ContainsFunc(s.faults, func(f *fault) bool {
		return f.How == everywhere && f.reaches(c) && (f.Fault == EmptyLists || f.Fault == PartialLists && f.hides(c.key))
	})
}

// everywhere is how a server lacks objects altogether, not in lists alone.
const everywhere = "everywhere"

// hides tells whether an object is one that is missing from lists, for as long as the fault lasts.
func (f *fault) hides(k key) bool {
	hidden, known := f.hidden[k]
	if !known {
		hidden = f.random.IntN(2) == 0
		f.hidden[k] = hidden
	}
	return hidden
}

// cached is the version of the cache from which lists are served that ask for no certain one.
func (s *Server) cached(c *call) uint64 {
	version := c.store.version
	for _, f := range s.faults {
		if f.Fault == WatchDelay && f.concerns(c) {
			if v := c.store.versionAt(s.w.Now() - f.lasting()); v < version {
				version = v
				s.viewed(c, "stale")
			}
		}
	}
	return version
}

// watchTrouble is what is wrong with one watch.
type watchTrouble struct {
	silent bool
	by     []*fault // that made it silent
	late   []*fault // WatchDelay and Coalesce
	held   []*fault // StaleLists
	twice  []*fault
	merge  []*fault
}

// troubled has the faults that there are befall a watch that was opened.
func (s *Server) troubled(w *watcher) {
	if w.store != s.store {
		return
	}
	for _, f := range s.faults {
		s.trouble(f, w, false)
	}
}

// trouble has a fault befall a watch. Before says that it was open when the fault began.
func (s *Server) trouble(f *fault, w *watcher, before bool) {
	switch f.Fault {
	case Away, WatchDrop, WatchBreak, WatchDelay, Duplicate, Coalesce, StaleLists:
		if !f.concerns(w.call) {
			return
		}
	}
	t := &w.trouble
	switch f.Fault {
	case Away:
		if f.How != "" && f.How != "silent" {
			w.breakOff()
			return
		}
		t.silent, t.by = true, append(t.by, f)
	case WatchDrop:
		t.silent, t.by = true, append(t.by, f)
		s.viewed(w.call, "silent")
	case WatchBreak:
		s.breakSoon(f, w, before)
	case WatchDelay:
		t.late = append(t.late, f)
		s.viewed(w.call, "late")
	case Duplicate:
		t.twice = append(t.twice, f)
	case Coalesce:
		t.late, t.merge = append(t.late, f), append(t.merge, f)
		s.viewed(w.call, "coalesced")
	case StaleLists:
		t.held = append(t.held, f)
		s.viewed(w.call, "stale")
	}
}

// breakSoon breaks a watch at once, or after a while, sometimes in order.
func (s *Server) breakSoon(f *fault, w *watcher, now bool) {
	if now {
		w.breakOff()
		return
	}
	s.w.After(f.lasting(), func() {
		switch {
		case f.over:
		case f.random.IntN(2) == 0:
			w.end()
		default:
			w.breakOff()
		}
	})
}

// over ends what a fault was to a watch.
func (t *watchTrouble) over(w *watcher, f *fault) {
	without := func(list []*fault) []*fault { return slices.DeleteFunc(list, func(o *fault) bool { return o == f }) }
	silenced, held, late := slices.Contains(t.by, f), slices.Contains(t.held, f), slices.Contains(t.late, f)
	t.by, t.late, t.held, t.twice, t.merge = without(t.by), without(t.late), without(t.held), without(t.twice), without(t.merge)
	switch {
	case silenced:
		w.breakOff()
	case late && len(t.late) == 0 && len(w.due) > 0:
		w.hurry()
	case held && len(w.due) > 0:
		w.flushAt(max(w.due[0].at, w.server.w.Now()))
	}
}

// limit is how far of a version the view of the server goes.
func (t *watchTrouble) limit(version uint64) uint64 {
	for _, f := range t.held {
		version = min(version, f.version)
	}
	return version
}

func (t *watchTrouble) delay() time.Duration {
	var d time.Duration
	for _, f := range t.late {
		d += f.lasting()
	}
	return d
}

func (t *watchTrouble) repeats() bool {
	return len(t.twice) > 0 && t.twice[0].random.IntN(2) == 0
}

// merges tells whether changes that are on their way may be left out for newer ones.
func (t *watchTrouble) merges() bool { return len(t.merge) > 0 }
