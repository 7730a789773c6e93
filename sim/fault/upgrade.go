// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"slices"
	"sync"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// upgradeKinds are changes of release: to a newer one, whose format of the record an operator then makes everybody's, and
// back.
func upgradeKinds() []Kind {
	return []Kind{
		{
			Name: RollingUpgrade, Older: true, Text: "everybody begins with the older release; processes are restarted one after the other, as the newer one",
			Share: 10, Least: 15 * time.Second, Most: 30 * time.Second, On: processes, Begin: rollingUpgrade, Excuses: onTheWay,
			Parameters: append(inside(finalizePoints...),
				parameter.Duration("pause", "how long each is away, 500ms without it"),
				parameter.Machines("back", "who goes back to the older release for a while after its turn, and then forth again"),
				parameter.OneOf("finalize", "from when on an operator tries to raise the format of the record, until it is done; at the end without it", "end", "beginning", "never"),
			),
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				f.On = shuffled(d, c.Machines())
				f.With.Set("pause", d.Time("pause", 100*time.Millisecond, time.Second))
				if d.Chance("back", 40) {
					f.With.Set("back", dice.Pick(d, "who", c.Members))
				}
				if when := dice.Pick(d, "finalize", []string{"end", "end", "end", "end", "end", "end", "beginning", "beginning", "beginning", "never"}); when != "end" {
					f.With.Set("finalize", when)
				}
				drawInside(d, f, 40, finalizePoints...)
			},
		},
		{
			Name: "rolling-downgrade", Older: true, Text: "processes are restarted one after the other, as the older release: back from an upgrade that was not finalized",
			Least: 6 * time.Second, Most: 25 * time.Second, On: processes, Excuses: onTheWay,
			Parameters: []parameter.Parameter{parameter.Duration("pause", "how long each is away, 500ms without it")},
			Draw:       func(d dice.Dice, c Cast, f *Fault) { f.On = shuffled(d, c.Machines()) },
			Begin: func(b *Backstage, f Fault) func() {
				return inTurn(b, f, func(name string) { b.Install(name, start.Older) })
			},
		},
		{
			Name: "downgrade", Older: true, Text: "processes are started as the older release, which may not take part any more; at the end as what they were",
			Share: 10, Least: 2 * time.Second, Most: 8 * time.Second, On: processes, Draw: drawOne, Excuses: onThem,
			Begin: func(b *Backstage, f Fault) func() { return each(f.On, b.downgrade) },
		},
	}
}

// RollingUpgrade is the kind of fault in whose scenarios everybody begins with the older release.
const RollingUpgrade = "rolling-upgrade"

// Finalizes tells whether the group's record has the newest format when this fault is over.
func (f Fault) Finalizes() bool { return f.Kind == RollingUpgrade && f.With["finalize"] != "never" }

// onTheWay excuses nobody for all the time: each is away in his turn only (see inTurn).
func onTheWay(_ Cast, f Fault) []string { return slashed(f.On, "release") }

// shuffled draws an order.
func shuffled(d dice.Dice, names []string) []string {
	out := slices.Clone(names)
	for i := range out {
		j := d.From("order", i, len(out)-1)
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// downgrade restarts a process as the older release. The function that it returns restarts it as what it was.
func (b *Backstage) downgrade(name string) (end func()) {
	restart := func(on bool) func(string) {
		return func(string) {
			release := b.Hold(name)
			b.Downgrade(name, on)
			release()
		}
	}
	return b.share("release", name, restart(true), restart(false))
}

func rollingUpgrade(b *Backstage, f Fault) func() {
	turns := len(f.On)
	if f.With["back"] != "" {
		turns += 3 // whoever was last can go back and forth
	}
	if f.With["inside"] != "" {
		turns += 2 // for what befalls somebody while the format is raised
	}
	step := f.For / time.Duration(turns)
	inTurns(b, f, step, func(name string) {
		b.Install(name, start.Current)
		if slices.Contains(f.With.Words("back"), name) {
			b.World.After(step*7/4, func() { // between two turns
				over := b.frame("downgrade", "downgrade of "+name, []string{name})
				end := b.downgrade(name)
				b.World.After(step, func() {
					end()
					b.World.After(step/4, over)
				})
			})
		}
	})
	a := b.finalization(f)
	begin := sync.OnceFunc(a.finalize)
	switch {
	case f.With["finalize"] == "beginning":
		begin()
	case f.With["inside"] != "" && f.Finalizes():
		b.World.After(f.For-2*step, begin)
	}
	return func() {
		if f.Finalizes() {
			begin()
		}
		a.done()
	}
}

// finalizePoints are those inside of raising the format: a member is asked for it; the first one has applied it; the operator hears that it is done.
var finalizePoints = []string{"finalizing", "finalized", "answered"}

// finalization is an operator who raises the format of the record.
func (b *Backstage) finalization(f Fault) *act {
	a := b.act(f)
	a.heard = func(e event.Stamped) {
		if _, ok := e.Event.(event.Applied); ok && b.Record() != nil && b.Record().Group().Format == fsm.NewestFormat {
			a.at("finalized")
		}
	}
	return a
}

// finalize has him do it, again and again until it is done: a member may be away just now.
func (a *act) finalize() {
	a.at("finalizing")
	a.Group().Operator().Finalize(fsm.NewestFormat, func(err error) {
		if err != nil {
			a.World.After(time.Second, a.finalize)
			return
		}
		a.at("answered")
	})
}
