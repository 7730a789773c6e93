// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"time"

	"fairlead.io/fairlead/sim/scenario/dice"
)

// powerKinds are what befalls machines as a whole.
func powerKinds() []Kind {
	return []Kind{
		{
			Name: "power", Text: "machines lose power, and what was not synced; they boot at the end",
			Weight: 8, Least: time.Second, Most: 15 * time.Second,
			On: processes, Excuses: onThem, Begin: darken,
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				if f.On = minority(d, c); d.Chance("site", 8) {
					f.On = c.Machines()
				}
			},
		},
		{
			Name: "node-death", Text: "nodes die with all that runs on them, and boot at the end",
			Weight: 10, Least: 2 * time.Second, Most: 20 * time.Second,
			On: Who{Roles: []Role{Node}, Least: 1}, Excuses: onThem, Begin: darken,
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				f.On = d.Some("nodes", c.Nodes, d.From("how many", 1, max(1, len(c.Nodes)/2)))
			},
		},
	}
}

func darken(b *Backstage, f Fault) func() {
	return each(f.On, func(machine string) func() { return b.share("power", machine, b.PowerOff, b.PowerOn) })
}
