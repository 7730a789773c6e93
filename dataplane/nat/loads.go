// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/endpoints"
	"fairlead.io/fairlead/dataplane/flows"
)

// Schedulers that go by how many connections endpoints have (K39). A packet cannot compare them, so the agent does: it counts them now
// and then, works out to whom IPVS would give the connections that come until the next count, and gives endpoints slots by that.

const (
	// loadsEvery is between two counts.
	loadsEvery = time.Second
	// loadsShare is how much longer the pause is than what a count and its changes took, at least.
	loadsShare = 20
	// countedSlots are those of a port with up to 16 endpoints, and slotsEach of each of them beyond.
	countedSlots = 64
	slotsEach    = 4
)

// counts tells whether a scheduler goes by connections.
func counts(scheduler string) bool {
	switch scheduler {
	case desired.LeastConnections, desired.WeightedLeastConnections, desired.ShortestExpectedDelay, desired.NeverQueue:
		return true
	}
	return keeps(scheduler)
}

// load is what the endpoints of a Service had when they were counted. It is not changed; another count is another load.
type load struct {
	of   map[flows.Endpoint]flows.Load
	kept map[destination]kept // by a scheduler that keeps
}

// share gives the targets of a lane their slots by a scheduler that counts. Without a count, or a choice, they have none. Where the
// scheduler keeps, it is about what is dialled; nothing in particular stands for all of it.
func (l *load) share(to lane, f family, d dialled) targets {
	t := to.targets
	if l == nil || !counts(to.scheduler) || len(t.at) < 2 {
		return t
	}
	if keeps(to.scheduler) {
		return l.shareKept(to, f, d)
	}
	t.shares = l.dealt(to, t, slotsOfCounted(len(t.at)))
	return t
}

// dealt are slots for some of a lane's targets, by whom its scheduler would give the next connections if there were no others.
func (l *load) dealt(to lane, t targets, slots int) []int {
	have, weights, fresh := make([]float64, len(t.at)), make([]float64, len(t.at)), 0
	for i, at := range t.at {
		now := l.of[flows.Endpoint{Protocol: to.protocol, At: at}]
		have[i], weights[i] = float64(now.Open), 1
		if t.weights != nil {
			weights[i] = float64(t.weights[i])
		}
		fresh += now.Fresh
	}
	// Of what came since the last count, what ended already was not seen. Twice as many may be wrong, but never swing: with so many
	// to come as there are, endpoints would change places for ever.
	return deal(fill(to.scheduler, have, weights, float64(max(2*fresh, len(t.at)))), slots)
}

// slotsOfCounted is how many slots endpoints share where connections are counted.
func slotsOfCounted(endpoints int) int { return max(countedSlots, slotsEach*endpoints) }

// fill says how many of the next connections each endpoint gets if each one goes where the scheduler says, and none ends meanwhile.
func fill(scheduler string, have, weights []float64, next float64) []float64 {
	out := make([]float64, len(have))
	if scheduler == desired.NeverQueue {
		var idle []int
		for i, n := range have {
			if n == 0 {
				idle = append(idle, i)
			}
		}
		each := 0.0
		if len(idle) > 0 {
			each = min(1, next/float64(len(idle)))
		}
		have = slices.Clone(have)
		for _, i := range idle {
			out[i], have[i] = each, each
		}
		next -= each * float64(len(idle))
	}
	if scheduler == desired.ShortestExpectedDelay || scheduler == desired.NeverQueue {
		have = slices.Clone(have)
		for i := range have {
			have[i]++
		}
	}
	for i, level := range levels(have, weights, next) {
		out[i] += level
	}
	return out
}

// levels shares out so much that those who get something have equally much for their weight afterwards, and the others more.
func levels(have, weights []float64, much float64) []float64 {
	out, order := make([]float64, len(have)), make([]int, len(have))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(have[a]*weights[b], have[b]*weights[a]) })
	sum, weight, level := much, 0.0, 0.0
	for _, i := range order {
		if weight > 0 && have[i] >= level*weights[i] {
			break
		}
		sum, weight = sum+have[i], weight+weights[i]
		level = sum / weight
	}
	for i := range out {
		out[i] = max(0, level*weights[i]-have[i])
	}
	return out
}

// deal gives slots by parts, as near as whole numbers allow: what is left over after rounding down goes to the largest remainders, to the
// first ones of the same.
func deal(parts []float64, slots int) []int {
	sum := 0.0
	for _, p := range parts {
		sum += p
	}
	out, order, left := make([]int, len(parts)), make([]int, len(parts)), slots
	rest := make([]float64, len(parts))
	for i, p := range parts {
		exact := p / sum * float64(slots)
		out[i], order[i] = int(exact), i
		rest[i], left = exact-float64(out[i]), left-out[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest[b], rest[a]) })
	for _, i := range order[:max(0, min(left, len(order)))] {
		out[i]++
	}
	return out
}

// toCount are the endpoints whose connections the planned Services ask for, in order.
func (p *Planner) toCount() []flows.Endpoint {
	if p.asked != nil {
		return p.asked
	}
	all := map[flows.Endpoint]bool{}
	for _, one := range p.services {
		if one.rare != nil && one.rare.counted != nil {
			for e := range endpointsOf(one.rare.counted) {
				all[e] = true
			}
		}
	}
	p.asked = slices.AppendSeq(make([]flows.Endpoint, 0, len(all)), maps.Keys(all))
	slices.SortFunc(p.asked, func(a, b flows.Endpoint) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), a.At.Compare(b.At))
	})
	return p.asked
}

// endpointsOf are where a Service may be translated to.
func endpointsOf(s *desired.Service) map[flows.Endpoint]bool {
	out := map[flows.Endpoint]bool{}
	for _, front := range s.Frontends {
		for i := range s.Endpoints {
			for _, at := range endpoints.Ports(&s.Endpoints[i], front) {
				out[flows.Endpoint{Protocol: front.Port.Protocol, At: netip.AddrPortFrom(at.Addr().Unmap(), at.Port())}] = true
			}
		}
	}
	return out
}

// loadOf is what is known of a Service's endpoints: what it was, if that is the same.
func (p *Planner) loadOf(one planned, was *load) *load {
	s := one.service
	if p.loads == nil || !counts(s.Scheduler) {
		return nil
	}
	next := &load{of: map[flows.Endpoint]flows.Load{}}
	for e := range endpointsOf(s) {
		next.of[e] = p.loads[e]
	}
	if keeps(s.Scheduler) {
		next.keep(p.config.in(one.zone), s, was, p.counted)
	}
	if was != nil && maps.Equal(was.of, next.of) && maps.EqualFunc(was.kept, next.kept, kept.equal) {
		return was
	}
	return next
}

// Rebalance takes what was counted at a time, nil if nothing could be, and returns the Change from before. It costs what the Services do
// that go by it.
func (p *Planner) Rebalance(loads map[flows.Endpoint]flows.Load, at time.Time) Change {
	p.loads, p.counted = loads, at
	d := newDelta()
	for _, e := range p.services {
		if e.rare == nil || e.rare.counted == nil {
			continue
		}
		if now := p.loadOf(e.planned(), e.rare.load); now != e.rare.load {
			p.add(&d, p.part(e.planned()), -1)
			e.rare.load = now
			p.add(&d, p.part(e.planned()), +1)
		}
	}
	return p.settle(d)
}

// balance counts connections and gives new ones out by that, and tells how long to wait until it is done again.
func (n *NAT) balance(ctx context.Context) time.Duration {
	start := time.Now()
	n.mu.Lock()
	of := n.planner.toCount()
	n.mu.Unlock()
	if len(of) == 0 && !n.balanced {
		return loadsEvery
	}
	var loads map[flows.Endpoint]flows.Load
	var err error
	if n.balanced = len(of) > 0; n.balanced {
		if loads, err = n.edge.Loads(ctx, of); err != nil {
			loads = nil
		}
	}
	if ctx.Err() != nil {
		return loadsEvery
	}
	if failed := err != nil; failed != n.uncounted {
		if n.uncounted = failed; failed {
			n.log.Warn("connections not counted, endpoints are chosen by weight", "error", err)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	change := n.planner.Rebalance(loads, start)
	if !n.told || change.Empty() {
		return max(loadsEvery, loadsShare*time.Since(start))
	}
	for _, s := range change.AddSets {
		n.sets[s.Name] = s
	}
	err = n.carryOut(ctx, change)
	for _, name := range change.DropSets {
		delete(n.sets, name)
	}
	if err != nil {
		n.metrics.failures.Inc()
		n.log.Error("endpoints keep the shares that they had", "error", err)
	}
	return max(loadsEvery, loadsShare*time.Since(start))
}
