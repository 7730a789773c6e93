// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"slices"
	"time"

	"fairlead.io/fairlead/sim/client"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// rescueKinds are what operators do when the record is lost, or wrong. What was agreed on in between is gone, also for
// those outside who were told of it.
func rescueKinds() []Kind {
	return []Kind{
		{
			Name: "restore", Text: "an operator makes a backup of the record and restores it, 12s before the end or sooner",
			Share: 80, Least: 8 * time.Second, Most: 20 * time.Second, Newest: true, Driverless: true, Begin: restore,
			Parameters: append(inside(restorePoints...),
				parameter.OneOf("twice", "whether it is restored once more, as soon as he hears that it was", "yes"),
				parameter.OneOf("asks", "former: whom he has hand over leadership just before", "former"),
			),
			Draw: func(d dice.Dice, _ Cast, f *Fault) {
				drawInside(d, f, 60, restorePoints...)
				if d.Chance("twice", 25) {
					f.With.Set("twice", "yes")
				}
				if d.Chance("former", 25) {
					f.With.Set("asks", "former")
				}
			},
			Excuses: func(Cast, Fault) []string { return []string{"group/record"} },
		},
		{
			Name: "recover", Text: "members lose their disks for good; halfway an operator makes a group of one of the last member, and everybody else joins it with an empty disk",
			Share: 20, Least: 10 * time.Second, Most: 20 * time.Second, On: members, Loses: true, Rescued: true, Newest: true, Driverless: true,
			Parameters: append(inside(recoverPoints...),
				parameter.Machines("last", "the member that goes on, the first that did not lose its disk without it"),
				parameter.OneOf("twice", "whether he makes one once more, as soon as it is made", "yes"),
			),
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				f.On = d.Some("members", c.Members, len(c.Members)/2+1)
				if d.Chance("twice", 30) {
					f.With.Set("twice", "yes")
				}
				drawInside(d, f, 50, recoverPoints...)
			},
			Excuses: func(c Cast, _ Fault) []string { return c.Members },
			Begin:   recovery,
		},
	}
}

// restorePoints are those inside a restore: the backup is made; a member is asked to restore it; the leader begins to bring it to the others; the
// first member has taken it in; the operator hears that it was restored.
var restorePoints = []string{"backup", "asked", "begun", "taken", "answered"}

// restoredBefore is how long before its end a restore is begun, if it is as long as that.
const restoredBefore = 12 * time.Second

func restore(b *Backstage, f Fault) func() {
	r := &restoration{act: b.act(f), left: 1}
	if f.With["twice"] == "yes" {
		r.left = 2
	}
	r.heard = r.hear
	b.Group().Operator().Backup(func(data []byte, _ error) {
		r.backup = data
		r.at("backup")
	})
	later := b.World.After(max(f.For/4, f.For-restoredBefore), func() {
		former := b.leader
		if f.With["asks"] != "former" || former == "" {
			r.again("")
			return
		}
		b.Group().Operator().Transfer("", func(error) { r.again(former) })
	})
	return func() {
		later.Stop()
		r.done()
	}
}

// restoration is a backup, and how often it is still to be restored.
type restoration struct {
	*act
	backup []byte
	left   int
}

// again restores the backup, if there is one, and tries again as long as that surely was not done and the act is not over.
func (r *restoration) again(first string) {
	if r.over || r.left == 0 || r.backup == nil {
		return
	}
	r.at("asked")
	r.Group().Operator().Restore(first, r.backup, func(err error) {
		switch {
		case err == nil:
			r.left--
			r.at("answered")
			r.again(first)
		case client.Sure(err):
			r.World.After(time.Second, func() { r.again("") })
		}
	})
}

// hear finds the points that only members see.
func (r *restoration) hear(e event.Stamped) {
	switch x := e.Event.(type) {
	case event.Log:
		if x.Text == "restoring a backup" {
			r.at("begun")
		}
	case event.Restored:
		if len(x.Snapshot) > 0 && x.Index > r.applied {
			r.at("taken")
		}
	}
}

// recoverPoints are those inside of a recovery: the last member leads as a group of one; another one has taken something in.
var recoverPoints = []string{"recovered", "joined"}

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
	a := b.act(f)
	b.World.After(f.For/2, func() {
		ended := b.Group().Operator().Rescues("recover", last)
		for _, name := range rest {
			if name != last {
				lose(name)
			}
		}
		release := b.Hold(last)
		b.Recover(last)
		if f.With["twice"] == "yes" {
			b.Recover(last)
		}
		release()
		together(releases)()
		ended(nil)
		a.heard = func(e event.Stamped) {
			switch x := e.Event.(type) {
			case event.Leading:
				if x.On && x.Process == last {
					a.at("recovered")
				}
			case event.Applied:
				if x.Process != last {
					a.at("joined")
				}
			}
		}
	})
	return a.done
}
