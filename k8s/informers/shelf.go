// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"fairlead.io/fairlead/fsm/world"
)

// shelf is what is known of the objects of one resource, converted; nothing of the Kubernetes object is kept. It is
// the store of the line's reflector, and takes in lists that were asked for beside a running watch, too. Both say at
// which version they speak, so that neither takes back what the other knows better:
//
//   - of two forms of an object, the one of the higher version counts;
//   - a list at version L says everything up to L: an object that it lacks is absent unless its version is above L,
//     and events up to L that the watch still delivers change nothing any more.
//
// Fields are guarded by the source's mutex.
type shelf[T any] struct {
	line *line
	turn func(runtime.Object) (converted[T], error)
	meta func(*T) *world.Meta
	// homed says that values have a Home.
	homed bool

	entries map[world.ID]*entry[T]
	// list are the values in use, in order of their ranks. All of it is shared with Worlds that were handed out: a change makes
	// new lists, and of the values that changed.
	list  []*T
	dirty map[rank]bool // ranks at which something changed since list was made
	// mirror is shown objects as they come, and nil for those that go; nil if nobody looks.
	mirror func(key world.ID, o any)
	keeper Keeper // nil if nothing is kept beside the values
	// pending are the first ones of events that the watch said together (line.together).
	pending []said[T]

	evidence
}

// entry is one object. There are very many, so that it has nothing that its value tells.
type entry[T any] struct {
	value   *T // shared with Worlds once it is in use
	version uint64
	// beside is nil where value is the newest form, and nothing is wrong with it.
	beside *beside
}

// beside is what few objects have beside their value.
type beside struct {
	problems []world.Problem
	fate     fate
	// good says that value is the last form that could be used, of an object whose newest one cannot.
	good bool
}

func (e *entry[T]) problems() []world.Problem {
	if e.beside == nil {
		return nil
	}
	return e.beside.problems
}

func (e *entry[T]) fate() fate {
	if e.beside == nil {
		return usable
	}
	return e.beside.fate
}

// used tells whether value counts: the newest form of the object, or its last good one.
func (e *entry[T]) used() bool { return e.beside == nil || e.beside.good || e.beside.fate == usable }

// converted is an object as it came.
type converted[T any] struct {
	// key is the object's own namespace and name, which the value's may lack.
	key      world.ID
	ref      world.Ref
	service  world.ID // that a slice belongs to
	mirror   string   // what a BackendRecord mirrors
	version  uint64
	value    *T
	problems []world.Problem
	fate     fate
	kept     any // by the keeper, on the way to it
}

// fate is what is to become of an object.
type fate uint8

const (
	usable fate = iota
	unusable
	// ignored is not meant for us, and never was: its absence could not take anything away.
	ignored
	// elsewhere is in a namespace that does not count for its kind.
	elsewhere
)

// rank orders values as a sorted World has them.
type rank struct{ service, key world.ID }

func (r rank) compare(o rank) int {
	if c := r.service.Compare(o.service); c != 0 {
		return c
	}
	return r.key.Compare(o.key)
}

// key is the namespace and name of the object that a value came from.
func (s *shelf[T]) key(v *T) world.ID {
	m := s.meta(v)
	if s.homed {
		if home := *world.HomeOf(v); home != "" {
			return world.ID{Namespace: home, Name: m.Name}
		}
	}
	return m.ID
}

func (s *shelf[T]) rank(v *T) rank { return rank{serviceOf(v), s.key(v)} }

// compare orders a value and a rank.
func (s *shelf[T]) compare(v *T, r rank) int { return s.rank(v).compare(r) }

// serviceOf is the Service that a slice belongs to; zero for other values.
func serviceOf(v any) world.ID {
	if slice, ok := v.(*world.EndpointSlice); ok {
		return slice.Service()
	}
	return world.ID{}
}

func newShelf[T any](l *line, turn func(runtime.Object) (converted[T], error), meta func(*T) *world.Meta) *shelf[T] {
	s := &shelf[T]{line: l, turn: turn, meta: meta, homed: world.HomeOf(new(T)) != nil, entries: map[world.ID]*entry[T]{}, dirty: map[rank]bool{}}
	l.store = s
	return s
}

// Resync is never asked for.
func (s *shelf[T]) Resync() error { return nil }

// Replace takes in a list of the reflector, which watches nothing meanwhile.
func (s *shelf[T]) Replace(items []any, version string) error {
	v, err := parseVersion(version)
	if err != nil {
		return err
	}
	s.line.source.mu.Lock()
	began := s.line.began
	s.line.source.mu.Unlock()
	if _, ranBack := s.take(began, items, v); ranBack {
		s.line.source.log.Warn("the API server ran back", "source", Name, "kind", s.line.kind, "known", began.known, "version", v)
	}
	s.line.source.poke()
	return nil
}

// take takes in a complete list. It tells whether anything is new, and whether the server ran back meanwhile: the
// list is then taken as it is if nothing is being watched, and left to a new list otherwise.
func (s *shelf[T]) take(began start, items []any, version uint64) (news, ranBack bool) {
	source := s.line.source
	source.mu.Lock()
	items = s.line.shownLocked(items)
	source.mu.Unlock()
	made := s.convertNew(items)
	source.mu.Lock()
	defer source.mu.Unlock()
	if began.cluster != source.identity.number {
		return false, false
	}
	if ranBack = version < began.known || s.contradicts(made, version); ranBack {
		source.doubtLocked(s.line)
	}
	switch {
	case ranBack && s.line.watching:
		return false, true
	case ranBack:
		s.line.version, s.line.floor = version, 0 // true, though older: what it is worth is for the guard to say
		for _, e := range s.entries {
			e.version = 0 // whatever the list says is newer
		}
	case version < s.line.floor:
		return false, false // a list that began later has been taken in
	}
	listed := make(map[world.ID]bool, len(items))
	for i := range items {
		c := made[i]
		listed[c.key] = true
		e := s.entries[c.key]
		switch {
		case e != nil && e.version >= c.version:
		case s.line.deleted[c.key] > version: // while the list was under way
		default:
			if c.ref == (world.Ref{}) { // it was known when we looked first
				c, _ = s.convert(items[i])
			}
			s.put(c)
			s.show(&c, items[i])
			news = true
		}
	}
	for key, e := range s.entries {
		if !listed[key] && e.version <= version {
			s.drop(e)
			news = true
		}
	}
	s.line.listedLocked(began.at, version)
	return news, ranBack
}

// contradicts tells whether a list shows an older form of an object than we know, though it is not older itself. Then
// the server was set back and has overtaken since what we had seen of it: its versions alone do not show that.
func (s *shelf[T]) contradicts(made []converted[T], version uint64) bool {
	return slices.ContainsFunc(made, func(c converted[T]) bool {
		e := s.entries[c.key]
		return e != nil && c.version < e.version && e.version <= version
	})
}

// lacking lists what is known and missing from a list, though it was there at its version; in order.
func (s *shelf[T]) lacking(listed map[world.ID]bool, version uint64) (out []life) {
	for key, e := range s.entries {
		if !listed[key] && e.version <= version {
			out = append(out, life{key, s.meta(e.value).UID})
		}
	}
	slices.SortFunc(out, func(a, b life) int { return a.key.Compare(b.key) })
	return out
}

// all are the objects that are known, those first that have been silent the longest.
func (s *shelf[T]) all() []life {
	all := make([]*entry[T], 0, len(s.entries))
	for _, e := range s.entries {
		if s.meta(e.value).UID != "" {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *entry[T]) int {
		return cmp.Or(cmp.Compare(a.version, b.version), s.key(a.value).Compare(s.key(b.value)))
	})
	out := make([]life, len(all))
	for i, e := range all {
		out[i] = life{s.key(e.value), s.meta(e.value).UID}
	}
	return out
}

// shows tells whether a life is known.
func (s *shelf[T]) shows(of life) bool {
	e := s.entries[of.key]
	return e != nil && s.meta(e.value).UID == of.uid
}

// sawGone tells whether a watch showed the end of a life.
func (s *shelf[T]) sawGone(of life) bool {
	gone, ok := s.of[of.key]
	return ok && gone.UID == of.uid
}

// convertNew converts the objects of a list that are not known in just that form. Of the others it gives key and
// version only.
func (s *shelf[T]) convertNew(items []any) []converted[T] {
	out := make([]converted[T], len(items))
	s.line.source.mu.Lock()
	for i, o := range items {
		if m, ok := o.(metav1.Object); ok {
			out[i].key = keyOf(m)
			out[i].version, _ = parseVersion(m.GetResourceVersion())
			if e := s.entries[out[i].key]; e == nil || e.version != out[i].version || s.meta(e.value).UID != string(m.GetUID()) {
				out[i].fate = unusable // to do
			}
		}
	}
	s.line.source.mu.Unlock()
	for i, o := range items {
		if out[i].fate == unusable {
			out[i], _ = s.convert(o) // a list holds only objects of its kind
		}
	}
	return out
}

func (s *shelf[T]) convert(o any) (converted[T], error) {
	object, ok := o.(runtime.Object)
	if !ok {
		return converted[T]{}, fmt.Errorf("a %T is no object", o)
	}
	c, err := s.turn(object)
	if err != nil {
		return c, err
	}
	s.line.source.like.Same(c.value)
	if s.keeper != nil {
		c.kept = s.keeper.Keep(s.line.kind, object)
	}
	return c, nil
}

// put makes an object known. One that cannot be used keeps the form that could, with its new version; the life before
// it does not count. It tells whether more than the version changed.
func (s *shelf[T]) put(c converted[T]) (news bool) {
	e, known := s.entries[c.key]
	if !known {
		e = &entry[T]{}
		s.entries[s.key(c.value)] = e // as the value says it, whose words are there anyway
	} else {
		s.sameLife(e.value, c.value)
	}
	was, before := *e, known && e.used()
	*e = entry[T]{value: c.value, version: c.version}
	switch {
	case c.fate == unusable && before && s.meta(was.value).UID == c.ref.UID:
		e.value = s.aged(was.value, c.value)
		e.beside = &beside{fate: c.fate, good: true, problems: append(c.problems[:len(c.problems):len(c.problems)], world.Problem{
			Severity: world.Ignored, Object: c.ref, Why: "its last good form stays in use"})}
	case c.fate != usable || len(c.problems) > 0:
		e.beside = &beside{fate: c.fate, problems: c.problems}
	}
	if before {
		s.dirty[s.rank(was.value)] = true
	}
	if e.used() {
		s.dirty[s.rank(e.value)] = true
	}
	if len(was.problems())+len(e.problems()) > 0 || known && was.fate() != c.fate {
		s.line.source.notes = true
	}
	if s.unsee(c.key) {
		s.line.source.gone = true
	}
	return !known || was.fate() != c.fate || !slices.Equal(was.problems(), e.problems()) || !s.alike(was.value, e.value)
}

// sameLife has a new form of an object, which nobody else has yet, share with the former one what no form of it changes.
func (s *shelf[T]) sameLife(former, now *T) {
	was, m := s.meta(former), s.meta(now)
	m.ID = was.ID
	if s.homed {
		*world.HomeOf(now) = *world.HomeOf(former)
	}
	if m.UID == was.UID {
		m.UID = was.UID
	}
}

// aged gives the last good form of an object as one of the version of now.
func (s *shelf[T]) aged(good, now *T) *T {
	out := *good
	m, newest := s.meta(&out), s.meta(now)
	m.Version, m.Deleting = newest.Version, newest.Deleting
	return &out
}

// mind has a keeper be shown what comes and goes.
func (s *shelf[T]) mind(k Keeper) { s.keeper, s.line.keeper = k, k }

func (s *shelf[T]) show(c *converted[T], o any) {
	if s.mirror != nil {
		s.mirror(c.key, o)
	}
	if s.keeper != nil {
		s.keeper.Set(s.line.kind, c.key, c.kept)
	}
}

func (s *shelf[T]) hide(key world.ID) {
	if s.mirror != nil {
		s.mirror(key, nil)
	}
	if s.keeper != nil {
		s.keeper.Delete(s.line.kind, key)
	}
}

// alike tells whether two values differ in their version at most.
func (s *shelf[T]) alike(a, b *T) bool {
	now := *a
	s.meta(&now).Version = s.meta(b).Version
	return reflect.DeepEqual(&now, b)
}

// drop forgets an object.
func (s *shelf[T]) drop(e *entry[T]) {
	key := s.key(e.value)
	delete(s.entries, key)
	s.hide(key)
	if e.used() {
		s.dirty[s.rank(e.value)] = true
	}
	if len(e.problems()) > 0 {
		s.line.source.notes = true
	}
}

// clearLocked forgets everything: it was of another cluster, or its definition is gone.
func (s *shelf[T]) clearLocked(cluster bool) {
	for _, e := range s.entries {
		s.drop(e)
	}
	if cluster {
		s.evidence = evidence{}
		s.line.source.gone = true
	}
}

// countLocked tells how many objects are known, and how many of them are not used in their newest form.
func (s *shelf[T]) countLocked() (all, unused int) {
	for _, e := range s.entries {
		if e.fate() == unusable {
			unused++
		}
	}
	return len(s.entries), unused
}
