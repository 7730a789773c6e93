// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"slices"
	"sync"
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
	wake    chan struct{}
	refused int // plans in a row of which something was refused
}

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
		watching.Go(func() { forward(ctx, s.Changed(), p.wake) })
	}
	for {
		began := p.c.Clock.Now()
		again := p.step(ctx)
		took := p.c.Clock.Now() - began
		if ctx.Err() != nil {
			return
		}
		// What happens in quick succession is planned together, the longer a plan takes the more of it.
		pause := max(p.c.Timing.Spacing, took)
		if !sleep(ctx, p.c.Clock, pause, nil) || !sleep(ctx, p.c.Clock, again-pause, p.wake) {
			return
		}
	}
}

func forward(ctx context.Context, from <-chan struct{}, to chan<- struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-from:
			poke(to)
		}
	}
}

// step plans once and proposes what came out. It tells when to plan again though nothing may have changed.
func (p *planning) step(ctx context.Context) (again time.Duration) {
	again = p.c.Timing.Replan
	record := p.c.Record.Read()
	if record.Group().ID == "" {
		return again // the opening of the group is not committed yet
	}
	now := p.c.Clock.Now()
	worlds, verdicts := p.judge(now, record)
	servers := p.c.Group.Servers()
	excused, next := p.excuses.update(now, record, servers)
	sooner(&again, next)
	in := Input{Record: record, Options: p.c.Options, Excused: excused, Now: p.c.Clock.Wall()}
	for i := range verdicts {
		in.Views = append(in.Views, verdicts[i].Admit(&worlds[i]))
		sooner(&again, verdicts[i].Again)
	}
	for _, s := range servers {
		in.Servers = append(in.Servers, s.ID)
	}
	out := Plan(in)
	p.metrics.planned(p.c.Clock.Now()-now, out.Waiting)
	p.report(worlds, verdicts, &out)
	out.Bulk = append(p.holds(worlds, verdicts), out.Bulk...)
	if wait := p.carryOut(ctx, record, &out); wait > 0 {
		sooner(&again, wait)
	}
	return again
}

// sooner brings a wait down to d unless d is zero.
func sooner(wait *time.Duration, d time.Duration) {
	if d > 0 && d < *wait {
		*wait = d
	}
}

// judge asks each source's guard what its view is worth.
func (p *planning) judge(now time.Duration, record *fsm.View) ([]world.World, []Verdict) {
	worlds := make([]world.World, len(p.c.Sources))
	for i, s := range p.c.Sources {
		worlds[i] = s.World()
	}
	verdicts := make([]Verdict, len(worlds))
	for i, s := range p.c.Sources {
		known := KnownOf(record, s.Name)
		for j := range worlds {
			if j != i {
				known = known.Without(&worlds[j])
			}
		}
		verdicts[i] = p.guards[i].Judge(now, &worlds[i], &known)
		if r, ok := s.Source.(Relister); ok && len(verdicts[i].Relist) > 0 {
			r.Relist(verdicts[i].Relist...)
		}
	}
	return worlds, verdicts
}

// holds are the mass changes to put before an operator, and those that are over.
func (p *planning) holds(worlds []world.World, verdicts []Verdict) []fsm.Proposal {
	var out []fsm.Proposal
	propose := func(reason string, c fsm.Command) {
		out = append(out, fsm.Proposal{Actor: actor, Reason: reason, AtUnixMilli: p.c.Clock.Wall().UnixMilli(), Command: c})
	}
	for i := range verdicts {
		for _, h := range verdicts[i].Hold {
			propose("too many absences at once", &fsm.PutHold{ID: fsm.HoldID(h.ID), Of: string(h.Kind), Subjects: h.Subjects, Why: h.Why})
		}
		for _, id := range verdicts[i].Lift {
			propose("no longer asked for", &fsm.DeleteHold{ID: fsm.HoldID(id)})
		}
		if r := verdicts[i].Rewind; r != nil && r.Accept {
			propose("rewinds are accepted by configuration", &fsm.AcceptRewind{Source: worlds[i].Source})
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
