// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// lane is the short way from the sources to the record, for what happens most and has to be quick: endpoints that come
// and go while everything else is as it was when everything was planned last. A full plan looks again soon after; the
// lane may be slow or wrong to pass something by, never to act.
type lane struct {
	worlds []world.World // up to which the sources were looked through
	news   uint64
	record *fsm.View // up to which it was looked through

	proposed bool          // by the last full plan: more may follow from it
	due      time.Duration // when to plan in full next
	bridging bool          // old next hops stay until new ones may be announced, and not a moment longer than they must
	waiting  bool          // a full plan is put off, since a time, and at most until another
	since    time.Duration
	most     time.Duration
}

// Times of the lane.
const (
	settle    = 200 * time.Millisecond // after which a full plan follows what the lane did, or marks of nodes and members
	overtaken = 5 * time.Second        // how long the lane may put off the full plan
)

// begin takes in that everything is being planned, as of what was judged: what comes from now on is for the lane.
func (l *lane) begin(j *judged) { l.worlds, l.news = j.worlds, j.news }

// take takes in what everything was planned to.
func (l *lane) take(out *Result) {
	l.bridging = bridges(out)
	// The end of withdrawals is the end of a story; whatever else is proposed may have more to follow.
	l.proposed = slices.ContainsFunc(slices.Concat(out.Urgent, out.Bulk), func(p fsm.Proposal) bool {
		switch p.Command.(type) {
		case *fsm.FinishWithdrawal, *fsm.ObserveView:
			return false
		}
		return true
	})
}

// finish takes in that this was done, from what record, and when to plan everything again.
func (l *lane) finish(record *fsm.View, began, again time.Duration) {
	l.record, l.due, l.waiting = record, began+again, false
}

// bridges tells whether a plan keeps old next hops until new ones may be announced.
func bridges(out *Result) bool {
	return slices.ContainsFunc(out.Waiting, func(e Explanation) bool { return e.Code == WaitsForRules })
}

// putOff puts the full plan a little off, but never for long.
func (l *lane) putOff(now time.Duration) {
	if !l.waiting {
		l.waiting, l.since, l.most = true, now, l.due
	}
	l.due = min(now+settle, l.since+overtaken, l.most)
	if l.bridging {
		l.due = min(l.due, l.since+settle)
	}
}

// short does what can be done without a full plan. It tells whether that is all for now, and when to look again.
func (p *planning) short(ctx context.Context, now time.Duration, record *fsm.View) (again time.Duration, done bool) {
	l := &p.lane
	if l.record == nil {
		return 0, false // nothing was ever planned in full
	}
	if !p.shortcut(ctx, now, record) || now >= l.due || l.asksForPlan(record) {
		return 0, false
	}
	changed := decided(l.record, record, plannedFrom()...)
	if l.record = record; changed { // an older one would hold what the record has no more
		l.putOff(now)
	}
	return max(l.due-p.c.Clock.Now(), 0), true
}

// shortcut plans and proposes what a watch showed of endpoints. It is false if there is more to what changed.
func (p *planning) shortcut(ctx context.Context, now time.Duration, record *fsm.View) bool {
	l, news := &p.lane, p.news.Load()
	if news == l.news {
		return true
	}
	worlds := p.worlds()
	services, plain := changedServices(l.worlds, worlds)
	if !plain {
		return false
	}
	out, other := PlanEndpoints(p.narrowInput(worlds, record), services)
	if other {
		return false
	}
	l.worlds, l.news = worlds, news
	l.bridging = l.bridging || bridges(&out)
	if len(out.Bulk) == 0 {
		return true
	}
	p.metrics.short(p.c.Clock.Now() - now)
	if p.running != nil {
		for _, o := range out.Bulk {
			p.running.overtook[endpointKey(o.Command)] = true
		}
		delete(p.running.overtook, "")
	}
	p.metrics.programming.expect(p.causesOf(worlds, record, out.Bulk))
	refused, err := p.propose(ctx, Urgent, out.Bulk)
	l.putOff(p.c.Clock.Now())
	return refused == 0 && err == nil
}

// narrowInput is what the lane plans from: the newest views, under the verdict on those that were judged. Of these the
// lane uses only what a live watch changed since.
func (p *planning) narrowInput(worlds []world.World, record *fsm.View) Input {
	in := Input{Record: record, Options: p.c.Options, Now: p.c.Clock.Wall()}
	for i := range worlds {
		in.Views = append(in.Views, p.origins.admit(i, p.judged.verdicts[i].Admit(&worlds[i])))
	}
	return in
}

// asksForPlan tells whether the record changed in a way that a full plan has to answer at once.
func (l *lane) asksForPlan(record *fsm.View) bool {
	if l.proposed && decided(l.record, record, plannedFrom()...) {
		return true
	}
	if decided(l.record, record, fsm.TableGroup, fsm.TablePools, fsm.TablePeers, fsm.TableAdvertisements, fsm.TableNodeConfigs, fsm.TableHolds, fsm.TableDrains, fsm.TableMoves) {
		return true
	}
	asks := false
	fsm.Changes(l.record, record, fsm.TableViews, func(before, after *fsm.SourceView) {
		asks = asks || before == nil || after == nil || before.Rewind != after.Rewind
	})
	fsm.Changes(l.record, record, fsm.TableNodes, func(before, after *fsm.Node) {
		asks = asks || before == nil || after == nil || before.Liveness != after.Liveness || before.Boot != after.Boot ||
			before.Eligible != after.Eligible || !slices.Equal(before.Addresses, after.Addresses) || !slices.Equal(before.Failed, after.Failed) ||
			!before.Speaking.Equal(after.Speaking)
	})
	return asks
}

// changedServices finds the Services of which a live watch changed the object or the slices. It is not plain if
// anything else may have changed that a plan depends on, save nodes, which every plan looks at.
func changedServices(before, after []world.World) (services []world.ID, plain bool) {
	changed := map[world.ID]bool{}
	note := func(id world.ID) { changed[id] = true }
	for i := range after {
		a, b := &before[i], &after[i]
		if sameLists(a, b) {
			continue
		}
		if !watched(a, b) ||
			!pairwise(a.Services, b.Services, func(s *world.Service) *world.Meta { return &s.Meta }, func(s *world.Service) { note(s.ID) }) ||
			!pairwise(a.EndpointSlices, b.EndpointSlices, func(s *world.EndpointSlice) *world.Meta { return &s.Meta }, func(s *world.EndpointSlice) { note(s.Service()) }) ||
			!pairwise(a.Nodes, b.Nodes, func(n *world.Node) *world.Meta { return &n.Meta }, func(*world.Node) {}) ||
			!sameRest(a, b) {
			return nil, false
		}
	}
	for id := range changed {
		services = append(services, id)
	}
	slices.SortStableFunc(services, world.ID.Compare)
	return services, true
}

// watched tells whether b followed a by watching alone: no list came in between, and nothing ran back.
func watched(a, b *world.World) bool {
	if a.Cluster != b.Cluster || !a.Complete || !b.Complete || len(a.Kinds) != len(b.Kinds) {
		return false
	}
	for i := range a.Kinds {
		x, y := &a.Kinds[i], &b.Kinds[i]
		if x.Kind != y.Kind || !y.Listed || !y.Complete || x.Lists != y.Lists || y.Version < x.Version {
			return false
		}
	}
	return true
}

// pairwise tells whether two lists have the same objects, and visits those of the second one that were written to.
func pairwise[T any](a, b []*T, meta func(*T) *world.Meta, changed func(*T)) bool {
	if same(a, b) {
		return true
	}
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] == b[i] {
			continue
		}
		x, y := meta(a[i]), meta(b[i])
		switch {
		case x.Version == 0 || y.Version < x.Version || x.UID != y.UID || x.ID != y.ID || x.Deleting != y.Deleting:
			return false
		case x.Version != y.Version:
			changed(b[i])
		}
	}
	return true
}

// same tells whether two lists are one.
func same[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// sameRest tells whether nothing but Services, slices and nodes was written to. Pods and all else that outside load
// balancers are made of is not in these views (Part), and never a reason for a full plan of Services.
func sameRest(a, b *world.World) bool {
	untouched := true
	touch := func() { untouched = false }
	return pairwise(a.Pools, b.Pools, func(p *world.Pool) *world.Meta { return &p.Meta }, func(*world.Pool) { touch() }) &&
		pairwise(a.Peers, b.Peers, func(p *world.Peer) *world.Meta { return &p.Meta }, func(*world.Peer) { touch() }) &&
		pairwise(a.Advertisements, b.Advertisements, func(x *world.Advertisement) *world.Meta { return &x.Meta }, func(*world.Advertisement) { touch() }) &&
		pairwise(a.Communities, b.Communities, func(c *world.Community) *world.Meta { return &c.Meta }, func(*world.Community) { touch() }) &&
		pairwise(a.L2Advertisements, b.L2Advertisements, func(x *world.L2Advertisement) *world.Meta { return &x.Meta }, func(*world.L2Advertisement) { touch() }) &&
		pairwise(a.AddressPolicies, b.AddressPolicies, func(x *world.AddressPolicy) *world.Meta { return &x.Meta }, func(*world.AddressPolicy) { touch() }) &&
		pairwise(a.Namespaces, b.Namespaces, func(x *world.Namespace) *world.Meta { return &x.Meta }, func(*world.Namespace) { touch() }) &&
		pairwise(a.ConfigMaps, b.ConfigMaps, func(c *world.ConfigMap) *world.Meta { return &c.Meta }, func(*world.ConfigMap) { touch() }) &&
		untouched
}

// sameLists tells whether two views of a source are one view, of whatever age.
func sameLists(a, b *world.World) bool {
	return a.Cluster == b.Cluster && a.Complete == b.Complete && same(a.Services, b.Services) && same(a.EndpointSlices, b.EndpointSlices) &&
		same(a.Nodes, b.Nodes) && same(a.Pools, b.Pools) && same(a.Peers, b.Peers) && same(a.Advertisements, b.Advertisements) &&
		same(a.AddressPolicies, b.AddressPolicies) && same(a.Namespaces, b.Namespaces) &&
		same(a.L2Advertisements, b.L2Advertisements) && same(a.Communities, b.Communities) && same(a.ConfigMaps, b.ConfigMaps) && same(a.Deleted, b.Deleted) && same(a.Unusable, b.Unusable)
}
