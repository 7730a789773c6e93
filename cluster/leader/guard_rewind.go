// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm/world"
)

// rewindWatch is what a guard knows of versions that run back.
type rewindWatch struct {
	// newest are those that were seen in this term of the cluster that the record knows, acted on or not: much may have happened
	// that there was nothing to do about, and all of it is lost in a backup from before.
	newest map[world.Kind]uint64
	// older says that views are older than what was seen, and since when the first one was: a time of Judge.
	older bool
	since time.Duration
	// told is set once they were for too long for a server that lags. Only a person's word ends it: a cluster that was set back soon
	// overtakes the versions that were seen, and what it lost is missing still.
	told *Rewind
	held bool // the record has a hold for it
}

// caughtUp ends the suspicion that views that were older came from a cluster that was set back.
func (r *rewindWatch) caughtUp() { r.older, r.since = false, 0 }

// See takes in how far a view of a cluster is, whether or not it is judged.
func (g *Guard) See(w *world.World, known string) {
	if known == "" || w.Cluster != known || g.accepted {
		return // nothing was acted on that could be taken back, the versions are those of others, or whatever comes next counts
	}
	if g.rewind.newest == nil {
		g.rewind.newest = make(map[world.Kind]uint64, len(w.Kinds))
	}
	for _, k := range w.Kinds {
		g.rewind.newest[k.Kind] = max(g.rewind.newest[k.Kind], k.Version)
	}
}

// olderKinds are the kinds of which the view is older than what was acted on or seen, and those versions.
func (g *Guard) olderKinds(w *world.World, known *Known) (older, seen []KindVersion) {
	if known.RewindAccepted {
		return nil, nil
	}
	for _, k := range w.Kinds {
		if newest := max(known.Versions[k.Kind], g.rewind.newest[k.Kind]); k.Version != 0 && k.Version < newest {
			older, seen = append(older, KindVersion{k.Kind, k.Version}), append(seen, KindVersion{k.Kind, newest})
		}
	}
	return older, seen
}

// runsBack tells whether a view is older than what was acted on or seen, or comes after such that were so for too long: nothing of it may be
// acted on then. It tells a view that lags from a cluster that was set back: only the second goes on listing itself for long. All is
// listed anew meanwhile, since a watch of what has been overtaken goes on as if nothing had happened.
func (g *Guard) runsBack(now time.Duration, w *world.World, known *Known, v *Verdict) bool {
	older, seen := g.olderKinds(w, known)
	if len(older) == 0 && g.rewind.told == nil {
		g.rewind.caughtUp()
		return false
	}
	v.Older = true
	v.Relist = allKinds(w)
	v.Again = g.limits.Confirm
	if len(older) > 0 {
		g.suspect(now, w, older, seen)
		v.Why = fmt.Sprintf("the view of %s is at version %d, older than %d which was seen before", older[0].Kind, older[0].Version, seen[0].Version)
	}
	if v.Rewind = g.rewind.told; v.Rewind != nil {
		v.Why = v.Rewind.Why
	}
	return true
}

// suspect notes that a view is older, and that the cluster ran back once lists say so that began long after the first did.
func (g *Guard) suspect(now time.Duration, w *world.World, older, seen []KindVersion) {
	r := &g.rewind
	if !r.older {
		r.older, r.since = true, now
	}
	listed := now // when the oldest of the newest lists of these kinds began
	for _, o := range older {
		k, _ := w.View(o.Kind)
		if !k.Complete {
			return
		}
		listed = min(listed, now-k.ListAge)
	}
	if r.told == nil && listed-r.since > g.limits.Rewind {
		r.told = &Rewind{Older: older, Seen: seen, Accept: g.limits.AcceptRewinds, Why: whyRewound(w.Source, older[0], seen[0])}
	}
}

// heed takes in what the record says of the cluster having been set back: that an earlier leader found it out, and an operator's word that
// it is meant. What was seen before counts no more then, and everything is to be listed anew, once, since what it overtook before it was
// watched again looks as if nothing had happened. Where another part's plan was first to act on that word, the record only shows that it
// knows less than it did, or holds nothing any more.
func (g *Guard) heed(w *world.World, known *Known) (anew bool) {
	r := &g.rewind
	if !g.heard && known.Rewound != "" {
		r.told = &Rewind{Why: known.Rewound}
	}
	g.heard = true
	less := func(k world.KindView) bool { return known.Versions[k.Kind] < g.acted[k.Kind] }
	over := r.told != nil && r.held && known.Rewound == ""
	r.held = known.Rewound != ""
	anew = known.RewindAccepted && !g.accepted || over || slices.ContainsFunc(w.Kinds, less)
	if anew {
		*r = rewindWatch{}
	}
	g.accepted, g.acted = known.RewindAccepted, maps.Clone(known.Versions)
	return anew
}

// whyRewound tells of a rewind by one of the kinds, and what to do about it.
func whyRewound(source string, older, seen KindVersion) string {
	return fmt.Sprintf("the cluster ran back, as after a restore of its etcd: %s is listed at version %d, and was at %d; nothing of it is acted on until `fairlead accept-rewind %s` says that this is meant",
		older.Kind, older.Version, seen.Version, source)
}

func allKinds(w *world.World) []world.Kind {
	out := make([]world.Kind, len(w.Kinds))
	for i, k := range w.Kinds {
		out[i] = k.Kind
	}
	return out
}

// Rewind is a cluster whose versions ran back, as after a restore of its etcd.
type Rewind struct {
	// Older are the kinds and the versions that the view had of them when that was found out; Seen those that were seen before. Both are
	// empty where an earlier leader found it out.
	Older []KindVersion
	Seen  []KindVersion
	// Accept says that a standing word of the operator accepts it.
	Accept bool
	// Why is what people are told, with what to do about it.
	Why string
}
