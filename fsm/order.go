// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"slices"
	"sort"
)

// An order has the slots of records in the order of their keys, and none of the keys: records have those. It is copy-on-write in runs, as a
// vector is in pages: a copy of it costs the same whatever its size, but for a pointer for each run at the first write after it.
//
// In a B-tree a key took 55 bytes beside its text, of which Kubernetes makes many that no record has as such (an address and its owner): a
// third of what there was of small records. To compare takes longer here, since some keys are written anew for it; of records that are
// replaced none is compared.
type order struct {
	runs   []*run // none is empty
	count  int
	shared bool // runs is also another order's
	// edition tells which runs are this order's alone, as in a vector.
	edition uint64
}

// runSize makes runs of 2 KiB.
const runSize = 508

// run is a part of an order.
type run struct {
	edition uint64
	len     int
	slots   [runSize]uint32
}

func (r *run) list() []uint32 { return r.slots[:r.len] }

// spot is where in an order a slot is, or would be.
type spot struct{ run, at int }

// search finds the first slot that is not before what is looked for. compare tells where a slot is beside it: before (negative), there (0),
// or after.
func (o *order) search(compare func(slot uint32) int) (p spot, found bool) {
	// The last run that begins at or before it.
	after := sort.Search(len(o.runs), func(i int) bool { return compare(o.runs[i].slots[0]) > 0 })
	if after == 0 {
		return spot{}, false
	}
	p.run = after - 1
	slots := o.runs[p.run].list()
	p.at = sort.Search(len(slots), func(i int) bool { return compare(slots[i]) >= 0 })
	return p, p.at < len(slots) && compare(slots[p.at]) == 0
}

// last is the greatest of an order that is not empty.
func (o *order) last() uint32 {
	r := o.runs[len(o.runs)-1]
	return r.slots[r.len-1]
}

// insert puts a slot where compare, which tells where others are beside it, has it.
func (o *order) insert(slot uint32, compare func(slot uint32) int) {
	o.count++
	if o.count == 1 || compare(o.last()) < 0 { // as a snapshot has them, and as whoever counts up makes them
		o.append(slot)
		return
	}
	p, _ := o.search(compare)
	r := o.own(p.run)
	if r.len == runSize {
		o.split(p.run)
		if p.at > r.len {
			p = spot{p.run + 1, p.at - r.len}
			r = o.runs[p.run]
		}
	}
	copy(r.slots[p.at+1:r.len+1], r.slots[p.at:r.len])
	r.slots[p.at] = slot
	r.len++
}

// append puts a slot after all others. Runs that are full stay so.
func (o *order) append(slot uint32) {
	last := len(o.runs) - 1
	if last < 0 || o.runs[last].len == runSize {
		o.ownRuns()
		o.runs = append(o.runs, &run{edition: o.edition})
		last++
	}
	r := o.own(last)
	r.slots[r.len] = slot
	r.len++
}

// split makes two of a run that is this order's own.
func (o *order) split(i int) {
	r, more := o.runs[i], &run{edition: o.edition}
	more.len = copy(more.slots[:], r.slots[r.len/2:r.len])
	r.len -= more.len
	o.runs = slices.Insert(o.runs, i+1, more)
}

// remove takes out the slot that compare says is there.
func (o *order) remove(compare func(slot uint32) int) {
	p, found := o.search(compare)
	if !found {
		return
	}
	o.count--
	r := o.own(p.run)
	copy(r.slots[p.at:], r.slots[p.at+1:r.len])
	r.len--
	if r.len == 0 {
		o.runs = slices.Delete(o.runs, p.run, p.run+1)
		return
	}
	o.join(p.run)
}

// join makes one of a run and a neighbour that are less than half of one together, so that what was large once takes no more than it needs.
func (o *order) join(i int) {
	for left := max(i-1, 0); left <= i && left+1 < len(o.runs); left++ {
		if next := o.runs[left+1]; o.runs[left].len+next.len < runSize/2 {
			r := o.own(left)
			r.len += copy(r.slots[r.len:], next.list())
			o.runs = slices.Delete(o.runs, left+1, left+2)
			return
		}
	}
}

// own gives a run that no other order refers to.
func (o *order) own(i int) *run {
	o.ownRuns()
	if o.runs[i].edition != o.edition {
		r := *o.runs[i]
		r.edition = o.edition
		o.runs[i] = &r
	}
	return o.runs[i]
}

func (o *order) ownRuns() {
	if o.shared {
		o.runs, o.shared = slices.Clone(o.runs), false
	}
}

// each visits slots in order, from the first on that compare does not tell to be before; from the very first without one; until visit says no.
func (o *order) each(compare func(slot uint32) int, visit func(slot uint32) bool) {
	var p spot
	if compare != nil {
		p, _ = o.search(compare)
	}
	for ; p.run < len(o.runs); p = (spot{p.run + 1, 0}) {
		for _, slot := range o.runs[p.run].list()[p.at:] {
			if !visit(slot) {
				return
			}
		}
	}
}

// frozen is o as it is now; o itself may be written to further.
func (o *order) frozen() order {
	o.edition++
	o.shared = true
	return order{runs: o.runs, count: o.count, shared: true}
}
