// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"reflect"
	"slices"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/convert"
)

// place is an object and the file that it stands in. The zero place is none.
type place struct {
	*object
	file *file
}

// merged is what all files say together. Its lists of places are in the order of their keys.
type merged struct {
	// inForce is the object that counts for each key: its newest usable form, or the last good one.
	inForce []place
	// unusable are objects without any usable form so far.
	unusable []place
	deleted  []world.Deletion
	problems []world.Problem
}

// update takes in what the files say now. If the folder was read without trouble since the last update, objects that
// are not there any more were seen to go.
func (m *merged) update(files map[string]*file, order []string, continuous bool) {
	was := *m
	all, before := gather(files, order), was.inForce
	m.inForce, m.unusable, m.problems = make([]place, 0, len(all)), nil, nil
	for len(all) > 0 {
		k, n := all[0].key, 1
		for n < len(all) && all[n].key == k {
			n++
		}
		m.choose(all[:n], upTo(k, &before))
		all = all[n:]
	}
	m.noteDeleted(&was, continuous)
	m.noteOverlaps()
}

// upTo drops the places before k from a list, and gives the one at k, if there is one.
func upTo(k key, list *[]place) place {
	for len(*list) > 0 {
		first := (*list)[0]
		switch order := first.key().compare(k); {
		case order == 0:
			return first
		case order > 0:
			return place{}
		}
		*list = (*list)[1:]
	}
	return place{}
}

// candidate is a place beside the key of its object.
type candidate struct {
	place
	key key
}

// gather lists all objects in the order of their keys, and those of one key in the order of files and of lines.
func gather(files map[string]*file, order []string) []candidate {
	n := 0
	for _, f := range files {
		n += len(f.good.objects)
	}
	all := make([]candidate, 0, n)
	for _, name := range order {
		f := files[name]
		for i := range f.good.objects {
			o := &f.good.objects[i]
			all = append(all, candidate{place{o, f}, o.key()})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return a.key.compare(b.key) })
	return all
}

// choose decides which form of an object counts. The file that it came from before goes first, so that a second
// definition changes nothing; a file that is just missing goes last. Who has read none before, and finds several that say
// different things, takes none: which one counts must not hang on who read first what.
func (m *merged) choose(all []candidate, before place) {
	if before.object == nil && m.disagree(all) {
		return
	}
	rank := func(p candidate) int {
		switch {
		case !p.usable():
			return 3
		case p.file.away():
			return 2
		case before.file == nil || p.file.name != before.file.name:
			return 1
		}
		return 0
	}
	best := slices.MinFunc(all, func(a, b candidate) int { return rank(a) - rank(b) }).place
	for _, p := range all {
		switch {
		case p.object == best.object || !p.usable():
			m.problems = append(m.problems, p.problems()...)
		case !p.file.away():
			m.problems = append(m.problems, world.Problem{Severity: world.Failed, File: p.file.name, Line: int(p.line), Object: p.ref(),
				Why: fmt.Sprintf("defined in %s:%d already", best.file.name, best.line), Remedy: "remove one of them; until then the other one counts"})
		}
	}
	switch {
	case best.usable():
		m.inForce = append(m.inForce, best)
	case before.usable():
		m.inForce = append(m.inForce, before)
		m.problems = append(m.problems, world.Problem{Severity: world.Ignored, File: best.file.name, Line: int(best.line), Object: best.ref(),
			Why: "its last good form stays in use"})
	default:
		m.unusable = append(m.unusable, best)
	}
}

// disagree tells whether files say different things of an object, and then has none of it count.
func (m *merged) disagree(all []candidate) bool {
	usable := slices.DeleteFunc(slices.Clone(all), func(c candidate) bool { return !c.usable() || c.file.away() })
	if len(usable) < 2 || !slices.ContainsFunc(usable[1:], func(c candidate) bool { return !reflect.DeepEqual(c.value(), usable[0].value()) }) {
		return false
	}
	for _, c := range usable[1:] {
		m.problems = append(m.problems, world.Problem{Severity: world.Failed, File: c.file.name, Line: int(c.line), Object: c.ref(),
			Why: fmt.Sprintf("defined in %s:%d otherwise", usable[0].file.name, usable[0].line), Remedy: "remove one of them; until then none of them counts"})
	}
	m.unusable = append(m.unusable, usable[0].place)
	return true
}

// present yields what the World holds, with the Service of each slice.
func (m *merged) present(yield func(world.Deletion) bool) {
	for _, p := range m.inForce {
		for v := range p.values {
			if !yield(refOf(v)) {
				return
			}
		}
	}
	for _, p := range m.unusable {
		if k := p.key().kind; k != kindEndpoints && k != world.KindEndpointSlice && !yield(world.Deletion{Ref: p.ref()}) {
			return
		}
	}
}

// noteDeleted compares what the World holds with what it held.
func (m *merged) noteDeleted(was *merged, continuous bool) {
	now := make(map[key]bool, len(m.inForce)+len(m.unusable))
	for d := range m.present {
		now[keyOf(d.Ref)] = true
	}
	m.deleted = slices.DeleteFunc(m.deleted, func(d world.Deletion) bool { return now[keyOf(d.Ref)] })
	if continuous {
		for d := range was.present {
			if !now[keyOf(d.Ref)] {
				d.How = world.ByScan
				m.deleted = append(m.deleted, d)
			}
		}
	}
	if over := len(m.deleted) - maxDeleted; over > 0 {
		m.deleted = slices.Delete(m.deleted, 0, over)
	}
}

// noteOverlaps says which pools have addresses in common.
func (m *merged) noteOverlaps() {
	var w world.World
	for _, p := range m.inForce {
		for v := range p.values {
			if pool, ok := v.(*world.Pool); ok {
				w.Pools = append(w.Pools, pool)
			}
		}
	}
	w.SortLists()
	for _, problem := range convert.Overlaps(w.Pools) {
		at, there := slices.BinarySearchFunc(m.inForce, keyOf(problem.Object), func(p place, k key) int { return p.key().compare(k) })
		if there {
			problem.File, problem.Line = m.inForce[at].file.name, int(m.inForce[at].line)
		}
		m.problems = append(m.problems, problem)
	}
}

// world is everything in force, unsorted. What its lists lead to is shared with files and earlier Worlds.
func (m *merged) world() world.World {
	w := world.World{Source: Name, Cluster: Cluster, Deleted: slices.Clone(m.deleted)}
	counts := map[reflect.Type]int{}
	for _, p := range m.inForce {
		for v := range p.values {
			counts[reflect.TypeOf(v)]++
		}
	}
	grow(&w, counts)
	for _, p := range m.inForce {
		for v := range p.values {
			put(&w, v)
		}
	}
	for _, p := range m.unusable {
		ref := p.ref()
		if ref.Kind == kindEndpoints {
			ref.Kind = world.KindEndpointSlice
		}
		w.Unusable = append(w.Unusable, ref)
	}
	return w
}
