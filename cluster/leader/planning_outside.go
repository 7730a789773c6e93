// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fairlead.io/fairlead/cluster/leader/balancers"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// outsidePlanning is the loop from sources and record to proposals about outside load balancers, for one term. It is apart from
// planning because pods come and go much more often than anything that Services are planned from.
type outsidePlanning struct {
	*sentry
	// adopting says that the newest plan had something to propose, or that there is none yet.
	adopting atomic.Bool

	seen    []world.World // that the newest plan was made from
	said    []Verdict
	answers map[string]balancers.Judgement
	record  *fsm.View
	due     time.Duration // when to plan though nothing has changed
	pause   time.Duration // not before this
	refused int           // plans in a row of which something was refused
	ahead   bool          // the newest plan was made ahead of a verdict that is due
	unsure  bool          // the newest plan added nothing
	index   balancers.Index
	merging mergingOutside

	withheld  map[string]bool // what the newest plan of a dry run would have proposed
	rehearsal *rehearsal
}

// plannedOutsideFrom are the tables that outside load balancers are planned from.
func plannedOutsideFrom() []fsm.Table {
	return []fsm.Table{fsm.TableGroup, fsm.TableDrivers, fsm.TableBalancers, fsm.TableBindings, fsm.TableHolds}
}

func newOutsidePlanning(l *Leader) *outsidePlanning {
	o := &outsidePlanning{sentry: newSentry(l, PartOutside), rehearsal: newRehearsal(l)}
	o.adopting.Store(true)
	return o
}

func (o *outsidePlanning) run(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { follow(ctx, o.c.Record, o.wake, plannedOutsideFrom()...) })
	watching.Go(func() {
		for sleep(ctx, o.c.Clock, o.c.Timing.Replan, o.judging.changed) {
			poke(o.wake)
		}
	})
	for {
		again := o.look(ctx)
		select {
		case <-ctx.Done():
			return
		case reply := <-o.asksOutside:
			reply <- o.present()
		case <-o.wake:
		case <-o.c.Clock.After(again):
		}
	}
}

// look plans if there is reason to, and tells when to look again though nothing may have changed.
func (o *outsidePlanning) look(ctx context.Context) (again time.Duration) {
	record, now := o.c.Record.Read(), o.c.Clock.Now()
	switch {
	case record.Group().ID == "":
		return o.c.Timing.Replan // the opening of the group is not committed yet
	case now < o.pause:
		return o.pause - now
	}
	unsure := o.outsideUnsure()
	worlds, verdicts, ahead := o.view(now, record)
	again = o.c.Timing.Replan
	for i := range verdicts {
		sooner(&again, verdicts[i].Again)
	}
	if now < o.due && o.unsure == unsure && !o.changed(worlds, verdicts, record) {
		o.pause = o.c.Clock.Now() + (o.c.Clock.Now() - now) // to judge takes a while in a large cluster
		sooner(&again, o.due-now)
		return o.lookAgain(again)
	}
	seen := o.merge(worlds, verdicts)
	in := o.input(seen, record)
	o.unsure = unsure
	if o.ahead = ahead; ahead {
		return o.planAhead(ctx, seen, in)
	}
	out := o.index.Plan(in)
	o.seen, o.said, o.answers, o.record, o.due = worlds, verdicts, in.Judged, record, now+again
	if !o.c.DryRun {
		o.judging.ask(out.Questions)
	}
	o.report(&out)
	took := o.c.Clock.Now() - now
	proposals := append(o.holds(record, worlds, verdicts), o.mayPropose(record, out.Proposals)...)
	o.pause = o.c.Clock.Now() + max(o.c.Timing.Spacing, took, o.carryOut(ctx, seen, record, proposals))
	return o.lookAgain(min(again, o.pause-o.c.Clock.Now()))
}

// lookAgain bounds a wait by what nobody tells of: that it has become sure who looks after outside load balancers.
func (o *outsidePlanning) lookAgain(after time.Duration) time.Duration {
	if o.unsure {
		return min(after, oursAgain)
	}
	return after
}

// planAhead proposes what needs no verdict: additions, and what is taken off because of what is there to be seen. All else is
// planned with a verdict, at once.
func (o *outsidePlanning) planAhead(ctx context.Context, seen *merged, in balancers.Input) (again time.Duration) {
	in.MayRemove = func(world.Kind, world.ID) bool { return false }
	o.carryOut(ctx, seen, in.Record, o.mayPropose(in.Record, o.index.Plan(in).Proposals))
	o.due, o.pause = 0, 0
	return 0
}

// mayPropose gives what may be proposed of a plan.
func (o *outsidePlanning) mayPropose(record *fsm.View, proposals []fsm.Proposal) []fsm.Proposal {
	if o.unsure {
		return onlyKnown(record, proposals)
	}
	return proposals
}

// judgeLate is how much longer verdicts may count while there is something new to plan.
const judgeLate = 500 * time.Millisecond

// view is what the sources show, and what that is worth. To judge costs as much as there is in the cluster and the record,
// so verdicts of a moment ago count for what only a live watch has changed since. Older ones count once more, for a plan ahead
// of the next: what is added needs no verdict, and shall not wait for one.
func (o *outsidePlanning) view(now time.Duration, record *fsm.View) (worlds []world.World, verdicts []Verdict, ahead bool) {
	late := now >= o.judged.until+judgeLate
	if o.seen == nil || o.rewound(record) || late && (o.ahead || o.c.DryRun) { // a dry run hurries nowhere
		worlds, verdicts = o.judge(now, record)
		return worlds, verdicts, false
	}
	worlds = o.worlds()
	if !o.onlyWatched(worlds) || now >= o.judged.until && slices.EqualFunc(o.seen, worlds, outsideLike(record)) {
		worlds, verdicts = o.judge(now, record)
		return worlds, verdicts, false
	}
	return worlds, o.judged.verdicts, late
}

// onlyWatched tells whether a live watch alone brought what is new since the verdicts.
func (o *outsidePlanning) onlyWatched(worlds []world.World) bool {
	if o.judged.verdicts == nil {
		return false
	}
	for i := range worlds {
		if !watched(&o.judged.worlds[i], &worlds[i]) {
			return false
		}
	}
	return true
}

// merge is what all views show together, as far as they may be acted on.
func (o *outsidePlanning) merge(worlds []world.World, verdicts []Verdict) *merged {
	views := make([]Admitted, len(worlds))
	for i := range verdicts {
		views[i] = o.origins.admit(i, verdicts[i].Admit(&worlds[i]))
	}
	return o.merging.merge(views)
}

// input is what the plan is made from. Of what is absent the verdicts say whether it may go.
func (o *outsidePlanning) input(seen *merged, record *fsm.View) balancers.Input {
	return outsideInput(seen, seen, record, o.judging.judged(), o.c.Clock.Wall())
}

// changed tells whether anything has come since the newest plan that another one could come of. Most of what happens to
// bindings does not count: this loop asked for it, or only the operator goes on with it.
func (o *outsidePlanning) changed(worlds []world.World, verdicts []Verdict, record *fsm.View) bool {
	if o.seen == nil || !slices.EqualFunc(o.said, verdicts, likeVerdict) || decided(o.record, record, fsm.TableGroup, fsm.TableDrivers, fsm.TableBalancers, fsm.TableHolds) ||
		!slices.EqualFunc(o.seen, worlds, outsideLike(record)) || !sameJudgements(o.answers, o.judging.judged()) {
		return true
	}
	again := false
	fsm.Changes(o.record, record, fsm.TableBindings, func(before, after *fsm.Binding) {
		takenOver := after != nil && after.State == fsm.BindingBound && (before == nil || before.UID != after.UID)
		again = again || after == nil || takenOver // as it was, which may be wrong by now
	})
	return again
}

// likeVerdict tells whether two verdicts of one guard allow the same.
func likeVerdict(a, b Verdict) bool {
	return a.Act == b.Act && a.Complete == b.Complete && slices.Equal(a.Gone, b.Gone) && len(a.Hold) == len(b.Hold) && slices.Equal(a.Lift, b.Lift) && (a.Rewind == nil) == (b.Rewind == nil)
}

func sameJudgements(a, b map[string]balancers.Judgement) bool {
	if len(a) != len(b) {
		return false
	}
	for owner, x := range a {
		y, ok := b[owner]
		if !ok || x.Failed != y.Failed || !slices.Equal(x.Pods, y.Pods) || !slices.Equal(x.Keep, y.Keep) {
			return false
		}
	}
	return true
}

// carryOut proposes a plan, and with it up to where the sources were acted on. It tells how long to wait before the next
// try after a refusal or an error.
func (o *outsidePlanning) carryOut(ctx context.Context, seen *merged, record *fsm.View, proposals []fsm.Proposal) (wait time.Duration) {
	defer o.tellUnfit()
	o.adopting.Store(len(proposals) > 0 || !seen.listed(world.KindBackendRecord))
	if o.c.DryRun {
		o.rehearse(seen, record, proposals)
		o.due = o.c.Clock.Now() + o.c.Timing.Replan
		return 0
	}
	if len(proposals) == 0 {
		o.refused = 0
		return 0
	}
	var first []fsm.Proposal
	for _, v := range seen.views {
		if next, changed := observed(record, v.World); changed && v.World.Source != "" {
			first = append(first, fsm.Proposal{Actor: actor, Reason: "acted on", AtUnixMilli: o.c.Clock.Wall().UnixMilli(), Command: next})
		}
	}
	refused, err := o.propose(ctx, Bulk, append(first, proposals...))
	switch {
	case err != nil:
		if !gaveUp(ctx, err) {
			o.c.Log.Warn("plan of outside load balancers not committed", "err", err)
		}
	case refused == 0:
		o.refused = 0
		return 0
	}
	o.refused++
	o.due = 0
	return min(retryPlan<<min(o.refused, 6), o.c.Timing.Replan)
}

// report keeps what a plan found out.
func (o *outsidePlanning) report(out *balancers.Result) {
	waiting := make([]Explanation, len(out.Waiting))
	for i, e := range out.Waiting {
		waiting[i] = Explanation(e)
	}
	o.setOutside(OutsideStatus{Waiting: waiting, Counts: out.Counts})
}
