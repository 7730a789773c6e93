// SPDX-License-Identifier: Apache-2.0

package birdtest

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Route is one path in BIRD's table.
type Route struct {
	Prefix    netip.Prefix
	NextHop   netip.Addr
	Protocol  string // the neighbour's name
	Best      bool   // BIRD's choice for the prefix
	Stale     bool   // kept from a speaker that was lost (graceful restart of either kind)
	LongLived bool   // of these, the kind that ranks last
	MED       uint32
	HasMED    bool // it came with one, be it 0
	LocalPref uint32
	ASPath    string
	Origin    string
	Community string
	// LargeCommunity is as BIRD shows it: "(65000, 1, 2)", with spaces between several.
	LargeCommunity string
}

// Routes returns BIRD's table: best paths first within a prefix, as BIRD lists them.
func (b *Bird) Routes() []Route {
	b.t.Helper()
	return parseRoutes(b.Command("show route all"))
}

func parseRoutes(answer string) []Route {
	var out []Route
	var prefix netip.Prefix
	for line := range strings.Lines(answer) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "\t"), strings.HasPrefix(line, "Table "):
			if len(out) > 0 {
				out[len(out)-1].attribute(strings.TrimSpace(line))
			}
		case strings.Contains(line, " ["):
			if p, err := netip.ParsePrefix(firstField(line)); err == nil {
				prefix = p
			}
			out = append(out, header(prefix, line))
		}
	}
	return out
}

func firstField(s string) string {
	f, _, _ := strings.Cut(s, " ")
	return f
}

// header reads, for instance:
//
//	203.0.113.10/32      unreachable [a 02:24:41.628 from 127.0.0.11] * (100s) [AS65000?]
func header(prefix netip.Prefix, line string) Route {
	_, rest, _ := strings.Cut(line, "[")
	inside, after, _ := strings.Cut(rest, "]")
	preference, _, _ := strings.Cut(after, ")")
	return Route{
		Prefix: prefix, Protocol: firstField(inside),
		Best: strings.Contains(preference, "*"), Stale: strings.HasSuffix(preference, "s"),
	}
}

// llgrStale is the well-known community LLGR_STALE (RFC 9494).
const llgrStale = "(65535,6)"

func (r *Route) attribute(line string) {
	key, value, _ := strings.Cut(line, ": ")
	switch key {
	case "BGP.next_hop":
		r.NextHop, _ = netip.ParseAddr(firstField(value))
	case "BGP.med":
		r.MED, r.HasMED = number(value), true
	case "BGP.local_pref":
		r.LocalPref = number(value)
	case "BGP.as_path":
		r.ASPath = value
	case "BGP.origin":
		r.Origin = value
	case "BGP.large_community":
		r.LargeCommunity = value
	case "BGP.community":
		r.Community = value
		r.LongLived = strings.Contains(value, llgrStale)
	}
}

func number(s string) uint32 {
	n, _ := strconv.ParseUint(s, 10, 32)
	return uint32(n)
}

// Entry is a prefix and where the switch sends its packets.
type Entry struct {
	Prefix   netip.Prefix
	NextHops []netip.Addr // sorted, each once
}

// ECMP returns the table as a switch that merges equal paths installs it: for each prefix, in order, the next hops of
// the paths that rank with the best one. These are the rules by which BIRD merges paths into a kernel route.
func (b *Bird) ECMP() []Entry {
	b.t.Helper()
	return ecmp(b.Routes())
}

// ECMP is the same of a table that was looked at before.
func (l Look) ECMP() []Entry { return ecmp(l.Routes) }

func ecmp(routes []Route) []Entry {
	best := map[netip.Prefix]Route{}
	for _, r := range routes {
		if r.Best {
			best[r.Prefix] = r
		}
	}
	hops := map[netip.Prefix][]netip.Addr{}
	for _, r := range routes {
		if first, ok := best[r.Prefix]; ok && r.mergesWith(first) {
			hops[r.Prefix] = append(hops[r.Prefix], r.NextHop)
		}
	}
	var out []Entry
	for p, h := range hops {
		slices.SortFunc(h, netip.Addr.Compare)
		out = append(out, Entry{p, slices.Compact(h)})
	}
	slices.SortFunc(out, func(a, b Entry) int { return a.Prefix.Compare(b.Prefix) })
	return out
}

func (r Route) mergesWith(best Route) bool {
	return r.LongLived == best.LongLived && r.LocalPref == best.LocalPref && r.MED == best.MED &&
		r.Origin == best.Origin && len(strings.Fields(r.ASPath)) == len(strings.Fields(best.ASPath))
}

// Session is how things stand with one neighbour.
type Session struct {
	Established bool
	Opened      int // how often it was, since BIRD was first run: another number means that the session bounced
	Info        string
	Updates     uint64 // paths received in UPDATEs, withdrawals and repeats included
}

// Sessions returns BIRD's sessions by the neighbour's name.
func (b *Bird) Sessions() map[string]Session {
	b.t.Helper()
	out := map[string]Session{}
	var name string
	shown := b.Command("show protocols all")
	log := b.Log() // later: what is shown as open has been counted
	for line := range strings.Lines(shown) {
		f := strings.Fields(line)
		switch {
		case len(f) >= 6 && f[1] == "BGP": // name BGP --- up date time info…
			name = f[0]
			out[name] = Session{
				Established: f[3] == "up", Opened: opened(log, name), Info: strings.Join(f[6:], " "),
			}
		case len(f) > 3 && f[0] == "Import" && (f[1] == "updates:" || f[1] == "withdraws:"):
			s := out[name]
			s.Updates += uint64(number(f[2]))
			out[name] = s
		}
	}
	return out
}

// opened counts how often a session came up, by BIRD's log. The times that BIRD shows are no means: it reckons them back from the present by two clocks,
// so that they differ from look to look, and more on a busy machine.
func opened(log, session string) int {
	return strings.Count(log, "> "+session+": State changed to up\n")
}
