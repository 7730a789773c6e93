// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// planning is the loop from sources and record to proposals, for one term: what the guards saw in an earlier term
// and how long members were lost then is forgotten with it.
type planning struct {
	*Leader
	guards  []*Guard
	excuses *excuses
	origins origins
	wake    chan struct{}
	refused int // plans in a row of which something was refused

	news   atomic.Uint64 // counts tokens of the sources
	judged judged
	lane   lane
	// notBefore is when everything may be planned again, and running the plan that is under way.
	notBefore time.Duration
	running   *fullPlan
}

// judged is what the guards said last.
type judged struct {
	worlds   []world.World
	verdicts []Verdict
	news     uint64
	until    time.Duration
}

// judgeAgain is how long a verdict holds while the sources are silent and only the record changes. What a guard lets
// go stays let go, and what the record gained since is not among it.
const judgeAgain = 250 * time.Millisecond

func newPlanning(l *Leader) *planning {
	p := &planning{Leader: l, excuses: newExcuses(l.c.Timing.SwitchHolds), wake: make(chan struct{}, 1)}
	for range l.c.Sources {
		p.guards = append(p.guards, NewGuard(l.c.Limits))
	}
	return p
}

// plannedFrom are the tables that planning reads.
func plannedFrom() []fsm.Table {
	return []fsm.Table{
		fsm.TableGroup, fsm.TableMembers, fsm.TablePools, fsm.TableAllocations, fsm.TableServices, fsm.TableRoutes, fsm.TablePeers,
		fsm.TableAdvertisements, fsm.TableNodes, fsm.TableNodeConfigs, fsm.TableHolds, fsm.TableViews,
	}
}

func (p *planning) run(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { follow(ctx, p.c.Record, p.wake, plannedFrom()...) })
	for _, s := range p.c.Sources {
		watching.Go(func() { p.forward(ctx, s.Changed()) })
	}
	defer func() {
		if p.running != nil {
			<-p.running.out
		}
	}()
	for {
		again := p.look(ctx)
		var planned chan Result
		if p.running != nil {
			planned = p.running.out
		}
		select {
		case <-ctx.Done():
			return
		case out := <-planned:
			p.finish(ctx, out)
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
	again    time.Duration
	out      chan Result
	overtook map[string]bool // keys of Services and routes that the short way wrote to meanwhile
}

// forward passes a source's tokens on, until ctx ends.
func (p *planning) forward(ctx context.Context, from <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-from:
			p.news.Add(1)
			poke(p.wake)
		}
	}
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
	f := &fullPlan{began: now, record: record, again: p.c.Timing.Replan, out: make(chan Result, 1), overtook: map[string]bool{}}
	worlds, verdicts := p.judge(now, record)
	f.judged = p.judged
	servers := p.c.Group.Servers()
	excused, next := p.excuses.update(now, record, servers)
	sooner(&f.again, next)
	in := Input{Record: record, Options: p.c.Options, Excused: excused, Now: p.c.Clock.Wall()}
	for i := range verdicts {
		view := p.origins.admit(i, verdicts[i].Admit(&worlds[i]))
		view.WhyNot = whyNot(&verdicts[i])
		in.Views = append(in.Views, view)
		sooner(&f.again, verdicts[i].Again)
	}
	for _, s := range servers {
		in.Servers = append(in.Servers, s.ID)
	}
	p.lane.begin(&p.judged)
	p.running = f
	go func() { f.out <- Plan(in) }()
}

// finish proposes what a plan of everything came to.
func (p *planning) finish(ctx context.Context, out Result) {
	f := p.running
	p.running = nil
	ended := p.c.Clock.Now()
	p.metrics.planned(ended-f.began, out.Waiting)
	p.report(f.judged.worlds, f.judged.verdicts, &out)
	planned := out
	out.Urgent, out.Bulk = f.notOvertaken(out.Urgent), f.notOvertaken(out.Bulk)
	out.Bulk = append(p.holds(f.record, f.judged.worlds, f.judged.verdicts), out.Bulk...)
	again := f.again
	if wait := p.carryOut(ctx, f.record, &out); wait > 0 {
		sooner(&again, wait)
	}
	p.lane.finish(f.record, &planned, f.began, again)
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
func whyNot(v *Verdict) func(world.Kind, world.ID) string {
	waiting := make(map[origin]string, len(v.Waiting))
	for _, w := range v.Waiting {
		waiting[origin{w.Kind, w.ID}] = w.Why
	}
	return func(kind world.Kind, id world.ID) string { return waiting[origin{kind, id}] }
}

// sooner brings a wait down to d unless d is zero.
func sooner(wait *time.Duration, d time.Duration) {
	if d > 0 && d < *wait {
		*wait = d
	}
}

// judge asks each source's guard what its view is worth.
func (p *planning) judge(now time.Duration, record *fsm.View) ([]world.World, []Verdict) {
	news := p.news.Load()
	if p.judged.verdicts != nil && news == p.judged.news && now < p.judged.until {
		return p.judged.worlds, p.judged.verdicts
	}
	until := judgeAgain
	worlds := p.worlds()
	p.origins.see(worlds)
	verdicts := make([]Verdict, len(worlds))
	for i, s := range p.c.Sources {
		known := p.origins.known(i, KnownOf(record, s.Name))
		verdicts[i] = p.guards[i].Judge(now, &worlds[i], &known)
		if r, ok := s.Source.(Relister); ok && len(verdicts[i].Relist) > 0 {
			r.Relist(verdicts[i].Relist...)
		}
		sooner(&until, verdicts[i].Again)
	}
	p.judged = judged{worlds: worlds, verdicts: verdicts, news: news, until: now + until}
	return worlds, verdicts
}

// worlds are what the sources show now.
func (p *planning) worlds() []world.World {
	worlds := make([]world.World, len(p.c.Sources))
	for i, s := range p.c.Sources {
		worlds[i] = s.World()
		worlds[i].Source = s.Name
	}
	return worlds
}

// holds are the mass changes to put before an operator, and those that are over for every source, as far as the
// record does not say so already.
func (p *planning) holds(record *fsm.View, worlds []world.World, verdicts []Verdict) []fsm.Proposal {
	var out []fsm.Proposal
	propose := func(reason string, c fsm.Command) {
		out = append(out, fsm.Proposal{Actor: actor, Reason: reason, AtUnixMilli: p.c.Clock.Wall().UnixMilli(), Command: c})
	}
	held, lifted := map[string]bool{}, map[string]int{}
	for _, h := range fsm.List[*fsm.Hold](record, fsm.TableHolds) {
		held[string(h.ID)] = true
	}
	known := maps.Clone(held)
	for i := range verdicts {
		for _, h := range verdicts[i].Hold {
			if !held[h.ID] {
				held[h.ID] = true
				propose("too many absences at once", &fsm.PutHold{ID: fsm.HoldID(h.ID), Of: string(h.Kind), Subjects: h.Subjects, Why: h.Why})
			}
		}
		for _, id := range verdicts[i].Lift {
			lifted[id]++
		}
		seen, _ := fsm.Get[*fsm.SourceView](record, fsm.TableViews, worlds[i].Source)
		if r := verdicts[i].Rewind; r != nil && r.Accept && seen != nil && !seen.Rewind {
			propose("rewinds are accepted by configuration", &fsm.AcceptRewind{Source: worlds[i].Source})
		}
	}
	for _, id := range sortedKeys(lifted) {
		if known[id] && lifted[id] == len(verdicts) {
			propose("no longer asked for", &fsm.DeleteHold{ID: fsm.HoldID(id)})
		}
	}
	return out
}

// carryOut proposes a plan, the urgent part first. It tells how long to wait before the next try after a refusal or
// an error: the record may have changed meanwhile, and then the next plan is another one anyway.
func (p *planning) carryOut(ctx context.Context, planned *fsm.View, out *Result) (wait time.Duration) {
	refused, err := p.propose(ctx, Urgent, out.Urgent)
	for rest := out.Bulk; err == nil && len(rest) > 0; {
		n := min(maxTogether, len(rest))
		var more int
		more, err = p.propose(ctx, Bulk, rest[:n])
		refused += more
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
