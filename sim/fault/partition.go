// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"slices"
	"time"

	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/scenario/dice"
)

var anybody = Who{Roles: []Role{Member, Node, Switch, Kubernetes}, Least: 1}

// networkKinds are what befalls links.
func networkKinds() []Kind {
	return []Kind{{
		Name: "partition", Text: "nothing passes between some machines and all others",
		Weight: 10, Least: 500 * time.Millisecond, Most: 18 * time.Second,
		On: anybody, Draw: drawSide, Excuses: fewerMembers,
		Begin: func(b *Backstage, f Fault) func() {
			return b.sever(f.On, without(b.Cast.All(), f.On))
		},
	}}
}

// drawSide draws a minority of members with some nodes, or any side at all.
func drawSide(d dice.Dice, c Cast, f *Fault) {
	f.On = d.Some("members", c.Members, d.From("how many members", 1, max(1, (len(c.Members)-1)/2)))
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

// fewerMembers excuses the side of a cut with fewer members, or both where neither has a majority. Where the API server
// is on that side, it cannot be told to the other.
func fewerMembers(c Cast, f Fault) []string {
	rest := without(c.All(), f.On)
	here, there := len(common(f.On, c.Members)), len(common(rest, c.Members))
	switch {
	case here < there:
		return f.On
	case here > there:
		return rest
	}
	return c.All()
}

// sever cuts all links between two sets, both ways.
func (b *Backstage) sever(these, those []string) (heal func()) {
	return together([]func(){b.mute(these, those), b.mute(those, these)})
}

// mute cuts all links from one set to another.
func (b *Backstage) mute(from, to []string) (heal func()) {
	return links(from, to, b.Network.Cut)
}

// links does something to all links from one set to another.
func links(from, to []string, begin func(from, to string) (end func())) (end func()) {
	var ends []func()
	for _, x := range from {
		for _, y := range to {
			if x != y {
				ends = append(ends, begin(x, y))
			}
		}
	}
	return together(ends)
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(n string) bool { return slices.Contains(some, n) })
}

func common(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(n string) bool { return !slices.Contains(some, n) })
}
