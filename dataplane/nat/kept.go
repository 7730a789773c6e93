// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/flows"
)

// Schedulers for caches (K39): what is dialled keeps endpoints, one or a set, until they are overloaded. They go by what the agent counts,
// and are looked at with each count, as IPVS does with each connection (ip_vs_lblc.c, ip_vs_lblcr.c).

// shrinkAfter is after how long without a change a set gives an endpoint up, as with IPVS (lblcr_expiration).
const shrinkAfter = 24 * time.Hour

// keeps tells whether a scheduler has what is dialled keep endpoints.
func keeps(scheduler string) bool {
	return scheduler == desired.LocalityLeastConnections || scheduler == desired.LocalityLeastConnectionsReplicated
}

// destination is what keeps endpoints: what clients dial, in a lane. Nothing dialled stands for all that leads there, whose clients with
// affinity are remembered together.
type destination struct {
	lane    string
	family  byte
	dialled dialled
}

// kept are the endpoints that a destination keeps, in order, and when one came, or was given up, last.
type kept struct {
	at    []netip.AddrPort
	since time.Time
}

func (k kept) equal(o kept) bool { return slices.Equal(k.at, o.at) && k.since.Equal(o.since) }

// keep finds out what the destinations of a Service keep from a count on, by what they kept before.
func (l *load) keep(c Config, s *desired.Service, was *load, now time.Time) {
	l.kept = map[destination]kept{}
	for _, f := range []family{ipv4, ipv6} {
		addresses := append(ofFamily(s.Addresses, f), c.byOthers(s, f)...)
		for _, front := range s.Frontends {
			if !c.translates(front.Port.Protocol) {
				continue
			}
			all := append(free(addresses, front.Port, nil), c.nodePort(s, front, f, nil)...)
			for _, to := range c.lanes(s, front, f) {
				for _, d := range append(all, dialled{}) {
					at, before := destination{to.id, f.number, d}, kept{}
					if was != nil {
						before = was.kept[at]
					}
					if len(to.at) > 1 {
						l.kept[at] = l.next(to, before, now)
					}
				}
			}
		}
	}
}

// next is what a destination keeps from now on. An endpoint that new connections do not go to any more is not kept.
func (l *load) next(to lane, was kept, now time.Time) kept {
	o, next, members := l.overview(to), was, []int(nil)
	for i, at := range to.at {
		if slices.Contains(was.at, at) {
			members = append(members, i)
		}
	}
	least := o.least(members)
	if len(members) > 1 && now.Sub(was.since) > shrinkAfter {
		most := o.most(members)
		members, next.since = slices.DeleteFunc(members, func(i int) bool { return i == most }), now
	}
	if least < 0 || o.overloaded(least) {
		everybody := make([]int, len(to.at))
		for i := range everybody {
			everybody[i] = i
		}
		if now := o.least(everybody); to.scheduler == desired.LocalityLeastConnections {
			members = []int{now}
		} else if !slices.Contains(members, now) {
			members = append(members, now)
		}
	}
	slices.Sort(members)
	next.at = nil
	for _, i := range members {
		next.at = append(next.at, to.at[i])
	}
	if slices.ContainsFunc(next.at, func(a netip.AddrPort) bool { return !slices.Contains(was.at, a) }) {
		next.since = now
	}
	return next
}

// shareKept gives slots to those alone whom what is dialled keeps: several have connections by their weights, as with wlc.
func (l *load) shareKept(to lane, f family, d dialled) targets {
	t, mine := to.targets, targets{}
	who := l.kept[destination{to.id, f.number, d}].at
	for i, at := range t.at {
		if slices.Contains(who, at) {
			mine.at = append(mine.at, at)
			if t.weights != nil {
				mine.weights = append(mine.weights, t.weights[i])
			}
		}
	}
	if len(mine.at) == 0 {
		return t
	}
	slots := l.dealt(to, mine, slotsOfCounted(len(t.at)))
	t.shares = make([]int, len(t.at))
	for i, at := range mine.at {
		t.shares[slices.Index(t.at, at)] = slots[i]
	}
	return t
}

// overview is what the endpoints of a lane have, and how much each may have.
type overview struct{ have, weights []int }

func (l *load) overview(to lane) overview {
	o := overview{}
	for i, at := range to.at {
		o.have = append(o.have, l.of[flows.Endpoint{Protocol: to.protocol, At: at}].Open)
		o.weights = append(o.weights, int(to.written[i]))
	}
	return o
}

// least is the one of some that has the fewest connections for its weight, -1 of none; most the one that has the most.
func (o overview) least(of []int) int {
	return o.first(of, func(a, b int) bool { return o.have[a]*o.weights[b] < o.have[b]*o.weights[a] })
}

func (o overview) most(of []int) int {
	return o.first(of, func(a, b int) bool { return o.have[a]*o.weights[b] > o.have[b]*o.weights[a] })
}

// first is the first one before which no other one comes.
func (o overview) first(of []int, before func(a, b int) bool) int {
	out := -1
	for _, i := range of {
		if out < 0 || before(i, out) {
			out = i
		}
	}
	return out
}

// overloaded tells whether one has more connections than its weight while some other has less than half of its own.
func (o overview) overloaded(i int) bool {
	for other := range o.have {
		if o.have[i] > o.weights[i] && 2*o.have[other] < o.weights[other] {
			return true
		}
	}
	return false
}
