// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
	doubles []world.Problem // objects of the same name
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

// join makes one list of several, in order. Objects of one name are all in it: which of them counts, the record has to say.
func (r *rack[T]) join() []*T {
	var all []*T
	for _, s := range r.shelves {
		all = append(all, s.publish()...)
	}
	slices.SortStableFunc(all, r.compare)
	r.doubles = nil
	for i := 1; i < len(all); i++ {
		if a, b := r.kind.meta(all[i-1]), r.kind.meta(all[i]); a.ID == b.ID {
			r.doubles = append(r.doubles, r.double(all[i-1], all[i]), r.double(all[i], all[i-1]))
		}
	}
	return all
}

// compare orders values as a sorted World has them.
func (r *rack[T]) compare(a, b *T) int {
	x, y := r.kind.meta(a), r.kind.meta(b)
	return cmp.Or(x.ID.Compare(y.ID), strings.Compare(x.UID, y.UID), cmp.Compare(x.Version, y.Version))
}

// double is said of an object that another one has the name of.
func (r *rack[T]) double(v, other *T) world.Problem {
	return world.Problem{
		Severity: world.Degraded, Object: world.Ref{Kind: r.kind.name, ID: r.nameOf(v), UID: r.kind.meta(v).UID}, Field: "metadata.name",
		Why:    fmt.Sprintf("%s %s has the same name; of the two only the one counts that the group had first", r.kind.name, r.nameOf(other)),
		Remedy: "rename or remove one of them",
	}
}

// nameOf is the namespace and name that a value's object has.
func (r *rack[T]) nameOf(v *T) world.ID {
	id := r.kind.meta(v).ID
	if home := world.HomeOf(v); home != nil {
		id.Namespace = *home
	}
	return id
}

// notes adds what is unusable, and what a person should mend.
func (r *rack[T]) notes(refs []world.Ref, problems []world.Problem) ([]world.Ref, []world.Problem) {
	for _, s := range r.shelves {
		for _, e := range s.entries {
			switch m := s.meta(e.value); {
			case e.fate() == unusable && !e.used():
				refs = append(refs, m.Ref(r.kind.name))
			case e.fate() == elsewhere:
				refs = append(refs, world.Ref{Kind: r.kind.name, ID: s.key(e.value), UID: m.UID})
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
