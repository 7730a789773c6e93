// SPDX-License-Identifier: Apache-2.0

package testswitch

import (
	"cmp"
	"net/netip"
	"slices"
)

// Route is one path as a neighbour announced it.
type Route struct {
	Prefix    netip.Prefix
	NextHop   netip.Addr
	RouterID  netip.Addr // of the neighbour
	PathID    uint32
	LocalPref uint32
	ASPathLen int
	Origin    uint8
	MED       uint32
	Stale     bool // kept from a session that was lost
	LongLived bool // for so long that it ranks last (RFC 9494)
}

// better says, as a negative number, that r is preferred to o; 0 says that they share the traffic.
func (r Route) better(o Route) int {
	return cmp.Or(
		boolRank(r.LongLived)-boolRank(o.LongLived),
		cmp.Compare(o.LocalPref, r.LocalPref),
		cmp.Compare(r.ASPathLen, o.ASPathLen),
		cmp.Compare(r.Origin, o.Origin),
		cmp.Compare(r.MED, o.MED), // all neighbours are of one AS here
	)
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Entry is a prefix and where its packets go.
type Entry struct {
	Prefix   netip.Prefix
	NextHops []netip.Addr // sorted, each once
}

// source tells the paths of one prefix apart.
type source struct {
	routerID netip.Addr
	pathID   uint32
}

// rib is everything that neighbours announced.
type rib map[netip.Prefix]map[source]Route

func (t rib) set(r Route) {
	if t[r.Prefix] == nil {
		t[r.Prefix] = map[source]Route{}
	}
	t[r.Prefix][source{r.RouterID, r.PathID}] = r
}

func (t rib) remove(p netip.Prefix, s source) {
	delete(t[p], s)
	if len(t[p]) == 0 {
		delete(t, p)
	}
}

// change calls f on every route of a neighbour in a family, and keeps what it returns, or drops it.
func (t rib) change(routerID netip.Addr, f family, do func(Route) (_ Route, keep bool)) {
	for p, routes := range t {
		if familyOf(p.Addr()) != f {
			continue
		}
		for s, r := range routes {
			if s.routerID != routerID {
				continue
			}
			if r, keep := do(r); keep {
				routes[s] = r
			} else {
				t.remove(p, s)
			}
		}
	}
}

func (t rib) entries() []Entry {
	out := make([]Entry, 0, len(t))
	for p, routes := range t {
		var best []Route
		for _, r := range routes {
			switch {
			case len(best) == 0 || r.better(best[0]) < 0:
				best = append(best[:0], r)
			case r.better(best[0]) == 0:
				best = append(best, r)
			}
		}
		e := Entry{Prefix: p}
		for _, r := range best {
			e.NextHops = append(e.NextHops, r.NextHop)
		}
		slices.SortFunc(e.NextHops, netip.Addr.Compare)
		e.NextHops = slices.Compact(e.NextHops)
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Entry) int { return a.Prefix.Compare(b.Prefix) })
	return out
}

func (t rib) routes() []Route {
	var out []Route
	for _, routes := range t {
		for _, r := range routes {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b Route) int {
		return cmp.Or(a.Prefix.Compare(b.Prefix), a.RouterID.Compare(b.RouterID), cmp.Compare(a.PathID, b.PathID))
	})
	return out
}
