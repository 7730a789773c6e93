// SPDX-License-Identifier: Apache-2.0

package derive

import (
	"maps"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
)

// Rollup keeps what a member announces of a record that changes: the paths of a Follower, and aggregates in the place of the
// addresses that they stand for. It has no memory: equal records give equal paths. The zero value has seen nothing; one goroutine
// uses it, with newer and newer views of one State.
//
// From one view to the next, announced in the order of bgp.Plan, each packet to an address that both announce goes to a node that
// one of them has as a next hop of it.
type Rollup struct {
	singles    Follower
	aggregates aggregates
	paths      bgp.Paths
}

// Follow takes in a newer view, and gives what a Follower's does.
func (r *Rollup) Follow(v *fsm.View) (paths bgp.Paths, touched []netip.Prefix, whole bool) {
	singles, touched, whole := r.singles.Follow(v)
	changed := r.aggregates.follow(&r.singles, touched, whole)
	switch {
	case len(changed) == 0 && len(r.aggregates.drawn) == 0:
		r.paths = singles
		return singles, touched, whole
	case whole:
		r.paths = bgp.Aggregated(singles, slices.Collect(maps.Keys(r.aggregates.drawn)))
		return r.paths, nil, true
	}
	dirty := map[netip.Prefix]bool{}
	for _, p := range touched {
		dirty[p] = true
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
		return r.aggregates.drawn[prefix]
	}
	if r.aggregates.cover(&r.singles, prefix.Addr()) {
		return nil
	}
	return r.singles.paths.Of(prefix)
}

// Singles are the paths of single addresses, of the view that was followed last: what Paths gives of it.
func (r *Rollup) Singles() bgp.Paths { return r.singles.paths }

// Stale tells whether a view that differs from the one followed last in no table of Tables allows for other paths all the same.
func (r *Rollup) Stale(v *fsm.View) bool { return r.aggregates.all != mayDraw(v) }
