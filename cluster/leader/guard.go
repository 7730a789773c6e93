// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"fmt"
	"time"

	"fairlead.io/fairlead/fsm/world"
)

// Limits are the guard's thresholds. The zero value of each means its default (design §5).
type Limits struct {
	// Confirm is how long after the first was answered a second complete list must have begun before it confirms an
	// absence. Default 1 s.
	Confirm time.Duration
	// MaxAge is how old a view may be for an absence in it to count. Default 2 min.
	MaxAge time.Duration
	// Window is over how long absences are counted together. Default 10 min.
	Window time.Duration
	// Together is over how long objects are counted together that were seen to go. Default 5 s.
	Together time.Duration
	// Few is how many absences are never a mass change. Default 10.
	Few int
	// Rewind is how long older lists must keep coming before they are a rewind. Default 40 s: people are told within a minute, and lists
	// that tell nothing new come 8 s apart.
	Rewind time.Duration
	// AcceptRewinds is an operator's standing word that a rewind is the truth.
	AcceptRewinds bool
	// Burst and PerSecond limit the removals of one kind on the evidence of a deletion. Default 500 and 200.
	Burst     int
	PerSecond int
}

func (l Limits) withDefaults() Limits {
	l.Confirm = cmp.Or(l.Confirm, time.Second)
	l.MaxAge = cmp.Or(l.MaxAge, 2*time.Minute)
	l.Window = cmp.Or(l.Window, 10*time.Minute)
	l.Together = cmp.Or(l.Together, 5*time.Second)
	l.Rewind = cmp.Or(l.Rewind, 40*time.Second)
	l.Few = cmp.Or(l.Few, 10)
	l.Burst = cmp.Or(l.Burst, 500)
	l.PerSecond = cmp.Or(l.PerSecond, 200)
	return l
}

// Known is what the record holds of the objects that a source yields.
type Known struct {
	Part Part
	// Cluster and Versions are what the record last acted on for this source; empty and nil for nothing yet.
	Cluster  string
	Versions map[world.Kind]uint64
	// RewindAccepted says that an operator takes an older view for the truth.
	RewindAccepted bool
	// Rewound is why nothing of the source is acted on until an operator accepts that it ran back; empty if there is no such hold.
	Rewound string
	Objects []KnownObject
	Holds   []KnownHold
	// Homes are the namespaces of objects that are in Objects by their names alone, as far as the record knows them.
	Homes map[objectName]string
}

// KnownObject is an object that the record holds. For world.KindEndpointSlice it is the endpoints of one Service, under
// that Service's ID and without UID: the record keeps endpoints, not the slices that they came in.
type KnownObject struct {
	Kind world.Kind
	ID   world.ID
	UID  string
}

// KnownHold is a hold in the record.
type KnownHold struct {
	ID       string
	Kind     world.Kind
	Subjects []string
	Released bool
}

// Verdict is what a view is worth.
type Verdict struct {
	// Act says that the view may be planned from at all. If not, nothing of it may be acted on, additions included,
	// and Why tells the reason.
	Act bool
	Why string
	// Complete says that this guard has let a complete view pass, this one or an earlier one.
	Complete bool
	// Gone are the objects that may be removed. What is not in it must stay, however absent it is.
	Gone []Removal
	// Waiting are the objects that are absent or deleted and may not be removed yet.
	Waiting []Wait
	// AddOnly are the Services whose recorded endpoints must stay unless the view lists them as not serving.
	AddOnly map[world.ID]string
	// Hold are mass changes to put before an operator, and Lift the ids of holds that are over.
	Hold []Hold
	Lift []string
	// Cluster and Versions are what is acted on by acting on this view, to be committed with the plan's commands.
	Cluster  string
	Versions []KindVersion
	// Relist names the kinds of which a new list would settle something. A source that lists all the time needs
	// no asking.
	Relist []world.Kind
	// Anew says that this guard lost what earlier lists had told it: one that tells the source nothing new tells it something.
	Anew bool
	// Older says that the view is older than what was acted on or seen before, or that nobody has accepted a rewind; Rewind is set once
	// that was so for too long for a server that lags.
	Older  bool
	Rewind *Rewind
	// Again is when to judge again though nothing may have changed; zero if only a change matters.
	Again time.Duration

	gone  map[objectName]bool
	ended map[KnownObject]bool
}

// objectName is an object whatever its UID; but for pods the record holds one life of it at most.
type objectName struct {
	kind world.Kind
	id   world.ID
}

// Removal is an object that may be removed, and the evidence for it.
type Removal struct {
	KnownObject
	Evidence string
}

// Wait is an object that may not be removed yet, and why.
type Wait struct {
	KnownObject
	Code Code // WaitsForEvidence or WaitsForOperator
	Why  string
}

// Hold is a mass change that waits for an operator. Its ID is drawn from its subjects: another set is another hold.
type Hold struct {
	ID       string
	Kind     world.Kind
	Subjects []string
	Why      string
}

// KindVersion is a resourceVersion of a kind.
type KindVersion struct {
	Kind    world.Kind
	Version uint64
}

// MayRemove tells whether the absence of a recorded object from the view may be acted on. For world.KindEndpointSlice
// the id is that of the Service, and the answer is about those of its endpoints that the view does not list.
func (v *Verdict) MayRemove(kind world.Kind, id world.ID) bool {
	if kind == world.KindEndpointSlice {
		_, addOnly := v.AddOnly[id]
		return v.Act && !addOnly
	}
	return v.gone[objectName{kind, id}]
}

// MayEnd tells whether the absence of one life of a recorded object may be acted on. A pod that the record has under two
// UIDs is asked about with each.
func (v *Verdict) MayEnd(o KnownObject) bool { return v.ended[o] }

// Guard decides which absences and deletions in successive views of one source may be acted on. It removes nothing
// for an empty, partial, failing, foreign or stale view (S12), and forgets everything when a new leader makes a new
// one: absences then have to be confirmed anew. One goroutine owns it.
type Guard struct {
	limits Limits

	sightings map[subject]sighting
	granted   map[subject]grant
	buckets   map[world.Kind]*bucket
	quiet     map[world.Kind]time.Duration // since when no more of a kind was absent than may go by itself
	slices    sliceMemory
	rewind    rewindWatch
	forgot    bool // what absences had been confirmed, since the last view that passed
	heard     bool // the record was heard of
	accepted  bool // the record said last that a rewind is accepted
	// acted is what the record said last that was acted on.
	acted    map[world.Kind]uint64
	complete bool // a complete view passed
}

// NewGuard returns a guard that has seen nothing.
func NewGuard(l Limits) *Guard {
	return &Guard{limits: l.withDefaults(), sightings: map[subject]sighting{}, granted: map[subject]grant{},
		buckets: map[world.Kind]*bucket{}, quiet: map[world.Kind]time.Duration{}, slices: newSliceMemory()}
}

// Judge says what a view is worth. Now is the reading of a monotonic clock at the moment at which w was taken from
// its source; it never runs back.
func (g *Guard) Judge(now time.Duration, w *world.World, known *Known) Verdict {
	v := Verdict{Complete: g.complete, AddOnly: map[world.ID]string{}, gone: map[objectName]bool{}, ended: map[KnownObject]bool{}}
	if v.Why = noView(w, known); v.Why != "" {
		g.forgetAbsences()
		g.rewind.caughtUp()
		return v
	}
	accepted := g.heed(w, known)
	if g.runsBack(now, w, known, &v) {
		g.forgetAbsences()
		return v
	}
	g.See(w, known.Cluster)
	if accepted {
		v.Relist = allKinds(w)
	}
	if kind, ok := unlisted(w); ok {
		v.Why = fmt.Sprintf("%s objects have not been listed yet", kind)
		return v
	}
	g.complete = g.complete || w.Complete
	v.Anew, g.forgot = g.forgot, false
	v.Act, v.Complete, v.Cluster, v.Versions = true, g.complete, w.Cluster, versions(w, known)
	j := judgement{Guard: g, now: now, w: w, known: known, v: &v}
	j.run()
	return v
}

// noView says why w is no view of the cluster that the record knows, or nothing.
func noView(w *world.World, known *Known) string {
	if known.Cluster != "" && w.Cluster != known.Cluster {
		return fmt.Sprintf("the view is of cluster %q, the record of %q", w.Cluster, known.Cluster)
	}
	if _, ok := unlisted(w); ok || !w.WholeCluster {
		return ""
	}
	if len(w.Nodes) == 0 {
		return "the view has no Node, as no cluster has"
	}
	for i := range w.Services {
		if w.Services[i].ID == (world.ID{Namespace: "default", Name: "kubernetes"}) {
			return ""
		}
	}
	return "the view lacks the Service default/kubernetes, which every cluster has"
}

func unlisted(w *world.World) (world.Kind, bool) {
	if len(w.Kinds) == 0 {
		return "any", true
	}
	for _, k := range w.Kinds {
		if !k.Listed {
			return k.Kind, true
		}
	}
	return "", false
}

// versions are those that acting on w makes the newest acted on.
func versions(w *world.World, known *Known) []KindVersion {
	var out []KindVersion
	for _, k := range w.Kinds {
		if k.Version != 0 && (k.Version > known.Versions[k.Kind] || known.RewindAccepted) {
			out = append(out, KindVersion{k.Kind, k.Version})
		}
	}
	return out
}

// forgetAbsences starts every confirmation anew. What was granted still counts.
func (g *Guard) forgetAbsences() {
	clear(g.sightings)
	clear(g.quiet)
	g.slices = newSliceMemory()
	g.forgot = true
}
