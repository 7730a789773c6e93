// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"maps"
	"slices"
	"time"

	"fairlead.io/fairlead/sim/disk"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// lossKinds are what takes a machine its disk for good. A member whose disk is empty comes back as a new server of the
// same name, which the group admits in place of the old one: that takes a quorum of those who kept theirs.
func lossKinds() []Kind {
	return []Kind{
		{
			Name: "lost-disk", Text: "a disk is lost; the process starts again with an empty one at the end",
			Weight: 4, Least: time.Second, Most: 8 * time.Second, On: processes, Loses: true, Excuses: onThem, Draw: drawOne,
			Begin: func(b *Backstage, f Fault) func() {
				return each(f.On, func(name string) func() {
					start := b.wipe(name)
					return func() { start(); b.begins(f, name) }
				})
			},
		},
		{
			Name: "old-disk", Text: "halfway, a machine gets its disk back as it was at the beginning, and an empty one at the end",
			Weight: 3, Least: 4 * time.Second, Most: 10 * time.Second, On: processes, Loses: true, Forgets: true, Excuses: onThem,
			Parameters: []parameter.Parameter{parameter.OneOf("boots", "whether the machine boots, too", "yes")},
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				if drawOne(d, c, f); d.Chance("boots", 50) {
					f.With.Set("boots", "yes")
				}
			},
			Begin: func(b *Backstage, f Fault) func() {
				return each(f.On, func(name string) func() {
					old := b.Disk(name).Clone()
					halfway := b.World.After(f.For/2, func() {
						var release func()
						if f.With["boots"] == "yes" {
							release = b.share("power", name, b.PowerOff, b.PowerOn)
						} else {
							release = b.Hold(name)
						}
						b.putBack(name, old)
						release()
					})
					return func() {
						halfway.Stop()
						b.renew(f, name)
					}
				})
			},
		},
		{
			Name: "flip", Text: "bits of a disk flip, and the process starts again; it gets an empty disk at the end",
			Weight: 3, Least: 3 * time.Second, Most: 8 * time.Second, On: processes, Loses: true, Excuses: onThem, Draw: drawOne,
			Begin: func(b *Backstage, f Fault) func() {
				r := b.random(f)
				return each(f.On, func(name string) func() {
					release := b.Hold(name)
					b.Disk(name).Flip(r)
					release()
					return func() { b.renew(f, name) }
				})
			},
		},
	}
}

func drawOne(d dice.Dice, c Cast, f *Fault) {
	if f.On = d.Some("members", c.Members, 1); d.Chance("node", 40) && len(c.Nodes) > 0 {
		f.On = d.Some("nodes", c.Nodes, 1)
	}
}

// putBack gives a machine, whose process must not run, its disk as it was. What is in its memory is not on it.
func (b *Backstage) putBack(name string, old *disk.Disk) {
	now := b.Disk(name).Clone()
	_ = b.Disk(name).Restore(old, "/") // a whole disk always can be
	b.Disk(name).Empty(start.RunDir)
	_ = b.Disk(name).Restore(now, start.RunDir) // an agent has none
	b.World.Publish(event.Wiped{Machine: name, Old: true})
}

// wipe stops a process and empties its disk. The function that it returns starts it.
func (b *Backstage) wipe(name string) (release func()) {
	release = b.Hold(name)
	b.Disk(name).Wipe()
	b.World.Publish(event.Wiped{Machine: name})
	return release
}

// renew starts a process anew with an empty disk.
func (b *Backstage) renew(f Fault, name string) {
	b.wipe(name)()
	b.begins(f, name)
}

// begins excuses an agent that starts with an empty disk until a second after it carried out what a member told it: where packets to
// an address went that was leaving was in its memory alone. Where no member serves it that may be long after; once all
// faults are over it has five seconds.
func (b *Backstage) begins(f Fault, name string) {
	if !slices.Contains(b.Cast.Nodes, name) {
		return
	}
	over := b.frame(f.Kind, "the agent knows nothing of what was leaving", []string{name})
	if before := b.newcomers[name]; before != nil {
		before() // it lost its disk once more
	}
	b.newcomers[name] = over
}

// hear ends the excuses of agents that have caught up, or had the time to, and tells acts of what happens.
func (b *Backstage) hear(e event.Stamped) {
	switch x := e.Event.(type) {
	case event.Acted:
		b.World.After(time.Second, b.caughtUp(x.Process))
	case event.Calm:
		for _, name := range slices.Sorted(maps.Keys(b.newcomers)) {
			b.World.After(5*time.Second, b.caughtUp(name))
		}
	case event.Leading:
		if x.On {
			b.leader = x.Process
		} else if b.leader == x.Process {
			b.leader = ""
		}
	}
	for _, a := range b.acts {
		if a.heard != nil {
			a.heard(e)
		}
	}
	if x, ok := e.Event.(event.Applied); ok {
		b.applied = max(b.applied, x.Index)
	}
}

// caughtUp gives what ends the excuse that an agent has now; one that it gets later is not ended by it.
func (b *Backstage) caughtUp(name string) func() {
	over := b.newcomers[name]
	if over == nil {
		return func() {}
	}
	delete(b.newcomers, name)
	return over
}
