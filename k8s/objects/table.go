// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"iter"
	"maps"

	"fairlead.io/fairlead/fsm/world"
)

// table holds objects of a kind by namespace and name. A snapshot costs nothing; the first write to a namespace after it
// copies that namespace's names. The zero value is empty.
type table[T any] struct {
	snap[T]
	// ours are the namespaces whose map no snapshot has, shared says that one has the outer map.
	ours   map[string]bool
	shared bool
}

// snap is a table at one moment.
type snap[T any] struct{ of map[string]map[string]T }

func (t *table[T]) snapshot() snap[T] {
	t.shared = true
	clear(t.ours)
	return t.snap
}

// own makes sure that a namespace may be written to.
func (t *table[T]) own(namespace string) map[string]T {
	if t.of == nil || t.shared {
		t.of, t.shared = maps.Clone(t.of), false
		if t.of == nil {
			t.of = map[string]map[string]T{}
		}
		t.ours = map[string]bool{}
	}
	if !t.ours[namespace] {
		in := maps.Clone(t.of[namespace])
		if in == nil {
			in = map[string]T{}
		}
		t.of[namespace], t.ours[namespace] = in, true
	}
	return t.of[namespace]
}

func (t *table[T]) set(id world.ID, o T) { t.own(id.Namespace)[id.Name] = o }

func (t *table[T]) delete(id world.ID) {
	if _, ok := t.of[id.Namespace][id.Name]; !ok {
		return
	}
	in := t.own(id.Namespace)
	if delete(in, id.Name); len(in) == 0 {
		delete(t.of, id.Namespace)
		delete(t.ours, id.Namespace)
	}
}

func (s snap[T]) get(namespace, name string) T { return s.of[namespace][name] }

// all gives the objects of a namespace, or of all if it is empty, in order of their names.
func (s snap[T]) all(namespace string) iter.Seq[T] {
	return func(yield func(T) bool) {
		namespaces := []string{namespace}
		if namespace == "" {
			namespaces = sorted(s.of)
		}
		for _, ns := range namespaces {
			for _, name := range sorted(s.of[ns]) {
				if !yield(s.of[ns][name]) {
					return
				}
			}
		}
	}
}
