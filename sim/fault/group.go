// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"sync"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

var members = Who{Roles: []Role{Member}, Least: 1}

// groupKinds are what operators do to the group.
func groupKinds() []Kind {
	return []Kind{
		{
			Name: "transfer", Text: "an operator hands leadership to a member",
			Weight: 5, Least: time.Second, Most: 6 * time.Second, On: members, Begin: transfer,
			Parameters: append(inside(transferPoints...), parameter.OneOf("twice", "whether he asks for it twice", "yes")),
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				if f.On = d.Some("members", c.Members, 1); d.Chance("twice", 30) {
					f.With.Set("twice", "yes")
				}
				drawInside(d, f, 50, transferPoints...)
			},
			Excuses: func(_ Cast, f Fault) []string { return slashed(f.On, "leadership") },
		},
		{
			Name: "snapshot", Text: "an operator has the leader shorten its log",
			Weight: 4, Least: time.Second, Most: 2 * time.Second, On: Who{},
			Draw:    func(dice.Dice, Cast, *Fault) {},
			Excuses: func(Cast, Fault) []string { return []string{"group/snapshot"} },
			Begin: func(b *Backstage, _ Fault) func() {
				b.Group().Operator().Snapshot(nil)
				return func() {}
			},
		},
		{
			Name: "remove", Text: "an operator takes a member out of the group, and adds it again at the end, when it starts with an empty disk",
			Weight: 3, Least: 4 * time.Second, Most: 12 * time.Second, On: members, Loses: true, Excuses: onThem, Begin: remove,
			Parameters: inside(removePoints...),
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				f.On = d.Some("members", c.Members, 1)
				drawInside(d, f, 20, removePoints...)
			},
		},
		{
			Name: "rolling-restart", Text: "processes are restarted one after the other",
			Weight: 4, Least: 6 * time.Second, Most: 25 * time.Second, On: processes, Begin: rollingRestart,
			Parameters: []parameter.Parameter{parameter.Duration("pause", "how long each is away, 500ms without it")},
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				if f.On = c.Members; d.Chance("nodes", 40) {
					f.On = c.Nodes
				}
				f.With.Set("pause", d.Time("pause", 100*time.Millisecond, time.Second))
			},
			Excuses: func(_ Cast, f Fault) []string { return slashed(f.On, "restart") }, // each for itself, see below
		},
	}
}

// transferPoints are those inside a transfer: a member is asked for it; the leader leads no more; another one leads; the operator hears that it is done.
var transferPoints = []string{"asked", "left", "taken", "answered"}

func transfer(b *Backstage, f Fault) func() {
	a, former := b.act(f), b.leader
	a.heard = func(e event.Stamped) {
		switch x, ok := e.Event.(event.Leading); {
		case !ok:
		case x.On && x.Process != former:
			a.at("taken")
		case !x.On && x.Process == former:
			a.at("left")
		}
	}
	ask := func() {
		b.Group().Operator().Transfer(f.On[0], func(err error) {
			if err == nil {
				a.at("answered")
			}
		})
	}
	ask()
	if f.With["twice"] == "yes" {
		ask()
	}
	a.at("asked")
	return a.done
}

// removePoints are those inside a removal: a member is asked for it; the first one has applied it; the operator hears that it is done; he hears that
// it is added again, halfway then.
var removePoints = []string{"asked", "removed", "answered", "added"}

func remove(b *Backstage, f Fault) func() {
	a := b.act(f)
	a.heard = func(e event.Stamped) {
		if _, ok := e.Event.(event.Applied); !ok || b.Record() == nil {
			return
		}
		if _, removed := b.Record().Revoked(fsm.RevokedMembership, f.On[0]); removed {
			a.at("removed")
		}
	}
	for _, name := range f.On {
		b.Group().Operator().Remove(name, false, func(err error) {
			if err == nil {
				a.at("answered")
			}
		})
	}
	a.at("asked")
	readmit := sync.OnceFunc(func() {
		for _, name := range f.On {
			b.renew(f, name)
			b.Group().Operator().Readmit(name, name+":"+start.RaftPort, func(err error) {
				if err == nil {
					a.at("added")
				}
			})
		}
	})
	if f.With["inside"] == "added" {
		b.World.After(f.For/2, readmit)
	}
	return func() {
		a.done()
		readmit()
	}
}

// inTurn holds one after the other for a while, each in a frame of its own: who has not come to his turn, or has had it,
// is expected to do his work. Then is called while nobody has a turn, or nil.
func inTurn(b *Backstage, f Fault, while func(name string)) func() {
	return inTurns(b, f, f.For/time.Duration(len(f.On)), while)
}

// inTurns is inTurn with a given time for each.
func inTurns(b *Backstage, f Fault, step time.Duration, while func(name string)) func() {
	pause := min(f.With.Duration("pause", 500*time.Millisecond), step/2)
	for i, name := range f.On {
		b.World.After(time.Duration(i)*step, func() {
			over := b.frame(f.Kind, f.Kind+" of "+name, []string{name})
			release := b.Hold(name)
			while(name)
			b.World.After(pause, func() {
				release()
				b.World.After(step/4, over) // it has to catch up
			})
		})
	}
	return func() {}
}

func rollingRestart(b *Backstage, f Fault) func() { return inTurn(b, f, func(string) {}) }
