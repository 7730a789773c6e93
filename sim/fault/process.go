// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"time"

	"fairlead.io/fairlead/sim/scenario/dice"
)

var processes = Who{Roles: []Role{Member, Node}, Least: 1}

// processKinds are what befalls processes, while their machines go on.
func processKinds() []Kind {
	return []Kind{{
		Name: "kill", Text: "processes are killed (kill -9), and started again from their disks at the end",
		Weight: 12, Least: 100 * time.Millisecond, Most: 12 * time.Second,
		On: processes, Draw: drawVictims, Excuses: onThem,
		Begin: func(b *Backstage, f Fault) func() { return each(f.On, b.Hold) },
	}}
}

// drawVictims draws one process, seldom more, and very seldom all members.
func drawVictims(d dice.Dice, c Cast, f *Fault) { f.On = victims(d, c) }

func victims(d dice.Dice, c Cast) []string {
	switch {
	case d.Chance("node", 40) && len(c.Nodes) > 0:
		return d.Some("nodes", c.Nodes, d.From("how many", 1, max(1, len(c.Nodes)/3)))
	case d.Chance("many", 8):
		return d.Some("members", c.Members, d.From("how many", (len(c.Members)+1)/2, len(c.Members)))
	}
	return d.Some("members", c.Members, d.From("how many", 1, max(1, (len(c.Members)-1)/2)))
}
