// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"fairlead.io/fairlead/cluster/leader/policies"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// policyPlanning is the loop from sources and record to proposals about policies of client-side balancing, for one term. Pods come
// and go much more often than anything that Services are planned from, and policies are few.
type policyPlanning struct {
	*sentry
	seen    []world.World // that the newest plan was made from; nil for none that was carried out
	said    []Verdict
	record  *fsm.View
	due     time.Duration // when to plan though nothing has changed
	pause   time.Duration // not before this
	refused int           // plans in a row of which something was refused
	awaits  bool          // the newest plan waits for nodes to acknowledge something
}

// policiesPlannedFrom are the tables that policies are planned from.
func policiesPlannedFrom() []fsm.Table {
	return []fsm.Table{fsm.TableGroup, fsm.TablePolicies, fsm.TableHolds, fsm.TableTunnels}
}

// nodesMatter tells whether anything of nodes, and of hosts outside the cluster, in the record changed that tunnels and proxy addresses depend on. What they acknowledge is
// of interest only while something waits for it.
func (r *policyPlanning) nodesMatter(record *fsm.View) (matter bool) {
	fsm.Changes(r.record, record, fsm.TableNodes, func(was, is *fsm.Node) {
		switch {
		case was == nil, is == nil, was.Tunnels != is.Tunnels, was.Liveness != is.Liveness, was.Boot != is.Boot,
			!slices.Equal(was.Addresses, is.Addresses), !slices.Equal(was.Failed, is.Failed), r.awaits && was.Acknowledged != is.Acknowledged:
			matter = true
		}
	})
	fsm.Changes(r.record, record, fsm.TableHosts, func(was, is *fsm.Host) {
		switch {
		case was == nil, is == nil, was.Tunnels != is.Tunnels, was.Boot != is.Boot, !slices.Equal(was.Addresses, is.Addresses),
			r.awaits && was.Acknowledged != is.Acknowledged:
			matter = true
		}
	})
	return matter
}

func newPolicyPlanning(l *Leader) *policyPlanning {
	return &policyPlanning{sentry: newSentry(l, PartPolicies)}
}

func (r *policyPlanning) run(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	from := policiesPlannedFrom()
	if r.c.Options.Tunnels.On() {
		from = append(from, fsm.TableNodes, fsm.TableHosts)
	}
	watching.Go(func() { follow(ctx, r.c.Record, r.wake, from...) })
	for again := r.look(ctx); sleep(ctx, r.c.Clock, again, r.wake); again = r.look(ctx) {
	}
}

// look plans if there is reason to, and tells when to look again though nothing may have changed.
func (r *policyPlanning) look(ctx context.Context) (again time.Duration) {
	record, now := r.c.Record.Read(), r.c.Clock.Now()
	again = r.c.Timing.Replan
	switch {
	case record.Group().ID == "":
		return again // the opening of the group is not committed yet
	case now < r.pause:
		return r.pause - now
	}
	var worlds []world.World
	if r.c.Options.BalancingPolicies {
		worlds = r.worlds()
	}
	if r.idle(worlds, record) {
		r.setPolicies(nil)
		return again
	}
	var verdicts []Verdict
	if r.c.Options.BalancingPolicies {
		worlds, verdicts = r.judge(now, record)
	}
	for i := range verdicts {
		sooner(&again, verdicts[i].Again)
	}
	if now < r.due && !r.changed(worlds, verdicts, record) {
		r.pause = r.c.Clock.Now() + max(r.c.Timing.Spacing, r.c.Clock.Now()-now) // to judge takes a while in a large cluster
		sooner(&again, r.due-now)
		return again
	}
	seen := r.merge(worlds, verdicts)
	out := policies.Plan(r.input(seen, record))
	r.seen, r.said, r.record, r.due = worlds, verdicts, record, now+again
	r.awaits = out.AwaitsNodes
	r.report(&out)
	wait := r.carryOut(ctx, seen, record, append(r.holds(record, worlds, verdicts), out.Proposals...))
	r.pause = r.c.Clock.Now() + max(r.c.Timing.Spacing, r.c.Clock.Now()-now, wait)
	return min(again, r.pause-r.c.Clock.Now())
}

// idle tells whether there is no policy, and none was there before.
func (r *policyPlanning) idle(worlds []world.World, record *fsm.View) bool {
	shown := slices.ContainsFunc(worlds, func(w world.World) bool { return len(w.BalancingPolicies)+len(w.LocalRedirectPolicies) > 0 })
	held := slices.ContainsFunc(fsm.List[*fsm.Hold](record, fsm.TableHolds), func(h *fsm.Hold) bool { return r.part.holds(h.ID) })
	tunnels := r.c.Options.Tunnels.On() || record.Group().Tunnels.On() || record.Count(fsm.TableTunnels) > 0
	unnumbered := record.Group().Format >= formatNumbers && slices.ContainsFunc(fsm.List[*fsm.Node](record, fsm.TableNodes), func(n *fsm.Node) bool { return n.Number == 0 })
	return !shown && !held && !tunnels && record.Count(fsm.TablePolicies) == 0 && !(unnumbered && len(worlds) > 0)
}

// formatNumbers is the first format in which nodes have ids.
const formatNumbers = 2

// changed tells whether anything has come since the newest plan that another one could come of.
func (r *policyPlanning) changed(worlds []world.World, verdicts []Verdict, record *fsm.View) bool {
	return r.seen == nil || !slices.EqualFunc(r.said, verdicts, likeVerdict) || decided(r.record, record, policiesPlannedFrom()...) || r.nodesMatter(record) ||
		!slices.EqualFunc(r.seen, worlds, policiesAlike)
}

// policiesAlike compares views of a source by all that policies are planned from.
func policiesAlike(a, b world.World) bool {
	return !differ(a.BalancingPolicies, b.BalancingPolicies, func(o *world.BalancingPolicy) world.ID { return o.ID }, func(a, b *world.BalancingPolicy) bool { return likePolicy(a.Meta, b.Meta, &a.Redirect, &b.Redirect) }) &&
		!differ(a.LocalRedirectPolicies, b.LocalRedirectPolicies, func(o *world.LocalRedirectPolicy) world.ID { return o.ID }, func(a, b *world.LocalRedirectPolicy) bool {
			return likePolicy(a.Meta, b.Meta, &a.Redirect, &b.Redirect)
		}) &&
		same(a.Services, b.Services) &&
		!differ(a.Nodes, b.Nodes, func(n *world.Node) world.ID { return n.ID }, likeNode) &&
		!differ(a.Pods, b.Pods, func(p *world.Pod) world.ID { return p.ID }, likePod)
}

// likePolicy compares all but the version, which changes with every status that is shown.
func likePolicy(a, b world.Meta, ra, rb *world.Redirect) bool {
	if a.Version == b.Version && a.UID == b.UID {
		return true
	}
	a.Version = b.Version
	return a == b && reflect.DeepEqual(ra, rb)
}

// merge is what all views show together, as far as they may be acted on.
func (r *policyPlanning) merge(worlds []world.World, verdicts []Verdict) *merged {
	views := make([]Admitted, len(worlds))
	for i := range verdicts {
		views[i] = r.origins.admit(i, verdicts[i].Admit(&worlds[i]))
	}
	return mergePolicies(views)
}

// mergePolicies merges what policies are planned from.
func mergePolicies(views []Admitted) *merged {
	m := &merged{}
	for _, a := range views {
		if a.World == nil {
			a = Admitted{World: &world.World{}}
		}
		m.views = append(m.views, a)
	}
	m.balancing = collect(m.views, func(w *world.World) []*world.BalancingPolicy { return w.BalancingPolicies }, func(o *world.BalancingPolicy) world.ID { return o.ID })
	m.localRedirects = collect(m.views, func(w *world.World) []*world.LocalRedirectPolicy { return w.LocalRedirectPolicies },
		func(o *world.LocalRedirectPolicy) world.ID { return o.ID })
	m.services = collect(m.views, func(w *world.World) []*world.Service { return w.Services }, func(o *world.Service) world.ID { return o.ID })
	m.nodes = collect(m.views, func(w *world.World) []*world.Node { return w.Nodes }, func(o *world.Node) world.ID { return o.ID })
	m.pods = collect(m.views, func(w *world.World) []*world.Pod { return w.Pods }, func(o *world.Pod) world.ID { return o.ID })
	return m
}

func (r *policyPlanning) input(seen *merged, record *fsm.View) policies.Input {
	return policies.Input{
		Balancing: seen.balancing, Local: seen.localRedirects, Services: seen.services, Nodes: seen.nodes, Pods: seen.pods,
		Record: record, MayRemove: seen.mayRemove, Off: !r.c.Options.BalancingPolicies, Tunnels: r.c.Options.Tunnels, Now: r.c.Clock.Wall(),
	}
}

// carryOut proposes a plan, and with it up to where the sources were acted on. It tells how long to wait before the next try after a
// refusal or an error.
func (r *policyPlanning) carryOut(ctx context.Context, seen *merged, record *fsm.View, proposals []fsm.Proposal) (wait time.Duration) {
	defer r.tellUnfit()
	if len(proposals) == 0 {
		r.refused = 0
		return 0
	}
	var first []fsm.Proposal
	for _, v := range seen.views {
		if next, changed := observed(record, v.World); changed && v.World.Source != "" {
			first = append(first, fsm.Proposal{Actor: actor, Reason: "acted on", AtUnixMilli: r.c.Clock.Wall().UnixMilli(), Command: next})
		}
	}
	refused, err := r.propose(ctx, Bulk, append(first, proposals...))
	switch {
	case err != nil:
		if !gaveUp(ctx, err) {
			r.c.Log.Warn("plan of client-side balancing not committed", "err", err)
		}
	case refused == 0:
		r.refused = 0
		return 0
	}
	r.refused++
	r.seen = nil
	return min(retryPlan<<min(r.refused, 6), r.c.Timing.Replan)
}

// report keeps what a plan found out.
func (r *policyPlanning) report(out *policies.Result) {
	waiting := make([]Explanation, len(out.Waiting))
	for i, e := range out.Waiting {
		waiting[i] = Explanation{Kind: string(e.Kind), Name: e.Name, Code: e.Code, Text: e.Text}
	}
	r.setPolicies(waiting)
}
