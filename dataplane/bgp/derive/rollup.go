// SPDX-License-Identifier: Apache-2.0

package derive

import (
	"maps"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
)

// Rollup keeps what a member announces of a record that changes: the paths of a Follower, aggregates in the place of the
// addresses that they stand for, and summaries beside theirs. It has no memory: equal records give equal paths. The zero value has seen nothing; one goroutine
// uses it, with newer and newer views of one State.
//
// From one view to the next, announced in the order of bgp.Plan, each packet to an address that both announce goes to a node that
// one of them has as a next hop of it.
type Rollup struct {
	singles    Follower
	aggregates aggregates
	summaries  summaries
	paths      bgp.Paths
}

// Follow takes in a newer view, and gives what a Follower's does.
func (r *Rollup) Follow(v *fsm.View) (paths bgp.Paths, touched []netip.Prefix, whole bool) {
	singles, touched, whole := r.singles.Follow(v)
	changed := r.aggregates.follow(&r.singles, touched, whole)
	beside := r.summaries.follow(&r.singles, touched, whole)
	switch {
	case len(changed)+len(beside) == 0 && len(r.aggregates.drawn)+len(r.summaries.beside) == 0:
		r.paths = singles
		return singles, touched, whole
	case whole:
		r.paths = r.summaries.with(bgp.Aggregated(singles, slices.Collect(maps.Keys(r.aggregates.drawn))))
		return r.paths, nil, true
	}
	dirty := map[netip.Prefix]bool{}
	for _, p := range touched {
		dirty[p] = true
	}
	for block := range beside {
		dirty[block] = true
	}
	for block := range changed {
		dirty[block] = true
		for _, p := range singles.In(block) {
			dirty[p.Prefix] = true
		}
	}
	touched = slices.SortedFunc(maps.Keys(dirty), netip.Prefix.Compare)
	if len(touched) > 0 {
		r.paths = r.paths.With(touched, r.of)
	}
	return r.paths, touched, false
}

// of gives what is announced of one prefix.
func (r *Rollup) of(prefix netip.Prefix) []bgp.Path {
	if !prefix.IsSingleIP() {
		if stands := r.aggregates.drawn[prefix]; stands != nil {
			return stands
		}
		return r.summaries.beside[prefix]
	}
	if r.aggregates.cover(&r.singles, prefix.Addr()) {
		return nil
	}
	return r.singles.paths.Of(prefix)
}

// Singles are the paths of single addresses, of the view that was followed last: what Paths gives of it.
func (r *Rollup) Singles() bgp.Paths { return r.singles.paths }

// Apart are those, and the prefixes that are announced beside them.
func (r *Rollup) Apart() bgp.Paths { return r.summaries.with(r.singles.paths) }

// Stale tells whether a view that differs from the one followed last in no table of Tables allows for other paths all the same.
func (r *Rollup) Stale(v *fsm.View) bool { return r.aggregates.all != mayDraw(v) }
