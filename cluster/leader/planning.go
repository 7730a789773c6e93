// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"slices"
	"sync"
	"time"

	"fairlead.io/fairlead/cluster/leases"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// planning is the loop from sources and record to proposals, for one term: what the guards saw in an earlier term
// is forgotten with it.
type planning struct {
	*sentry
	began   time.Duration // of the term
	excuses *excuses
	excused excused // when everything was planned last
	refused int     // plans in a row of which something was refused
	lane    lane
	// adopting tells that the newest plan of outside load balancers had something to propose; nil if nobody plans those.
	adopting func() bool
	// notBefore is when everything may be planned again, and running the plan that is under way.
	notBefore time.Duration
	running   *fullPlan
	idle      idle
}

func newPlanning(l *Leader) *planning {
	l.metrics.programming.begin()
	return &planning{began: l.c.Clock.Now(), sentry: newSentry(l, PartServices), excuses: newExcuses(l.c.Timing.SwitchHolds)}
}

// plannedFrom are the tables that planning reads.
func plannedFrom() []fsm.Table {
	return []fsm.Table{
		fsm.TableGroup, fsm.TableMembers, fsm.TablePools, fsm.TableAllocations, fsm.TableServices, fsm.TableRoutes, fsm.TablePeers,
		fsm.TableAdvertisements, fsm.TableNodes, fsm.TableNodeConfigs, fsm.TableHolds, fsm.TableViews,
		fsm.TableDrains, fsm.TableMoves,
	}
}

func (p *planning) run(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { follow(ctx, p.c.Record, p.wake, plannedFrom()...) })
	defer func() {
		if p.running != nil {
			<-p.running.ended
		}
	}()
	for {
		again := p.look(ctx)
		var planned chan struct{}
		if p.running != nil {
			planned = p.running.ended
		}
		select {
		case <-ctx.Done():
			return
		case <-planned:
			p.finish(ctx)
		case reply := <-p.asks:
			reply <- p.present()
		case <-p.wake:
		case <-p.c.Clock.After(again):
		}
	}
}

// fullPlan is a plan of everything, under way beside the short way.
type fullPlan struct {
	began    time.Duration
	record   *fsm.View
	judged   judged
	in       Input
	again    time.Duration
	ended    chan struct{} // closed once out is there
	out      Result
	overtook map[string]bool // keys of Services and routes that the short way wrote to meanwhile
}

// look does what there is to do now: the short way at once, and a plan of everything is begun if one is due. It tells
// when to look again though nothing may have changed.
func (p *planning) look(ctx context.Context) (again time.Duration) {
	record := p.c.Record.Read()
	if record.Group().ID == "" {
		return p.c.Timing.Replan // the opening of the group is not committed yet
	}
	now := p.c.Clock.Now()
	again, enough := p.short(ctx, now, record)
	switch {
	case p.running != nil:
		return p.c.Timing.Replan // its end is waited for
	case enough:
		return again
	case now < p.notBefore: // what happens in quick succession is planned together, the longer a plan takes the more of it
		return p.notBefore - now
	}
	p.begin(now, p.c.Record.Read())
	return p.c.Timing.Replan
}

// begin judges the views and has everything planned, beside this goroutine: that takes long in a large cluster.
func (p *planning) begin(now time.Duration, record *fsm.View) {
	f := &fullPlan{began: now, record: record, again: p.c.Timing.Replan, ended: make(chan struct{}), overtook: map[string]bool{}}
	_, verdicts := p.judge(now, record)
	f.judged = p.judged
	servers := p.c.Group.Servers()
	p.excused = p.excuses.update(now, record, servers)
	sooner(&f.again, p.excused.next)
	in := p.input(record, p.excused, servers, &p.origins)
	sooner(&f.again, leases.Lapse(record, now-p.began))
	for i := range verdicts {
		sooner(&f.again, verdicts[i].Again)
	}
	p.lane.begin(&p.judged)
	p.running, f.in = f, in
	if f.judged.calm() && p.idle.repeats(&in, now) {
		f.out = p.idle.out
		close(f.ended)
		return
	}
	p.idle = idle{}
	go func() {
		f.out = Plan(in)
		close(f.ended)
	}()
}

// input is what everything is planned from: the record, and the views as they were judged last.
func (p *planning) input(record *fsm.View, excused excused, servers []Server, from *origins) Input {
	in := Input{Record: record, Options: p.c.Options, Excused: excused.members, ExcusedNodes: excused.nodes, Now: p.c.Clock.Wall()}
	if p.c.ServiceCIDRs != nil {
		in.ServiceCIDRs = p.c.ServiceCIDRs()
	}
	in.Adopting = p.adopting != nil && p.adopting()
	in.Leased = leases.Lapse(record, p.c.Clock.Now()-p.began) > 0
	worlds, verdicts := p.judged.worlds, p.judged.verdicts
	for i := range verdicts {
		view := from.admit(i, verdicts[i].Admit(&worlds[i]))
		view.WhyNot = whyNot(&verdicts[i])
		in.Views = append(in.Views, view)
	}
	for _, s := range servers {
		in.Servers = append(in.Servers, s.ID)
	}
	return in
}

// finish proposes what the plan of everything came to that has ended. A large cluster's first one is as large as the record: nobody holds
// what is committed of it.
func (p *planning) finish(ctx context.Context) {
	f := p.running
	out := f.out
	p.running, f.out = nil, Result{}
	ended := p.c.Clock.Now()
	p.metrics.planned(ended-f.began, out.Waiting)
	p.report(f.judged.worlds, f.judged.verdicts, &out)
	if p.idle.upto == 0 {
		p.idle.keep(f.in, f.judged.calm(), &out, f.began)
	}
	p.lane.take(&out)
	out.Urgent, out.Bulk = f.notOvertaken(out.Urgent), f.notOvertaken(out.Bulk)
	out.Bulk = slices.Concat(p.holds(f.record, f.judged.worlds, f.judged.verdicts), p.excuses.due(p.c.Clock.Wall()), out.Bulk)
	p.metrics.programming.expect(p.causesOf(f.judged.worlds, f.record, slices.Concat(out.Urgent, out.Bulk)))
	again := f.again
	if wait := p.carryOut(ctx, f.record, &out); wait > 0 {
		sooner(&again, wait)
	}
	p.lane.finish(f.record, f.began, again)
	p.notBefore = p.c.Clock.Now() + max(p.c.Timing.Spacing, ended-f.began)
}

// notOvertaken leaves out what the short way decided by newer views.
func (f *fullPlan) notOvertaken(proposals []fsm.Proposal) []fsm.Proposal {
	if len(f.overtook) == 0 {
		return proposals
	}
	return slices.DeleteFunc(proposals, func(p fsm.Proposal) bool { return f.overtook[endpointKey(p.Command)] })
}

// endpointKey names what a command of the short way writes to; empty for others.
func endpointKey(c fsm.Command) string {
	switch c := c.(type) {
	case *fsm.PutService:
		return "service " + string(c.Service.ID)
	case *fsm.SetRoute:
		return "route " + c.Prefix.String()
	}
	return ""
}

// whyNot finds what a guard said of an object.
func whyNot(v *Verdict) func(world.Kind, world.ID) Reason {
	waiting := make(map[origin]Reason, len(v.Waiting))
	for _, w := range v.Waiting {
		waiting[origin{w.Kind, w.ID}] = Reason{w.Code, w.Why}
	}
	return func(kind world.Kind, id world.ID) Reason { return waiting[origin{kind, id}] }
}

// sooner brings a wait down to d unless d is zero.
func sooner(wait *time.Duration, d time.Duration) {
	if d > 0 && d < *wait {
		*wait = d
	}
}

// carryOut proposes a plan, the urgent part first, and clears what is committed of the rest. It tells how long to wait
// before the next try after a refusal or an error: the record may have changed meanwhile, and then the next plan is another
// one anyway.
func (p *planning) carryOut(ctx context.Context, planned *fsm.View, out *Result) (wait time.Duration) {
	defer p.tellUnfit()
	refused, err := p.propose(ctx, Urgent, out.Urgent)
	for rest := out.Bulk; err == nil && len(rest) > 0; {
		n := min(maxTogether, len(rest))
		var more int
		more, err = p.propose(ctx, Bulk, rest[:n])
		refused += more
		if err == nil {
			clear(rest[:n])
		}
		if rest = rest[n:]; len(rest) > 0 && livenessChanged(planned, p.c.Record.Read()) {
			poke(p.wake) // a node went meanwhile: that is planned before the rest
			break
		}
	}
	switch {
	case err != nil:
		if !gaveUp(ctx, err) {
			p.c.Log.Warn("plan not committed", "err", err)
		}
	case refused == 0:
		p.refused = 0
		return 0
	}
	p.refused++
	wait = min(retryPlan<<min(p.refused, 6), p.c.Timing.Replan)
	sleep(ctx, p.c.Clock, wait, nil)
	return wait
}

// retryPlan is the first wait after a plan that did not get through; it doubles.
const retryPlan = 10 * time.Millisecond

// livenessChanged tells whether the group's verdict on a node changed between two views.
func livenessChanged(before, after *fsm.View) bool {
	was := map[fsm.NodeID]fsm.Liveness{}
	for _, n := range fsm.List[*fsm.Node](before, fsm.TableNodes) {
		was[n.ID] = n.Liveness
	}
	return slices.ContainsFunc(fsm.List[*fsm.Node](after, fsm.TableNodes), func(n *fsm.Node) bool { return was[n.ID] != n.Liveness })
}
