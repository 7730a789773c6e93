// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"time"

	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// harmlessDrift is how much a clock may run wrong, in parts per million, without anybody taking harm.
const harmlessDrift = 10_000

// clockKinds are what befalls clocks.
func clockKinds() []Kind {
	return []Kind{
		{
			Name: "clock-step", Text: "the wall clock is set wrong, and right again at the end",
			Weight: 6, Least: time.Second, Most: 20 * time.Second, On: processes,
			Parameters: []parameter.Parameter{parameter.Duration("by", "such as -1h; 1m without it")},
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				f.On = d.Some("machines", c.Machines(), d.From("how many", 1, len(c.Machines())))
				by := dice.Pick(d, "by", []time.Duration{time.Second, time.Minute, time.Hour, 400 * 24 * time.Hour})
				if d.Chance("back", 50) {
					by = -by
				}
				f.With.Set("by", by)
			},
			Excuses: func(_ Cast, f Fault) []string { return slashed(f.On, "clock") }, // nothing may depend on it
			Begin: func(b *Backstage, f Fault) func() {
				by := f.With.Duration("by", time.Minute)
				return each(f.On, func(name string) func() {
					b.Clock(name).Step(by)
					return func() { b.Clock(name).Step(-by) }
				})
			},
		},
		{
			Name: "clock-drift", Text: "the clock runs too fast, or too slow",
			Weight: 4, Least: 3 * time.Second, Most: 25 * time.Second, On: processes,
			Parameters: []parameter.Parameter{parameter.Number("ppm", "parts per million that it gains, 1000 without it", -400_000, 400_000)},
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				f.On = victims(d, c)
				f.With.Set("ppm", dice.Pick(d, "ppm", []int{500, -500, 5_000, -5_000, 100_000, -100_000}))
			},
			Excuses: func(_ Cast, f Fault) []string {
				if ppm := f.With.Number("ppm", harmless); max(ppm, -ppm) <= harmlessDrift {
					return slashed(f.On, "clock")
				}
				return f.On
			},
			Begin: func(b *Backstage, f Fault) func() {
				return each(f.On, func(name string) func() {
					end := b.add("drift", name, time.Duration(f.With.Number("ppm", harmless)))
					b.drift(name)
					return func() {
						end()
						b.drift(name)
					}
				})
			},
		},
	}
}

// harmless is by how much a clock drifts where nothing is said.
const harmless = 1000

// drift sets a clock to what all faults together do to it, within what it can be set to.
func (b *Backstage) drift(name string) {
	b.Clock(name).Drift(min(max(b.Gains(name)+int(b.sum("drift", name)), -450_000), 450_000))
}
