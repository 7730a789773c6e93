// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/sim/event"
)

// route is a prefix at a switch.
type route struct {
	at     string
	prefix netip.Prefix
}

// forwarding is what a switch did with a prefix last.
type forwarding struct {
	hops    []netip.Addr
	members map[string]standing
}

// standing is how the paths of a member stand at a switch.
type standing string

const (
	announces standing = "announces"
	demoted   standing = "demoted"
	stale     standing = "stale"
)

// turn is what a switch did with a place before the moment that is told of.
type turn struct {
	at  string
	to  place
	was forwarding
}

// forward notes what a switch does differently from now on. It is told once all of the same moment is known: where one prefix takes
// the place of many, packets go from one to the other.
func (a *account) forward(at time.Duration, x event.Forwarding) {
	if at > a.turned {
		a.tellTurns()
	}
	a.turned = at
	for _, p := range a.places() {
		noted := slices.ContainsFunc(a.turns, func(t turn) bool { return t.at == x.Switch && t.to == p })
		if at >= a.began && x.Prefix.Contains(p.address) && !noted {
			a.turns = append(a.turns, turn{x.Switch, p, a.way(x.Switch, p.address)})
		}
	}
	a.routes[route{x.Switch, x.Prefix}] = forwarding{hops: slices.Clone(x.NextHops), members: standings(x.Paths)}
}

// tellTurns says what is different since the moment before the last one.
func (a *account) tellTurns() {
	for _, t := range a.turns {
		a.seen[t.to].compare(a.turned-a.began, t.at, t.was, a.way(t.at, t.to.address), a.o.Nodes)
	}
	a.turns = nil
}

// way is what a switch does with an address, by the longest prefix that leads anywhere.
func (a *account) way(at string, to netip.Addr) forwarding {
	for bits := to.BitLen(); bits >= 0; bits-- {
		prefix, err := to.Prefix(bits)
		if f := a.routes[route{at, prefix}]; err == nil && len(f.hops) > 0 {
			return f
		}
	}
	return forwarding{}
}

// standings tells how each member's paths stand: as well as the best of them does.
func standings(paths []event.Path) map[string]standing {
	out := map[string]standing{}
	for _, p := range paths {
		is := announces
		switch {
		case p.Stale || p.LongLived:
			is = stale
		case p.MED >= bgp.DemotionMED || p.LocalPref == bgp.DemotedLocalPref:
			is = demoted
		}
		if out[p.Member] == "" || is == announces {
			out[p.Member] = is
		}
	}
	return out
}

// compare says what is different.
func (s *seen) compare(after time.Duration, at string, was, now forwarding, nodes map[netip.Addr]string) {
	gone, come := missing(was.hops, now.hops, nodes), missing(now.hops, was.hops, nodes)
	switch {
	case len(now.hops) == 0 && len(was.hops) > 0:
		s.step(after, "%s knows no way to it", at)
	case len(was.hops) == 0 && len(now.hops) > 0:
		s.step(after, "%s forwards to %s", at, list(come))
	default:
		if len(gone) > 0 {
			s.step(after, "%s forwards to %s no more", at, list(gone))
		}
		if len(come) > 0 {
			s.step(after, "%s forwards to %s as well", at, list(come))
		}
	}
	for _, member := range slices.Sorted(maps.Keys(both(was.members, now.members))) {
		switch before, is := was.members[member], now.members[member]; {
		case before == is:
		case is == "":
			s.step(after, "%s has no path from %s any more", at, member)
		case is == stale:
			s.step(after, "%s keeps the paths of %s, whose session is down", at, member)
		case is == demoted:
			s.step(after, "%s ranks the paths of %s last: it demoted them", at, member)
		default:
			s.step(after, "%s has paths from %s", at, member)
		}
	}
}

func both(a, b map[string]standing) map[string]bool {
	out := map[string]bool{}
	for name := range a {
		out[name] = true
	}
	for name := range b {
		out[name] = true
	}
	return out
}

// missing names the nodes of hops that others lack.
func missing(of, others []netip.Addr, nodes map[netip.Addr]string) (out []string) {
	for _, a := range of {
		if slices.Contains(others, a) {
			continue
		}
		name := nodes[a]
		if name == "" {
			name = a.String()
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// some is list that names only so many.
func some(names []string) string {
	if more := len(names) - mostNamed; more > 0 {
		names = append(slices.Clone(names[:mostNamed]), fmt.Sprintf("%d more", more))
	}
	return list(names)
}

// list is names as people say them: a, b and c.
func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
