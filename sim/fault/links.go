// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"slices"
	"time"

	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// linkKinds are what befalls links over which something still passes.
func linkKinds() []Kind {
	return []Kind{
		{
			Name: "delay", Text: "messages between some machines and some others take longer",
			Weight: 6, Least: time.Second, Most: 15 * time.Second, On: anybody,
			Parameters: []parameter.Parameter{
				others("to"), parameter.Duration("extra", "always, 20ms without it"), parameter.Duration("jitter", "on average, on top"),
			},
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				drawPair(d, c, f, "to")
				f.With.Set("extra", dice.Pick(d, "extra", []time.Duration{0, 2 * time.Millisecond, 20 * time.Millisecond, 200 * time.Millisecond, time.Second}))
				f.With.Set("jitter", dice.Pick(d, "jitter", []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond}))
			},
			Excuses: func(c Cast, f Fault) []string {
				if f.With.Duration("extra", extra)+f.With.Duration("jitter", 0) <= bearable {
					return slashed(f.On, "network")
				}
				return slices.Concat(f.On, f.farSide(c))
			},
			Begin: func(b *Backstage, f Fault) func() {
				return b.links(f.On, f.farSide(b.Cast), func(from, to string) func() {
					return together([]func(){
						b.Network.Slow(from, to, f.With.Duration("extra", extra), f.With.Duration("jitter", 0)),
						b.Network.Slow(to, from, f.With.Duration("extra", extra), f.With.Duration("jitter", 0)),
					})
				})
			},
		},
		{
			Name: "loss", Text: "a share of the packets between some machines and some others is lost, and sent again",
			Weight: 5, Least: time.Second, Most: 12 * time.Second, On: anybody,
			Parameters: []parameter.Parameter{others("to"), parameter.Share("share", "0.1 without it")},
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				drawPair(d, c, f, "to")
				f.With.Set("share", dice.Pick(d, "share", []string{"0.01", "0.1", "0.3"}))
			},
			Excuses: func(c Cast, f Fault) []string { return slices.Concat(f.On, f.farSide(c)) },
			Begin: func(b *Backstage, f Fault) func() {
				return b.links(f.On, f.farSide(b.Cast), func(from, to string) func() {
					return together([]func(){b.Network.Lose(from, to, f.With.Share("share", 0.1)), b.Network.Lose(to, from, f.With.Share("share", 0.1))})
				})
			},
		},
		{
			Name: "break", Text: "connections between some machines and some others break, again and again",
			Weight: 5, Least: 500 * time.Millisecond, Most: 6 * time.Second, On: anybody,
			Parameters: []parameter.Parameter{others("to"), parameter.Duration("every", "once without it")},
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				if drawPair(d, c, f, "to"); d.Chance("again", 40) {
					f.With.Set("every", d.Time("every", 300*time.Millisecond, 3*time.Second))
				}
			},
			Excuses: func(c Cast, f Fault) []string { return fewer(c, f.On, f.farSide(c)) },
			Begin: func(b *Backstage, f Fault) func() {
				return b.again(f.With.Duration("every", f.For+1), func() {
					b.links(f.On, f.farSide(b.Cast), func(from, to string) func() {
						b.Network.Break(from, to)
						return func() {}
					})
				})
			},
		},
	}
}

const (
	// extra is how much longer messages take where nothing else is said.
	extra = 20 * time.Millisecond
	// bearable is what nobody may notice.
	bearable = 5 * time.Millisecond
)

// farSide are those at the other ends of the links: all others where nobody is named.
func (f Fault) farSide(c Cast) []string {
	if f.With["to"] == "" {
		return without(c.All(), f.On)
	}
	return f.others(c, "to")
}

// sever cuts all links between two sets, both ways.
func (b *Backstage) sever(these, those []string) (heal func()) {
	return together([]func(){b.links(these, those, b.Network.Cut), b.links(those, these, b.Network.Cut)})
}

// links does something to all links from one set to another.
func (b *Backstage) links(from, to []string, begin func(from, to string) (end func())) (end func()) {
	var ends []func()
	for _, x := range from {
		for _, y := range to {
			if x != y {
				ends = append(ends, begin(b.Cast.machine(x), b.Cast.machine(y)))
			}
		}
	}
	return together(ends)
}

// machine is where somebody is.
func (c Cast) machine(name string) string {
	if slices.Contains(c.Drivers, name) {
		return start.Driver(name)
	}
	return name
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(n string) bool { return slices.Contains(some, n) })
}

func common(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(n string) bool { return !slices.Contains(some, n) })
}

// slashed names something of machines, which excuses nobody.
func slashed(names []string, what string) (out []string) {
	for _, name := range names {
		out = append(out, name+"/"+what)
	}
	return out
}
