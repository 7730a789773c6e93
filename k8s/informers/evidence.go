// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"time"

	"fairlead.io/fairlead/fsm/world"
)

// maxDeleted bounds the evidence of deletions of one resource. What is dropped is the oldest; the absence from lists
// then speaks for itself.
const maxDeleted = 10_000

// evidence is what was seen deleted and has not come back. The zero value holds none.
type evidence struct {
	of    map[world.ID]witnessed
	order []sight // oldest first; with some that are not in of any more
	next  uint64
}

type witnessed struct {
	world.Deletion
	number uint64
}

type sight struct {
	key    world.ID
	number uint64
	at     time.Time
}

// saw adds evidence, in place of older evidence about the name.
func (e *evidence) saw(key world.ID, d world.Deletion, at time.Time) {
	if e.of == nil {
		e.of = map[world.ID]witnessed{}
	}
	e.next++
	e.of[key] = witnessed{d, e.next}
	e.order = append(e.order, sight{key, e.next, at})
	for len(e.of) > maxDeleted {
		e.shift()
	}
	if len(e.order) > 2*maxDeleted {
		e.compact()
	}
}

// unsee drops the evidence about a name that is in use again. It tells whether there was any.
func (e *evidence) unsee(key world.ID) bool {
	_, had := e.of[key]
	delete(e.of, key)
	return had
}

// forget drops what was seen before a moment. It tells whether that was anything.
func (e *evidence) forget(before time.Time) (any bool) {
	for len(e.order) > 0 && e.order[0].at.Before(before) {
		any = e.shift() || any
	}
	return any
}

// shift drops the oldest sight, and its evidence if there is no newer one.
func (e *evidence) shift() bool {
	s := e.order[0]
	e.order = e.order[1:]
	if e.of[s.key].number != s.number {
		return false
	}
	delete(e.of, s.key)
	return true
}

func (e *evidence) compact() {
	kept := make([]sight, 0, len(e.of))
	for _, s := range e.order {
		if e.of[s.key].number == s.number {
			kept = append(kept, s)
		}
	}
	e.order = kept
}

func (e *evidence) appendTo(all []world.Deletion) []world.Deletion {
	for _, w := range e.of {
		all = append(all, w.Deletion)
	}
	return all
}

// forgetLocked drops evidence that is older than a moment.
func (s *shelf[T]) forgetLocked(before time.Time) {
	if s.forget(before) {
		s.line.source.gone = true
	}
}
