// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"net/netip"
	"slices"
)

// exchange is in what order paths come and others of their prefixes go, so that no peer has none for a moment, nor more than its limit.
type exchange struct {
	firstGo, firstCome, lastGo, lastCome []Step
}

// exchange puts steps in order: those that come first, except of prefixes of which a peer would have too many.
func (l limits) exchange(come, gone []Step, observed []Path) (x exchange) {
	coming, going := byPrefix(come), byPrefix(gone)
	had := map[netip.Prefix][]Path{}
	for _, p := range observed {
		if coming[p.Prefix] != nil && going[p.Prefix] != nil {
			had[p.Prefix] = append(had[p.Prefix], p)
		}
	}
	tight := map[netip.Prefix]bool{}
	for prefix, paths := range had {
		tight[prefix] = l.exceeded(append(slices.Clone(paths), coming[prefix]...))
	}
	for _, step := range come {
		if !tight[step.Path.Prefix] {
			x.firstCome = append(x.firstCome, step)
		}
	}
	for _, step := range gone {
		if !tight[step.Path.Prefix] {
			x.lastGo = append(x.lastGo, step)
		}
	}
	for prefix := range had {
		if tight[prefix] {
			l.trade(&x, had[prefix], coming[prefix], going[prefix])
		}
	}
	for _, steps := range [][]Step{x.firstGo, x.firstCome, x.lastGo, x.lastCome} {
		slices.SortStableFunc(steps, func(a, b Step) int { return inOrder(a.Path.Prefix, b.Path.Prefix) })
	}
	return x
}

func byPrefix(steps []Step) map[netip.Prefix][]Path {
	out := map[netip.Prefix][]Path{}
	for _, step := range steps {
		out[step.Path.Prefix] = append(out[step.Path.Prefix], step.Path)
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
	return l.some(paths, func(name string, most int) bool { return len(sentTo(name, paths)) > most })
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
