// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"maps"
	"net/netip"
	"slices"
)

// exchange is in what order paths come and others of their prefixes go, so that no peer has none for a moment, nor more than its limit.
type exchange struct {
	firstGo, firstCome, lastGo, lastCome []Step
}

// exchange puts steps in order: those that come first, except of prefixes of which a peer would have too many. It tells whether there are any.
func (l limits) exchange(come, gone []Step, observed []Path) (x exchange, any bool) {
	if len(come) == 0 || len(gone) == 0 {
		return x, false
	}
	going := byPrefix(gone, func(netip.Prefix) bool { return true })
	coming := byPrefix(come, func(p netip.Prefix) bool { return going[p] != nil })
	tight := map[netip.Prefix][]Path{}
	for _, p := range observed {
		if coming[p.Prefix] != nil {
			tight[p.Prefix] = append(tight[p.Prefix], p)
		}
	}
	maps.DeleteFunc(tight, func(p netip.Prefix, had []Path) bool { return !l.exceeded(slices.Concat(had, coming[p])) })
	if len(tight) == 0 {
		return x, false
	}
	loose := func(step Step) bool { return tight[step.Path.Prefix] == nil }
	x.firstCome, x.lastGo = filter(come, loose), filter(gone, loose)
	for prefix, had := range tight {
		l.trade(&x, had, coming[prefix], going[prefix])
	}
	for _, steps := range [][]Step{x.firstGo, x.firstCome, x.lastGo, x.lastCome} {
		slices.SortStableFunc(steps, func(a, b Step) int { return inOrder(a.Path.Prefix, b.Path.Prefix) })
	}
	return x, true
}

func filter(steps []Step, keep func(Step) bool) (out []Step) {
	for _, step := range steps {
		if keep(step) {
			out = append(out, step)
		}
	}
	return out
}

func byPrefix(steps []Step, wanted func(netip.Prefix) bool) map[netip.Prefix][]Path {
	out := map[netip.Prefix][]Path{}
	for _, step := range steps {
		if p := step.Path; wanted(p.Prefix) {
			out[p.Prefix] = append(out[p.Prefix], p)
		}
	}
	return out
}

// trade puts the steps of one prefix in order, of which there are paths: as many go first as make room for what comes, but one that every
// peer keeps; as many come as there is room for.
func (l limits) trade(x *exchange, there, come, gone []Path) {
	there = slices.Clone(there)
	slices.SortStableFunc(gone, func(a, b Path) int { return Prefer(b, a) })
	slices.SortStableFunc(come, Prefer)
	for _, p := range gone {
		without := slices.DeleteFunc(slices.Clone(there), func(q Path) bool { return q.PathID == p.PathID })
		step := Step{Action: RemovePath, Path: p}
		if l.exceeded(append(slices.Clone(there), come...)) && !l.bereft(there, without) {
			there, x.firstGo = without, append(x.firstGo, step)
		} else {
			x.lastGo = append(x.lastGo, step)
		}
	}
	for _, p := range come {
		with := append(slices.Clone(there), p)
		step := Step{Action: AddPath, Path: p}
		if l.exceeded(with) {
			x.lastCome = append(x.lastCome, step)
		} else {
			there, x.firstCome = with, append(x.firstCome, step)
		}
	}
}

// exceeded tells whether a peer is sent more of the paths of a prefix than its limit.
func (l limits) exceeded(paths []Path) bool {
	return l.some(paths, func(name string, most int) bool { return len(paths) > most && len(sentTo(name, paths)) > most })
}

// bereft tells whether a peer is sent some paths of a prefix of those before, and none after.
func (l limits) bereft(before, after []Path) bool {
	return l.some(before, func(name string, _ int) bool { return len(sentTo(name, before)) > 0 && len(sentTo(name, after)) == 0 })
}

// some tells whether something is so of a peer that is sent paths of the family of these.
func (l limits) some(paths []Path, is func(name string, most int) bool) bool {
	family := FamilyOf(paths[0].Prefix.Addr())
	return slices.ContainsFunc(l.names[family], func(name string) bool { return is(name, l.most[family][name]) })
}
