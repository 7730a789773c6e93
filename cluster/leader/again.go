// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// idle is the newest plan of everything that had nothing to propose, and what it was made from. A plan made from the same again comes to
// the same, and a large cluster's costs a second and a hundred megabytes.
type idle struct {
	in   Input
	out  Result
	upto time.Duration // not after this: zero for nothing planned
}

// idleFor bounds for how long a plan stands for those that would be made from the same.
const idleFor = 5 * time.Minute

// keep takes in what a plan came to, which was made from calm verdicts or others.
func (i *idle) keep(in Input, calm bool, out *Result, now time.Duration) {
	*i = idle{}
	if calm && len(out.Urgent)+len(out.Bulk) == 0 {
		*i = idle{in: in, out: *out, upto: now + idleFor}
	}
}

// repeats tells whether a plan from in, with calm verdicts, would come to what is kept.
func (i *idle) repeats(in *Input, now time.Duration) bool { return now < i.upto && i.in.same(in) }

// same tells whether a plan from o comes to what one from in does, provided that all verdicts are calm, for one Leader. It looks at no object.
func (in *Input) same(o *Input) bool {
	return in.Adopting == o.Adopting && in.Leased == o.Leased && slices.Equal(in.Excused, o.Excused) && slices.Equal(in.ExcusedNodes, o.ExcusedNodes) &&
		slices.Equal(in.ServiceCIDRs, o.ServiceCIDRs) &&
		(in.Servers == nil) == (o.Servers == nil) && slices.Equal(in.Servers, o.Servers) &&
		!decided(in.Record, o.Record, fsm.Tables()...) && slices.EqualFunc(in.Views, o.Views, sameAdmitted)
}

func sameAdmitted(a, b Admitted) bool {
	return a.Complete == b.Complete && a.World != nil && b.World != nil && sameView(a.World, b.World)
}

// sameView tells whether two views for PartServices are one, of whatever age, and how often it was confirmed.
func sameView(a, b *world.World) bool {
	return a.Source == b.Source && a.WholeCluster == b.WholeCluster && sameLists(a, b) && slices.EqualFunc(a.Kinds, b.Kinds, func(x, y world.KindView) bool {
		return x.Kind == y.Kind && x.Listed == y.Listed && x.Complete == y.Complete && x.Away == y.Away && x.Version == y.Version
	})
}

// calm tells whether a verdict takes nothing away, waits for nothing and asks for nothing: all that the record holds is there.
func (v *Verdict) calm() bool {
	return v.Act && len(v.Gone)+len(v.Waiting)+len(v.AddOnly)+len(v.Hold)+len(v.Lift)+len(v.Relist) == 0 && !v.Older && v.Again == 0
}

// calm tells whether the guard, whose newest verdict this is, says the same of the same view and record at any later time, and remembers the
// same of it.
func (g *Guard) calm(v *Verdict) bool {
	return v.calm() && g.slices.settled && len(g.sightings)+len(g.granted) == 0
}

// still tells whether the guards would say again what they said last.
func (s *sentry) still(worlds []world.World, record *fsm.View) bool {
	last := &s.judged
	if s.part != PartServices || last.verdicts == nil || record.Count(fsm.TableHolds) > 0 || decided(last.record, record, fsm.Tables()...) {
		return false
	}
	for i := range worlds {
		if !s.guards[i].calm(&last.verdicts[i]) || !sameView(&last.worlds[i], &worlds[i]) {
			return false
		}
	}
	return true
}

// calm tells whether all verdicts are.
func (j *judged) calm() bool {
	return !slices.ContainsFunc(j.verdicts, func(v Verdict) bool { return !v.calm() })
}
