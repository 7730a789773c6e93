// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"cmp"
	"slices"
	"time"

	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// What operators do takes a while, and something may befall a member in the middle. At which point is a parameter of the act, and so are what
// befalls whom and for how long. It is a fault of its own then, with its own frame: whoever is hit is excused as he is elsewhere, and nobody else.

// hits are the kinds of faults that may befall somebody inside an act.
var hits = []string{"kill", "fuse", "power", "partition", "freeze", "disk-hang", "disk-slow"}

// hitFor is how long one lasts that does not say so.
const hitFor = 3 * time.Second

// inside are the parameters of acts with such points.
func inside(points ...string) []parameter.Parameter {
	return []parameter.Parameter{
		parameter.OneOf("inside", "at which point of it something befalls a member; nothing does without it", points...),
		parameter.OneOf("hit", "what, kill without it", hits...),
		parameter.OneOf("whom", "the member that leads then, without it, or one that follows", "leader", "follower"),
		parameter.Duration("lasts", "for how long at most, 3s without it"),
		parameter.Number("calls", "of the kernel until a fuse kills, 100 without it", 1, 1_000_000),
	}
}

// drawInside draws what befalls somebody inside an act, in some of a hundred.
func drawInside(d dice.Dice, f *Fault, percent int, points ...string) {
	if !d.Chance("inside", percent) {
		return
	}
	f.With.Set("inside", dice.Pick(d, "point", points))
	f.With.Set("hit", dice.Pick(d, "hit", hits))
	f.With.Set("whom", dice.Pick(d, "whom", []string{"leader", "leader", "follower"}))
	f.With.Set("lasts", d.Time("lasts", 500*time.Millisecond, 6*time.Second))
	if f.With["hit"] == "fuse" {
		f.With.Set("calls", d.From("calls", 1, dice.Pick(d, "order", []int{10, 100, 1000})))
	}
}

// Strikes tells how many members a fault befalls that it does not name.
func (f Fault) Strikes() int {
	if f.With["inside"] == "" {
		return 0
	}
	return 1
}

// act is something that an operator does, and what befalls somebody inside it.
type act struct {
	*Backstage
	f      Fault
	heard  func(event.Stamped) // is told of everything until it is over; nil for nothing
	struck bool
	over   bool
	end    func() // what befell somebody, which goes on; nil if nothing does
}

// act begins one.
func (b *Backstage) act(f Fault) *act {
	a := &act{Backstage: b, f: f}
	b.acts = append(b.acts, a)
	return a
}

// at says that the act has come to a point.
func (a *act) at(point string) {
	if a.f.With["inside"] == point && !a.struck && !a.over {
		a.struck = true
		a.World.After(0, a.strike) // whoever is to be hit may be in the middle of saying so
	}
}

// strike has somebody befall what is to be.
func (a *act) strike() {
	whom := a.whom()
	if a.over || whom == "" {
		return
	}
	hit := Fault{Kind: cmp.Or(a.f.With["hit"], "kill"), At: a.World.Now(), For: min(a.f.With.Duration("lasts", hitFor), a.f.End()-a.World.Now()), On: []string{whom}}
	if hit.Kind == "fuse" {
		hit.With.Set("calls", a.f.With.Number("calls", 100))
	}
	end, err := a.Begin(hit)
	if err != nil {
		a.World.Fail(err)
		return
	}
	a.end = end
	a.World.After(hit.For, a.ended)
}

// ended ends what befell somebody, once.
func (a *act) ended() {
	if a.end != nil {
		end := a.end
		a.end = nil
		end()
	}
}

// done ends the act.
func (a *act) done() {
	a.over = true
	a.acts = slices.DeleteFunc(a.acts, func(other *act) bool { return other == a })
	a.ended()
}

// whom is the member that is hit; empty where there is none.
func (a *act) whom() string {
	if a.f.With["whom"] != "follower" {
		return a.leader
	}
	followers := slices.DeleteFunc(slices.Clone(a.Cast.Members), func(m string) bool { return m == a.leader || !a.Running(m) })
	if len(followers) == 0 {
		return ""
	}
	return followers[a.random(a.f).IntN(len(followers))]
}
