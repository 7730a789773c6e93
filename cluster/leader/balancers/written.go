// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// writings are the BackendRecords of the newest plan, and those of them that are more than what we wrote ourselves.
type writings struct {
	group fsm.GroupID
	all   []*world.BackendRecord
	other []*world.BackendRecord
}

// otherRecords are the BackendRecords that somebody else may have had a hand in, in order. Where nothing was restored, there
// is nothing to learn from the rest: nearly all of them.
func (p *planner) otherRecords() []*world.BackendRecord {
	if p.quarantined {
		return p.in.BackendRecords
	}
	w := &p.index.written
	if w.group != p.group.ID || !slices.Equal(w.all, p.in.BackendRecords) {
		w.group, w.all, w.other = p.group.ID, slices.Clone(p.in.BackendRecords), nil
		for _, r := range w.all {
			if r.Deleting || !p.mirrored(r) {
				w.other = append(w.other, r)
			}
		}
	}
	return w.other
}

// unaskedRecords are those of the rest, in order, that are of bindings whose drivers we asked for nothing yet.
func (p *planner) unaskedRecords() []*world.BackendRecord {
	if p.quarantined {
		return nil
	}
	var out []*world.BackendRecord
	for _, b := range p.index.unasked {
		r := find(p.in.BackendRecords, b.id, func(r *world.BackendRecord) world.ID { return r.ID })
		if r != nil && !r.Deleting && p.mirrored(r) {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b *world.BackendRecord) int { return a.ID.Compare(b.ID) })
	return out
}

// mirrored tells whether a BackendRecord is one of this group's own.
func (p *planner) mirrored(r *world.BackendRecord) bool {
	if r.Mirror == "" {
		return false
	}
	group, _ := splitMark(r.Mirror)
	return group == "" || group == string(p.group.ID)
}
