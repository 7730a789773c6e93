// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"time"

	"fairlead.io/fairlead/sim/fabric"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// speakerKinds are what befalls the processes of members' BGP speakers. A member that lost its speaker is excused from nothing: package check says
// what that may cost (S21).
func speakerKinds() []Kind {
	return []Kind{
		{
			Name: "speaker-kill", Text: "the processes of members' BGP speakers are killed, and started again by the members themselves",
			Share: 20, Least: time.Second, Most: 12 * time.Second, On: members,
			Parameters: []parameter.Parameter{parameter.Duration("every", "once without it")},
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				f.On = d.Some("members", c.Members, d.From("how many", 1, len(c.Members)))
				if d.Chance("again", 50) {
					f.With.Set("every", d.Time("every", 100*time.Millisecond, 4*time.Second))
				}
			},
			Excuses: func(_ Cast, f Fault) []string { return slashed(f.On, "speaker") },
			Begin: func(b *Backstage, f Fault) func() {
				return b.again(f.With.Duration("every", f.For+1), func() {
					for _, name := range f.On {
						b.KillSpeaker(name)
					}
				})
			},
		},
		{
			Name: "confusing-switch", Text: "the libraries of members' BGP speakers lose count of what they told switches, and take none of it back",
			Share: 12, Least: time.Second, Most: 3 * time.Second, On: switches, Excuses: onThem,
			Draw: func(d dice.Dice, c Cast, f *Fault) { f.On = d.Some("switches", c.Switches, 1) },
			Begin: func(b *Backstage, f Fault) func() {
				for _, name := range f.On {
					b.device(name).Confuse()
				}
				return func() {}
			},
		},
		{
			Name: "hostile-switch", Text: "switches send every BGP speaker what it dies of, whenever it has a session with them, or opens one",
			Share: 12, Least: time.Second, Most: 10 * time.Second, On: switches, Excuses: onThem,
			Parameters: []parameter.Parameter{parameter.OneOf("when", "established without it", "established", "open")},
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				f.On = d.Some("switches", c.Switches, 1)
				f.With.Set("when", dice.Pick(d, "when", []string{"established", "established", "open"}))
			},
			Begin: func(b *Backstage, f Fault) func() {
				how := fabric.HostileUp
				if f.With["when"] == "open" {
					how = fabric.HostileOpen
				}
				return each(f.On, func(name string) func() {
					return b.share("hostile", name, func(string) { b.device(name).Hostile(how) }, func(string) { b.device(name).Hostile(fabric.Peaceful) })
				})
			},
		},
	}
}
