// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"slices"
	"time"

	"fairlead.io/fairlead/sim/client"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// rescueKinds are what operators do when the record is lost, or wrong. What was agreed on in between is gone, also for
// those outside who were told of it; therefore they are never drawn.
func rescueKinds() []Kind {
	return []Kind{
		{
			Name: "restore", Text: "an operator makes a backup of the record and restores it 12s before the end; whoever was away then comes back with an empty disk",
			Least: 16 * time.Second, Most: 25 * time.Second,
			Draw:    func(dice.Dice, Cast, *Fault) {},
			Excuses: func(Cast, Fault) []string { return []string{"group/record"} }, // see restore
			Begin:   restore,
		},
		{
			Name: "recover", Text: "members lose their disks for good; halfway an operator makes a group of one of the last member, and everybody else joins it with an empty disk",
			Least: 10 * time.Second, Most: 20 * time.Second, On: members, Loses: true,
			Parameters: []parameter.Parameter{parameter.Machines("last", "the member that goes on, the first that did not lose its disk without it")},
			Draw:       func(d dice.Dice, c Cast, f *Fault) { f.On = d.Some("members", c.Members, len(c.Members)/2+1) },
			Excuses:    func(c Cast, _ Fault) []string { return c.Members },
			Begin:      recovery,
		},
	}
}

// anew is how long after a restore everybody has to come to terms with it: for ten seconds members do not name the new
// epoch yet, and new connections of agents that know it already are refused. Here every call is one.
const anew = 12 * time.Second

func restore(b *Backstage, f Fault) func() {
	var backup []byte
	operator := b.Group().Operator()
	operator.Backup(func(data []byte, _ error) { backup = data })
	var over func()
	var away []string
	later := b.World.After(max(f.For/4, f.For-anew), func() {
		if backup == nil {
			return // nobody could make one
		}
		over = b.frame(f.Kind, "the record is restored", b.Cast.Members)
		away = slices.DeleteFunc(slices.Clone(b.Cast.Members), b.Running)
		b.restoreNow(operator, backup)
	})
	return func() {
		later.Stop()
		for _, name := range away {
			b.renew(f, name)
		}
		if over != nil {
			over()
		}
	}
}

// restoreNow restores a backup, and tries again as long as that surely was not done.
func (b *Backstage) restoreNow(operator *client.Operator, backup []byte) {
	operator.Restore(backup, func(err error) {
		if err != nil && client.Sure(err) {
			b.World.After(time.Second, func() { b.restoreNow(operator, backup) })
		}
	})
}

func recovery(b *Backstage, f Fault) func() {
	var releases []func()
	lose := func(name string) { releases = append(releases, b.wipe(name)) }
	for _, name := range f.On {
		lose(name)
	}
	rest := slices.DeleteFunc(slices.Clone(b.Cast.Members), func(name string) bool { return slices.Contains(f.On, name) })
	if len(rest) == 0 {
		return together(releases) // there is nothing to go on with: they found another group
	}
	last := rest[0]
	if chosen := f.With.Words("last"); len(chosen) > 0 && slices.Contains(rest, chosen[0]) {
		last = chosen[0]
	}
	b.World.After(f.For/2, func() {
		ended := b.Group().Operator().Rescues("recover", last)
		for _, name := range rest {
			if name != last {
				lose(name)
			}
		}
		release := b.Hold(last)
		b.Recover(last)
		release()
		together(releases)()
		ended(nil)
	})
	return func() {}
}
