// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"fmt"
	"slices"

	"fairlead.io/fairlead/fsm/world"
)

// publish brings list up to date and gives it. It costs one copy of the list, not of the objects, however much changed, and nothing if nothing did.
func (s *shelf[T]) publish() []*T {
	if len(s.dirty) == 0 {
		return s.list
	}
	changed := make([]rank, 0, len(s.dirty))
	for r := range s.dirty {
		changed = append(changed, r)
	}
	slices.SortFunc(changed, rank.compare)
	s.dirty = map[rank]bool{} // one that was emptied keeps the room that it grew into: once, that of all objects
	if !s.overwrite(changed) {
		s.splice(changed)
	}
	return s.list
}

// at gives the entry that belongs at a rank; nil if none does.
func (s *shelf[T]) at(r rank) *entry[T] {
	if e := s.entries[r.key]; e != nil && e.used() && s.rank(e.value) == r {
		return e
	}
	return nil
}

// overwrite handles changes that leave every object where it is, the most frequent ones. It tells whether they did.
func (s *shelf[T]) overwrite(changed []rank) bool {
	places := make([]int, len(changed))
	for i, r := range changed {
		place, there := slices.BinarySearchFunc(s.list, r, s.compare)
		if !there || s.at(r) == nil {
			return false
		}
		places[i] = place
	}
	s.list = slices.Clone(s.list)
	for i, r := range changed {
		s.list[places[i]] = s.at(r).value
	}
	return true
}

// splice makes list anew around the changes.
func (s *shelf[T]) splice(changed []rank) {
	list := make([]*T, 0, len(s.entries))
	from := 0
	for _, r := range changed {
		n, there := slices.BinarySearchFunc(s.list[from:], r, s.compare)
		list = append(list, s.list[from:from+n]...)
		if from += n; there {
			from++
		}
		if e := s.at(r); e != nil {
			list = append(list, e.value)
		}
	}
	if s.list = append(list, s.list[from:]...); len(s.list) == 0 {
		s.list = nil
	}
}

// rack is all that is known of one kind. More than one line may lead to it: its objects may come in several groups, or
// by name.
type rack[T any] struct {
	kind    kind[T]
	shelves []*shelf[T]
	doubles []world.Problem // objects that another one of the same name hides
}

// publisher is a rack of any kind.
type publisher interface {
	publish(w *world.World) (notes bool)
	notes(unusable []world.Ref, problems []world.Problem) ([]world.Ref, []world.Problem)
	deletions([]world.Deletion) []world.Deletion
}

// publish puts the objects of the kind into w. It tells whether there may be problems now between one object and
// another.
func (r *rack[T]) publish(w *world.World) (notes bool) {
	changed := slices.ContainsFunc(r.shelves, func(s *shelf[T]) bool { return len(s.dirty) > 0 })
	switch {
	case !changed:
		return false
	case len(r.shelves) == 1:
		*r.kind.field(w) = r.shelves[0].publish()
		return false
	}
	*r.kind.field(w) = r.join()
	return true
}

// join makes one list of several, in order. Where two objects have one name the one of the first shelf counts, and in
// one shelf the first one.
func (r *rack[T]) join() []*T {
	var all []*T
	for _, s := range r.shelves {
		all = append(all, s.publish()...)
	}
	meta := r.kind.meta
	slices.SortStableFunc(all, func(a, b *T) int { return meta(a).ID.Compare(meta(b).ID) })
	r.doubles = nil
	var out []*T
	for _, v := range all {
		if n := len(out); n > 0 && meta(out[n-1]).ID == meta(v).ID {
			r.doubles = append(r.doubles, world.Problem{Severity: world.Failed, Object: meta(v).Ref(r.kind.name),
				Why:    fmt.Sprintf("another %s has the same name, in another namespace or group", r.kind.name),
				Remedy: "rename or remove one of them; until then the other one counts"})
			continue
		}
		out = append(out, v)
	}
	return out
}

// notes adds what is unusable, and what a person should mend.
func (r *rack[T]) notes(refs []world.Ref, problems []world.Problem) ([]world.Ref, []world.Problem) {
	for _, s := range r.shelves {
		for _, e := range s.entries {
			if e.fate() == unusable && !e.used() {
				refs = append(refs, s.meta(e.value).Ref(r.kind.name))
			}
			problems = append(problems, e.problems()...)
		}
	}
	return refs, append(problems, r.doubles...)
}

func (r *rack[T]) deletions(all []world.Deletion) []world.Deletion {
	for _, s := range r.shelves {
		all = s.appendTo(all)
	}
	return all
}
