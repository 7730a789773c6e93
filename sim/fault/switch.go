// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"time"

	"fairlead.io/fairlead/sim/fabric"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

var switches = Who{Roles: []Role{Switch}, Least: 1}

// switchKinds are what befalls switches.
func switchKinds() []Kind {
	return []Kind{
		{
			Name: "switch-restart", Text: "switches lose all that they hold, and are on again at the end",
			Weight: 6, Least: time.Second, Most: 12 * time.Second, On: switches, Excuses: onThem,
			Parameters: []parameter.Parameter{parameter.OneOf("how", "power (nobody is told) without it", "power", "reload")},
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				f.On = d.Some("switches", c.Switches, 1)
				f.With.Set("how", dice.Pick(d, "how", []string{"reload", "power"}))
			},
			Begin: func(b *Backstage, f Fault) func() {
				return each(f.On, func(name string) func() {
					plug := func() {}
					if f.With["how"] != "reload" {
						b.Network.Power(name, false)
						plug = func() { b.Network.Power(name, true) }
					}
					up := b.share("switch", name, func(string) { b.device(name).Down() }, func(string) { b.device(name).Up() })
					return func() {
						up()
						plug()
					}
				})
			},
		},
		{
			Name: "switch-lag", Text: "what switches forward follows what they know late",
			Weight: 3, Least: 2 * time.Second, Most: 12 * time.Second, On: switches, Excuses: onThem,
			Parameters: []parameter.Parameter{parameter.Duration("by", "500ms without it")},
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				f.On = d.Some("switches", c.Switches, 1)
				f.With.Set("by", d.Time("by", 100*time.Millisecond, 3*time.Second))
			},
			Begin: func(b *Backstage, f Fault) func() {
				by := f.With.Duration("by", 500*time.Millisecond)
				return each(f.On, func(name string) func() {
					b.lag(name, by)
					return func() { b.lag(name, -by) }
				})
			},
		},
		{
			Name: "session-break", Text: "sessions of members with switches break, and come back by themselves",
			Weight: 6, Least: time.Second, Most: 8 * time.Second, On: Who{Roles: []Role{Member}, Least: 1},
			Parameters: []parameter.Parameter{others("to"), parameter.Duration("every", "once without it")},
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				f.On = d.Some("members", c.Members, d.From("how many", 1, len(c.Members)))
				f.With.Set("to", dice.Pick(d, "to", append([]string{"switches"}, c.Switches...)))
				if d.Chance("again", 30) {
					f.With.Set("every", d.Time("every", time.Second, 3*time.Second))
				}
			},
			Excuses: func(c Cast, f Fault) []string { return f.sessions(c) },
			Begin: func(b *Backstage, f Fault) func() {
				return b.again(f.With.Duration("every", f.For+1), func() {
					b.links(f.On, f.sessions(b.Cast), func(from, to string) func() {
						b.Network.Break(from, to)
						return func() {}
					})
				})
			},
		},
	}
}

// sessions are the switches with which sessions break: all where none is named.
func (f Fault) sessions(c Cast) []string {
	if f.With["to"] == "" {
		return c.Switches
	}
	return common(f.others(c, "to"), c.Switches)
}

// device finds a switch.
func (b *Backstage) device(name string) *fabric.Switch {
	for _, s := range b.Switches() {
		if s.Name() == name {
			return s
		}
	}
	return nil
}

// lag has a switch follow later by so much.
func (b *Backstage) lag(name string, by time.Duration) {
	b.device(name).Lag(by)
}
