// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// anybody is who has links.
var anybody = Who{Roles: []Role{Member, Node, Switch, Kubernetes, Driver}, Least: 1}

// cutKinds are what lets nothing pass.
func cutKinds() []Kind {
	return []Kind{
		{
			Name: "partition", Text: "nothing passes between some machines and all others",
			Weight: 10, Least: 500 * time.Millisecond, Most: 18 * time.Second,
			On: anybody, Draw: drawSide, Excuses: fewerMembers,
			Begin: func(b *Backstage, f Fault) func() { return b.sever(f.On, without(b.Cast.All(), f.On)) },
		},
		{
			Name: "isolate", Text: "nothing passes between some machines and some others",
			Weight: 8, Least: 500 * time.Millisecond, Most: 18 * time.Second, On: anybody,
			Parameters: []parameter.Parameter{others("from").Must()},
			Draw:       func(d dice.Dice, c Cast, f *Fault) { drawPair(d, c, f, "from") },
			Excuses:    func(c Cast, f Fault) []string { return fewer(c, f.On, f.others(c, "from")) },
			Begin: func(b *Backstage, f Fault) func() {
				return b.sever(f.On, f.others(b.Cast, "from"))
			},
		},
		{
			Name: "one-way", Text: "nothing passes from some machines to some others; the other way, everything does",
			Weight: 8, Least: 500 * time.Millisecond, Most: 18 * time.Second, On: anybody,
			Parameters: []parameter.Parameter{others("to").Must()},
			Draw:       func(d dice.Dice, c Cast, f *Fault) { drawPair(d, c, f, "to") },
			Excuses:    func(c Cast, f Fault) []string { return fewer(c, f.On, f.others(c, "to")) },
			Begin: func(b *Backstage, f Fault) func() {
				return b.links(f.On, f.others(b.Cast, "to"), b.Network.Cut)
			},
		},
		{
			Name: "swizzle", Text: "machines are cut off one by one, and back again one by one in another order",
			Weight: 5, Least: 4 * time.Second, Most: 18 * time.Second, On: anybody, Excuses: onThem, Begin: swizzle,
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				f.On = slices.Concat(d.Some("members", c.Members, d.From("members", 1, len(c.Members))), d.Some("nodes", c.Nodes, d.From("nodes", 0, len(c.Nodes))))
			},
		},
	}
}

// others is a parameter that names machines.
func others(name string) parameter.Parameter {
	return parameter.Machines(name, "names with commas between them, or members, nodes, switches, drivers for all of them", "members", "nodes", "switches", "drivers")
}

// others reads it. Those whom the fault befalls are not among them.
func (f Fault) others(c Cast, name string) []string { return without(c.whom(f.With.Words(name)), f.On) }

// drawSide draws a minority of members with some nodes, or any side at all.
func drawSide(d dice.Dice, c Cast, f *Fault) {
	f.On = minority(d, c)
	if d.Chance("any side", 10) {
		f.On = d.Some("any members", c.Members, d.From("how many of any", 1, len(c.Members)))
	}
	if d.Chance("nodes too", 40) {
		f.On = append(f.On, d.Some("nodes", c.Nodes, d.From("how many nodes", 0, len(c.Nodes)))...)
	}
	if d.Chance("switch too", 20) {
		f.On = append(f.On, d.Some("switches", c.Switches, 1)...)
	}
	if d.Chance("kubernetes too", 10) {
		f.On = append(f.On, start.Kubernetes)
	}
}

// drawPair draws who is cut off from whom.
func drawPair(d dice.Dice, c Cast, f *Fault, whom string) {
	f.On = d.Some("members", c.Members, 1)
	if d.Chance("node", 30) && len(c.Nodes) > 0 {
		f.On = d.Some("nodes", c.Nodes, d.From("how many nodes", 1, max(1, len(c.Nodes)/3)))
		f.With.Set(whom, dice.Pick(d, "whom of node", []string{"members", start.Kubernetes, "switches"}))
		return
	}
	all := []string{"members", "nodes", "switches", start.Kubernetes, strings.Join(d.Some("another", without(c.Members, f.On), 1), ",")}
	if len(c.Drivers) > 0 {
		all = append(all, "drivers")
	}
	f.With.Set(whom, dice.Pick(d, "whom", slices.DeleteFunc(all, func(s string) bool { return s == "" })))
}

// nothing is what a cut excuses on whose other side is nobody.
var nothing = []string{"network/nothing"}

// fewerMembers excuses the side of a partition with fewer members, or both where neither has a majority.
func fewerMembers(c Cast, f Fault) []string {
	rest := without(c.All(), f.On)
	here, there := len(common(f.On, c.Members)), len(common(rest, c.Members))
	switch {
	case len(rest) == 0:
		return nothing
	case here < there:
		return f.On
	case here > there:
		return rest
	}
	return c.All()
}

// fewer excuses whom a cut keeps from working: those of the smaller side; both of a pair of the same sort; and the API
// server, which cannot be held to what it could not tell a member.
func fewer(c Cast, these, those []string) []string {
	alone := slices.Clone(these)
	switch {
	case len(those) < len(these):
		alone = slices.Clone(those)
	case len(these) == len(those) && c.sort(these) == c.sort(those):
		alone = slices.Concat(these, those)
	}
	both := slices.Concat(these, those)
	if slices.Contains(both, start.Kubernetes) && len(common(both, c.Members)) > 0 && !slices.Contains(alone, start.Kubernetes) {
		alone = append(alone, start.Kubernetes)
	}
	if len(alone) == 0 {
		return nothing
	}
	return alone
}

// sort is the part that the first of some machines plays.
func (c Cast) sort(names []string) Role {
	for _, r := range []Role{Member, Node, Switch, Driver} {
		if len(names) > 0 && slices.Contains(c.role(r), names[0]) {
			return r
		}
	}
	return Kubernetes
}

// swizzle cuts machines off in the first half of its time, and back in the second.
func swizzle(b *Backstage, f Fault) func() {
	r := b.random(f)
	heals := make([]func(), len(f.On))
	step := f.For / time.Duration(2*len(f.On)+1)
	for i, place := range r.Perm(len(f.On)) {
		b.World.After(time.Duration(i)*step, func() {
			name := f.On[place]
			heals[place] = b.sever([]string{name}, without(b.Cast.All(), []string{name}))
		})
	}
	for i, place := range r.Perm(len(f.On)) {
		b.World.After(time.Duration(len(f.On)+1+i)*step, func() { heals[place]() })
	}
	return func() {}
}
