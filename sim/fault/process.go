// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"time"

	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// processes are those who have one.
var processes = Who{Roles: []Role{Member, Node}, Least: 1}

// processKinds are what befalls processes, while their machines go on.
func processKinds() []Kind {
	return []Kind{
		{
			Name: "kill", Text: "processes are killed (kill -9), and started again from their disks at the end",
			Weight: 10, Least: 100 * time.Millisecond, Most: 12 * time.Second,
			On: processes, Draw: drawVictims, Excuses: onThem,
			Begin: func(b *Backstage, f Fault) func() { return each(f.On, b.Hold) },
		},
		{
			Name: "fuse", Text: "processes are killed in the middle of their work, and started again at the end",
			Weight: 8, Least: 500 * time.Millisecond, Most: 6 * time.Second, On: processes, Excuses: onThem,
			Parameters: []parameter.Parameter{parameter.Number("calls", "of the kernel until then, 100 without it", 1, 1_000_000)},
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				f.On = victims(d, c)
				f.With.Set("calls", d.From("calls", 1, dice.Pick(d, "order", []int{10, 100, 1000, 5000})))
			},
			Begin: func(b *Backstage, f Fault) func() {
				return each(f.On, func(name string) func() {
					b.Fuse(name, f.With.Number("calls", 100))
					return func() {
						b.Fuse(name, 0)
						b.Start(name)
					}
				})
			},
		},
		{
			Name: "freeze", Text: "processes are stopped (SIGSTOP), and go on at the end",
			Weight: 8, Least: 200 * time.Millisecond, Most: 12 * time.Second,
			On: processes, Draw: drawVictims, Excuses: onThem,
			Begin: func(b *Backstage, f Fault) func() {
				return each(f.On, func(name string) func() { return b.share("freeze", name, b.Freeze, b.Thaw) })
			},
		},
	}
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
	return minority(d, c)
}

// minority draws members without whom the others have a quorum; one if there is no such.
func minority(d dice.Dice, c Cast) []string {
	return d.Some("members", c.Members, d.From("how many", 1, max(1, (len(c.Members)-1)/2)))
}
