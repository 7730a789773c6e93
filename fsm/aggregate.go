// SPDX-License-Identifier: Apache-2.0

package fsm

import "slices"

// Unheard names a member or a node whose sessions may announce paths that the record does not have: a withdrawal ended without
// its word, and it has not caught up since. Such paths rank last; but a longer prefix beats a shorter one whatever its rank.
func (v *View) Unheard() (who string, some bool) {
	for _, m := range List[*Member](v, TableMembers) {
		if m.Withdrawn.Before(m.Excused) {
			return "member " + m.Name, true
		}
	}
	for _, n := range List[*Node](v, TableNodes) {
		if n.Speaking.MayBeHeld(n.Speaking.Excused) {
			return "node " + string(n.ID), true
		}
	}
	return "", false
}

// Settled tells whether all that any switch can hold of a route are paths to its next hops: each of these may be announced, and
// none is on its way out. Otherwise it says which is not.
func (v *View) Settled(r *Route) (unsettled NextHop, ok bool) {
	settings := v.Group().Settings
	i := slices.IndexFunc(r.NextHops, func(h NextHop) bool {
		n, _ := Get[*Node](v, TableNodes, string(h.Node()))
		return !Announceable(r.Prefix, h, n, settings)
	})
	if i >= 0 {
		return r.NextHops[i], false
	}
	return NextHop{}, len(r.NextHops) > 0
}
