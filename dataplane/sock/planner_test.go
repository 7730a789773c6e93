// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

var (
	someAddresses = []netip.Addr{
		netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("10.96.0.2"), netip.MustParseAddr("192.0.2.1"),
		netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2"),
	}
	someNodes = []netip.Addr{
		netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("2001:db8::2"),
	}
	somePorts = []uint16{53, 80}
)

func genFront(kind Kind) *rapid.Generator[Front] {
	return rapid.Custom(func(t *rapid.T) Front {
		f := Front{Protocol: rapid.SampledFrom([]uint8{TCP, UDP}).Draw(t, "protocol")}
		v4 := rapid.Bool().Draw(t, "v4")
		addresses := slices.DeleteFunc(slices.Clone(someAddresses), func(a netip.Addr) bool { return a.Is4() != v4 })
		if kind == Service {
			addresses = append(addresses, map[bool]netip.Addr{true: AnyNode4, false: AnyNode6}[v4])
		}
		for _, a := range rapid.SliceOfNDistinct(rapid.SampledFrom(addresses), 1, 2, rapid.ID).Draw(t, "addresses") {
			mode := Mode(rapid.ByteRange(1, 4).Draw(t, "mode"))
			if kind == LocalRedirect {
				mode = rapid.SampledFrom([]Mode{LocalRedirectService, LocalRedirectAddress}).Draw(t, "captures")
			}
			f.At = append(f.At, At{a, rapid.SampledFrom(somePorts).Draw(t, "port"), mode})
		}
		for _, n := range rapid.SliceOfN(rapid.ByteRange(1, 9), 0, 4).Draw(t, "backends") {
			a := netip.AddrFrom4([4]byte{10, 1, 0, n})
			if !v4 {
				a = netip.AddrFrom16([16]byte{0xfd, 15: n})
			}
			f.Backends = append(f.Backends, Backend{netip.AddrPortFrom(a, 8080), uint16(rapid.IntRange(0, 3).Draw(t, "weight"))})
		}
		f.Affinity = rapid.SampledFrom([]time.Duration{0, 0, 10 * time.Second}).Draw(t, "affinity")
		empties := map[Kind][]Verdict{LocalRedirect: {Next}, Balancing: {Refuse, Next, Pass}, Service: {Refuse, Unreachable, Pass}}
		f.Empty = rapid.SampledFrom(empties[kind]).Draw(t, "empty")
		return f
	})
}

func genRule(id uint32) *rapid.Generator[*Rule] {
	return rapid.Custom(func(t *rapid.T) *Rule {
		kind := rapid.SampledFrom([]Kind{LocalRedirect, Balancing, Service}).Draw(t, "kind")
		r := &Rule{ID: id, Kind: kind, Name: fmt.Sprintf("%s-%d", kind, id), Rank: rapid.Uint64Range(0, 2).Draw(t, "rank")}
		r.Fronts = rapid.SliceOfN(genFront(kind), 0, 3).Draw(t, "fronts")
		r.SparesBackends = kind != Service && rapid.IntRange(0, 3).Draw(t, "spares") == 0
		// One rule has a place once: which of its own fronts counted would be anybody's guess.
		seen := map[Place]bool{}
		for i := range r.Fronts {
			f := &r.Fronts[i]
			f.At = slices.DeleteFunc(f.At, func(at At) bool {
				p := at.place(f.Protocol)
				was := seen[p]
				seen[p] = true
				return was
			})
		}
		return r
	})
}

// genWant changes some of the rules and nodes that there were.
func genWant(t *rapid.T, was Want) Want {
	rules := map[uint32]*Rule{}
	for _, r := range was.Rules {
		rules[r.ID] = r
	}
	for range rapid.IntRange(1, 4).Draw(t, "changes") {
		id := rapid.Uint32Range(1, 8).Draw(t, "id")
		if rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
			delete(rules, id)
		} else {
			rules[id] = genRule(id).Draw(t, "rule")
		}
	}
	want := Want{Nodes: was.Nodes}
	if rapid.IntRange(0, 2).Draw(t, "nodes change") == 0 {
		want.Nodes = rapid.SliceOfNDistinct(rapid.SampledFrom(someNodes), 0, 3, rapid.ID).Draw(t, "nodes")
	}
	for _, id := range slices.Sorted(maps.Keys(rules)) {
		want.Rules = append(want.Rules, rules[id])
	}
	return want
}

// model says what shall become of a call, from the rules alone and as the spec tells it (balancing §7): which verdict,
// by which rule, and with which chances which backend.
func model(w Want, c Call) (verdict Verdict, rule uint32, backends map[netip.AddrPort]int) {
	isNode := slices.Contains(w.Nodes, c.To.Address)
	type here struct {
		rule  *Rule
		front *Front
		mode  Mode
	}
	find := func(kind Kind) (out *here) {
		for _, r := range w.Rules {
			for i := range r.Fronts {
				for _, at := range r.Fronts[i].At {
					wild := at.Address == AnyNode4 && c.To.Address.Is4() || at.Address == AnyNode6 && c.To.Address.Is6()
					switch {
					case r.Fronts[i].Protocol != c.To.Protocol || at.Port != c.To.Port:
					case kind == NodePort && r.Kind == Service && wild && isNode,
						kind == r.Kind && at.Address == c.To.Address:
						if out == nil || r.Rank < out.rule.Rank || r.Rank == out.rule.Rank && r.Name < out.rule.Name {
							out = &here{r, &r.Fronts[i], at.Mode}
						}
					}
				}
			}
		}
		return out
	}
	var redirected *here // a redirect that was there and did not count
	first := true
	for _, kind := range []Kind{LocalRedirect, Balancing, Service, NodePort} {
		h := find(kind)
		if h == nil {
			continue
		}
		usable := len(h.front.Backends) > 0
		leads := first && usable // only the first rule that would count is asked who calls, and how often
		if usable {
			first = false
		}
		switch {
		case leads && h.rule.SparesBackends && c.Own:
			if kind == LocalRedirect {
				redirected = h
			}
			continue
		case kind == LocalRedirect && (!usable || c.Spent):
			redirected = h
			continue
		case !usable && h.front.Empty == Next:
			continue
		case !usable:
			return h.front.Empty, h.rule.ID, nil
		}
		backends = map[netip.AddrPort]int{}
		for _, b := range h.front.Backends {
			backends[b.At] += int(max(b.Weight, 1))
		}
		return Use, h.rule.ID, backends
	}
	switch {
	case redirected == nil:
		return Pass, 0, nil
	case redirected.mode == LocalRedirectService: // whose own backends somebody else may know
		return Pass, redirected.rule.ID, nil
	}
	return Refuse, redirected.rule.ID, nil
}

func calls() (out []Call) {
	for _, a := range append(slices.Clone(someAddresses), someNodes...) {
		for _, port := range somePorts {
			for _, protocol := range []uint8{TCP, UDP} {
				for i := range 4 {
					out = append(out, Call{To: Place{a, port, protocol}, Spent: i&1 != 0, Own: i&2 != 0})
				}
			}
		}
	}
	return out
}

// checkCalls compares what rows say of every call with the model.
func checkCalls(t *rapid.T, rows Rows, want Want) {
	for _, c := range calls() {
		verdict, rule, backends := model(want, c)
		a := rows.Resolve(c)
		if a.Verdict != verdict || a.Choice.Rule != rule || a.Missing {
			t.Fatalf("%+v: %s by rule %d (missing: %v), want %s by rule %d; row %+v", c, a.Verdict, a.Choice.Rule, a.Missing, verdict, rule, rows.Places[c.To])
		}
		if verdict != Use {
			continue
		}
		turns, sum := map[netip.AddrPort]int{}, 0
		for _, w := range backends {
			sum += w
		}
		for draw := range a.Choice.Count {
			c.Draw = draw
			turns[rows.Resolve(c).Backend]++
		}
		for at, w := range backends {
			if turns[at]*sum != w*int(a.Choice.Count) {
				t.Fatalf("%+v: %s has %d of %d turns, weights %v", c, at, turns[at], a.Choice.Count, backends)
			}
		}
		if len(turns) != len(backends) {
			t.Fatalf("%+v: backends %v, want %v", c, turns, backends)
		}
	}
}

// checkRows are the promises of rows themselves: each names what is there, nothing is nobody's, and backends can be
// found by identity where they are remembered.
func checkRows(t *rapid.T, rows Rows, settled *Want) {
	for at, row := range rows.Places {
		for _, c := range []Choice{row.First, row.Then} {
			if c.Verdict != Use {
				continue
			}
			ids := map[uint32]Slot{}
			for i := range c.Count {
				slot, ok := rows.Slots[SlotKey{c.Set, i}]
				if !ok {
					t.Fatalf("%s: no slot %d of set %d", at, i, c.Set)
				}
				if was, ok := ids[slot.ID]; ok && was != slot {
					t.Fatalf("%s: %v and %v are one", at, was, slot)
				}
				ids[slot.ID] = slot
				byID, ok := rows.Slots[SlotKey{c.Set, member | slot.ID}]
				if ok && byID != slot || !ok && (c.Affinity > 0 || at.Protocol == UDP) {
					t.Fatalf("%s: %v by identity is %v", at, slot, byID)
				}
			}
		}
		if (row.First.Limited) && !rows.Windows[at] {
			t.Fatalf("%s: limited, and no window", at)
		}
	}
	if settled != nil {
		checkNobodys(t, rows, *settled)
	}
}

// checkNobodys finds what is there and not of use: no rule has such a backend, or there are more sets than fronts.
// Sets that no row names now are of rules which another one outranks.
func checkNobodys(t *rapid.T, rows Rows, want Want) {
	backends, fronts := map[netip.AddrPort]bool{}, 0
	for _, r := range want.Rules {
		for _, f := range r.Fronts {
			if len(f.Backends) > 0 {
				fronts++
			}
			for _, b := range f.Backends {
				backends[b.At] = true
			}
		}
	}
	sets := map[uint32]bool{}
	for k, slot := range rows.Slots {
		sets[k.Set] = true
		if !backends[slot.At] {
			t.Fatalf("slot %+v of %s is nobody's", k, slot.At)
		}
	}
	if len(sets) > fronts {
		t.Fatalf("%d sets for %d fronts", len(sets), fronts)
	}
	for at := range rows.Windows {
		if !rows.Places[at].First.Limited {
			t.Fatalf("window of %s is nobody's", at)
		}
	}
	if len(rows.Nodes) != len(want.Nodes) {
		t.Fatalf("nodes %v, want %v", rows.Nodes, want.Nodes)
	}
}

// checkTaken compares what a planner thinks that tables hold with what they do.
func checkTaken(t *rapid.T, p *Planner, rows Rows) {
	if have, want := p.Taken(), (Capacity{len(rows.Places), len(rows.Slots), len(rows.Nodes)}); have != want {
		t.Fatalf("the planner thinks of %+v rows, there are %+v", have, want)
	}
	if have := p.Rows(); !maps.Equal(have.Slots, rows.Slots) {
		t.Fatalf("the planner thinks of slots %v, there are %v", have.Slots, rows.Slots)
	}
}

// carryOut does to rows what a change says one write after the other, and looks after each. It stops after so many
// writes, as an agent that is killed, and is false then.
func carryOut(t *rapid.T, rows Rows, c Change, room Capacity, writes *int, look func()) bool {
	single := func(one Change) bool {
		if one.Empty() {
			return true
		}
		if *writes--; *writes < 0 {
			return false
		}
		rows.Apply(one)
		if len(rows.Places) > room.Places || len(rows.Slots) > room.Slots || len(rows.Nodes) > room.Nodes {
			t.Fatalf("%d places, %d slots, %d nodes: more than %+v", len(rows.Places), len(rows.Slots), len(rows.Nodes), room)
		}
		look()
		return true
	}
	for _, k := range slices.SortedFunc(maps.Keys(c.PutSlots), SlotKey.compare) {
		if !single(Change{PutSlots: map[SlotKey]Slot{k: c.PutSlots[k]}}) {
			return false
		}
	}
	if !single(Change{PutWindows: c.PutWindows}) || !single(Change{PutNodes: c.PutNodes}) {
		return false
	}
	for _, at := range slices.SortedFunc(maps.Keys(c.PutPlaces), Place.compare) {
		if !single(Change{PutPlaces: map[Place]Row{at: c.PutPlaces[at]}}) {
			return false
		}
	}
	for _, at := range c.DropPlaces {
		if !single(Change{DropPlaces: []Place{at}}) {
			return false
		}
	}
	if !single(Change{DropNodes: c.DropNodes}) || !single(Change{DropWindows: c.DropWindows}) {
		return false
	}
	for _, k := range c.DropSlots {
		if !single(Change{DropSlots: []SlotKey{k}}) {
			return false
		}
	}
	return true
}

var plenty = Capacity{Places: 1000, Slots: 10000, Nodes: 1000}

// Balancing §3, §6, §7, §16.3: whatever rules come and go, calls meet what the spec says, rows name what is there after every
// single write, what stays is not written, and an agent that starts anew finds its way from any rows.
func TestPropertyRowsSayWhatRulesSay(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		p, rows := NewPlanner(plenty), NewRows()
		var want Want
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			want = genWant(t, want)
			writes := rapid.IntRange(0, 60).Draw(t, "writes until the agent is killed")
			step := func() bool {
				for _, c := range p.Step(want) {
					if !carryOut(t, rows, c, plenty, &writes, func() { checkRows(t, rows, nil) }) {
						return false
					}
				}
				return true
			}
			if !step() {
				p, writes = NewPlanner(plenty), 1000000
				p.Adopt(clone(rows))
				step()
			}
			checkRows(t, rows, &want)
			checkCalls(t, rows, want)
			checkTaken(t, p, rows)
			if again := p.Step(want); len(again) > 0 {
				t.Fatalf("what is there is written again: %+v", again)
			}
			fresh := NewPlanner(plenty)
			fresh.Adopt(clone(rows))
			if again := fresh.Step(want); len(again) > 0 {
				t.Fatalf("what was found is written again: %+v", again)
			}
			if problems := p.Problems(); len(problems) > 0 {
				t.Fatalf("problems: %+v", problems)
			}
		}
	})
}

func clone(r Rows) Rows {
	return Rows{maps.Clone(r.Places), maps.Clone(r.Slots), maps.Clone(r.Nodes), maps.Clone(r.Windows)}
}

// Balancing §16.3: a table never overflows, whatever is asked for; who does not fit is named, nobody gets to a backend
// that left, and all are served as soon as there is room.
func TestPropertyTablesDoNotOverflow(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		room := Capacity{
			Places: rapid.IntRange(1, 12).Draw(t, "places"), Slots: rapid.IntRange(1, 30).Draw(t, "slots"), Nodes: 3,
		}
		p, rows := NewPlanner(room), NewRows()
		var want Want
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			want = genWant(t, want)
			settle(t, p, rows, want, room)
			if len(p.Problems()) == 0 {
				checkCalls(t, rows, want)
				continue
			}
			for _, c := range calls() {
				a := rows.Resolve(c)
				if a.Verdict != Use {
					continue
				}
				i := slices.IndexFunc(want.Rules, func(r *Rule) bool { return r.ID == a.Choice.Rule })
				if i < 0 || !slices.ContainsFunc(want.Rules[i].Fronts, func(f Front) bool {
					return slices.ContainsFunc(f.Backends, func(b Backend) bool { return b.At == a.Backend })
				}) {
					t.Fatalf("%+v: gets to %s, which rule %d does not have", c, a.Backend, a.Choice.Rule)
				}
			}
		}
		for len(want.Rules) > 1 || len(p.Problems()) > 0 && len(want.Rules) > 0 {
			want.Rules = want.Rules[1:]
			settle(t, p, rows, want, room)
			if len(p.Problems()) == 0 {
				checkCalls(t, rows, want)
			}
		}
	})
}

// settle carries out what leads to what is wanted.
func settle(t *rapid.T, p *Planner, rows Rows, want Want, room Capacity) {
	writes := 1000000
	for _, c := range p.Step(want) {
		carryOut(t, rows, c, room, &writes, func() { checkRows(t, rows, nil) })
	}
	checkTaken(t, p, rows)
	if len(p.Problems()) == 0 {
		checkRows(t, rows, &want)
	}
}
