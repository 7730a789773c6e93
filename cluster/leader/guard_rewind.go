// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm/world"
)

// rewindWatch remembers since when the views are older than what was acted on, while they are consistent.
type rewindWatch struct {
	on    bool
	since time.Duration // when the first such list began
}

// olderKinds are the kinds of which the view is older than what was acted on.
func olderKinds(w *world.World, known *Known) []KindVersion {
	if known.RewindAccepted {
		return nil
	}
	var out []KindVersion
	for _, k := range w.Kinds {
		if k.Version != 0 && k.Version < known.Versions[k.Kind] {
			out = append(out, KindVersion{k.Kind, k.Version})
		}
	}
	return out
}

// judgeOlder lets nothing of an older view be acted on, and tells a view that lags from a cluster that was set back:
// only the second goes on listing itself, whole, for long.
func (g *Guard) judgeOlder(now time.Duration, w *world.World, known *Known, older []KindVersion, v *Verdict) {
	for _, o := range older {
		v.Relist = append(v.Relist, o.Kind)
	}
	v.Why = fmt.Sprintf("the view of %s is at version %d, older than %d which was acted on", older[0].Kind, older[0].Version, known.Versions[older[0].Kind])
	v.Again = g.limits.Confirm
	list, consistent := oldestList(now, w)
	if !consistent {
		g.rewind = rewindWatch{}
		return
	}
	if !g.rewind.on {
		g.rewind = rewindWatch{on: true, since: list}
	}
	if list-g.rewind.since <= g.limits.Rewind {
		return
	}
	r := &Rewind{Older: older, Accept: g.limits.AcceptRewinds}
	for _, o := range older {
		r.Acted = append(r.Acted, KindVersion{o.Kind, known.Versions[o.Kind]})
	}
	v.Rewind = r
	v.Why = "the cluster ran back, as after a restore of its etcd: " + v.Why
}

// relistAccepted asks, once, for everything anew when an operator says that the cluster was set back: what it overtook
// before it was watched again looks as if nothing had happened. Where another part's plan was first to act on that word, the
// record only shows that it knows less than it did.
func (g *Guard) relistAccepted(w *world.World, known *Known, v *Verdict) {
	less := func(k world.KindView) bool { return known.Versions[k.Kind] < g.acted[k.Kind] }
	if known.RewindAccepted && !g.accepted || slices.ContainsFunc(w.Kinds, less) {
		for _, k := range w.Kinds {
			v.Relist = append(v.Relist, k.Kind)
		}
	}
	g.accepted, g.acted = known.RewindAccepted, maps.Clone(known.Versions)
}

// oldestList tells when the oldest of the newest lists began, and whether all are complete.
func oldestList(now time.Duration, w *world.World) (began time.Duration, complete bool) {
	began = now
	for _, k := range w.Kinds {
		if !k.Complete {
			return 0, false
		}
		began = min(began, now-k.ListAge)
	}
	return began, true
}
