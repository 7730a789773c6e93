// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"time"

	"fairlead.io/fairlead/sim/disk"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// diskKinds are what befalls disks that stay where they are.
func diskKinds() []Kind {
	return []Kind{
		{
			Name: "disk-full", Text: "disks have no room left, until somebody makes some at the end",
			Weight: 4, Least: 500 * time.Millisecond, Most: 10 * time.Second,
			On: processes, Draw: drawVictims, Excuses: onThem,
			Begin: func(b *Backstage, f Fault) func() {
				return each(f.On, func(name string) func() {
					d := b.Disk(name)
					return b.share("full", name, func(string) { d.Fill() }, func(string) { d.Free() })
				})
			},
		},
		{
			Name: "disk-slow", Text: "each sync of a disk takes longer",
			Weight: 5, Least: time.Second, Most: 12 * time.Second, On: processes, Excuses: onThem,
			Parameters: []parameter.Parameter{parameter.Duration("extra", "on average, 50ms without it")},
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				f.On = victims(d, c)
				f.With.Set("extra", dice.Pick(d, "extra", []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second}))
			},
			Begin: slowDisks,
		},
		{
			Name: "disk-hang", Text: "writes of members' logs neither succeed nor fail, while all else of the process goes on",
			Share: 8, Least: time.Second, Most: 20 * time.Second, On: members, Excuses: onThem,
			Draw: func(d dice.Dice, c Cast, f *Fault) { f.On = minority(d, c) },
			Begin: func(b *Backstage, f Fault) func() {
				return each(f.On, func(name string) func() {
					d := b.Disk(name)
					return b.share("hang", name, func(string) { d.Hang(start.LogFile) }, func(string) { d.Recover() })
				})
			},
		},
		{
			Name: "disk-error", Text: "some operations of disks fail with an I/O error",
			Weight: 4, Least: time.Second, Most: 6 * time.Second, On: processes, Excuses: onThem,
			Parameters: []parameter.Parameter{
				parameter.OneOf("operation", "write without it", operations()...),
				parameter.Number("times", "how many, 1 without it", 1, 1_000_000),
			},
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				f.On = victims(d, c)
				f.With.Set("operation", dice.Pick(d, "operation", operations()))
				f.With.Set("times", dice.Pick(d, "times", []int{1, 2, 10, 1_000_000}))
			},
			Begin: func(b *Backstage, f Fault) func() {
				return each(f.On, func(name string) func() {
					op := disk.OpWrite
					if f.With["operation"] != "" {
						op = disk.Op(f.With["operation"])
					}
					d := b.Disk(name)
					d.Fail(op, f.With.Number("times", 1))
					return func() { d.Fail(op, 0) }
				})
			},
		},
	}
}

func operations() (out []string) {
	for _, op := range []disk.Op{disk.OpWrite, disk.OpSync, disk.OpRename, disk.OpCreate, disk.OpOpen, disk.OpRead, disk.OpRemove} {
		out = append(out, string(op))
	}
	return out
}

// syncTime is what a sync takes on a healthy disk.
const syncTime = 100 * time.Microsecond

// slowDisks has the delays of several faults add up. A disk that is well again also ends what it was slow at.
func slowDisks(b *Backstage, f Fault) func() {
	r := b.random(f)
	return each(f.On, func(name string) func() {
		end := b.add("sync", name, f.With.Duration("extra", 50*time.Millisecond))
		b.slowUntil[name] = max(b.slowUntil[name], b.World.Now()+f.For)
		b.Disk(name).SyncTime = func() time.Duration {
			drawn := time.Duration(r.ExpFloat64() * float64(b.sum("sync", name)))
			return syncTime + min(drawn, max(0, b.slowUntil[name]-b.World.Now()))
		}
		return func() {
			if end(); b.sum("sync", name) == 0 {
				b.Disk(name).SyncTime = nil
			}
		}
	})
}
