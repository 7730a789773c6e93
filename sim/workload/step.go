// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// Step is something that a user does: plain data.
type Step struct {
	At   time.Duration // since the beginning of the world
	Do   string        // the name of a Verb
	With parameter.Values
}

// String is one line for people.
func (s Step) String() string {
	if len(s.With) == 0 {
		return s.Do
	}
	return s.Do + " " + s.With.String()
}

// wake is how long it takes at most until everything has followed a step: pods end, others become ready.
const wake = 10 * time.Second

// End is when all that follows from it has happened, as a rule.
func (s Step) End() time.Duration { return s.At + s.With.Duration("for", 0) + wake }

// Verb is a sort of step.
type Verb struct {
	Name       string
	Text       string // what it does, for people
	Weight     int    // how often it is drawn, beside other verbs; 0: never
	Parameters []parameter.Parameter
	// Able tells whether there is anything that it can be done to; nil: always.
	Able func(Plan) bool
	// Drawn tells where it is drawn, of where it can be done; nil: everywhere. Seeds go on drawing what they drew, so what
	// came later is drawn in worlds that came later.
	Drawn func(Plan) bool
	// Draw fills in the parameters.
	Draw func(d dice.Dice, p Plan, s *Step)
	// Do does it.
	Do func(c *Cluster, s Step)
}

// Plan is what steps may be about.
type Plan struct {
	Services  int // that there are at the beginning
	Balancers int
	Outside   []string // drivers that users know by objects
	Nodes     []string
	Switches  []string
	Segments  int
	Aggregate int // as in a scenario: 0 if there is no block
	Sockets   start.Sockets
}

// names are the names that parameters may give.
func (p Plan) names() []string { return slices.Concat(p.Nodes, p.Switches) }

// All lists all verbs.
func All() []Verb { return slices.Clone(verbs()) }

var verbs = sync.OnceValue(func() []Verb {
	return slices.Concat(serviceVerbs(), applicationVerbs(), nodeVerbs(), configurationVerbs(), groupVerbs(), outsideVerbs(), segmentVerbs(), blockVerbs(), socketVerbs(), probeVerbs(), foulVerbs())
})

// Find finds a verb by its name.
func Find(name string) (Verb, bool) {
	i := slices.IndexFunc(verbs(), func(v Verb) bool { return v.Name == name })
	if i < 0 {
		return Verb{}, false
	}
	return verbs()[i], true
}

// Check tells what is wrong with a step: which field, why, and what to do.
func (p Plan) Check(s Step) error {
	v, ok := Find(s.Do)
	if !ok {
		var known []string
		for _, v := range All() {
			known = append(known, v.Name)
		}
		return fmt.Errorf("do: %q is unknown; choose one of %s", s.Do, strings.Join(known, ", "))
	}
	if v.Able != nil && !v.Able(p) {
		return fmt.Errorf("do: there is nothing in this world to %s; have balancers, segments, a block (aggregate), policies, clusterIPs, nodePorts or probes", s.Do)
	}
	if s.At < 0 {
		return fmt.Errorf("at: %s is before the beginning; write 0s or later", s.At)
	}
	return s.With.Check(s.Do, v.Parameters, p.names())
}

// Draw draws so many steps between two times, in order of time.
func (p Plan) Draw(d dice.Dice, steps int, from, to time.Duration) []Step {
	var lots []Verb
	for _, v := range All() {
		if v.Able != nil && !v.Able(p) || v.Drawn != nil && !v.Drawn(p) {
			continue
		}
		for range v.Weight {
			lots = append(lots, v)
		}
	}
	var out []Step
	for range steps {
		out = append(out, p.draw(d, dice.Pick(d, "verb", lots), from, to))
	}
	slices.SortStableFunc(out, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	return out
}

// DrawOne draws a step of a verb, which there is, between two times.
func (p Plan) DrawOne(d dice.Dice, verb string, from, to time.Duration) Step {
	v, _ := Find(verb)
	return p.draw(d, v, from, to)
}

func (p Plan) draw(d dice.Dice, v Verb, from, to time.Duration) Step {
	s := Step{At: d.Time("at", from, to), Do: v.Name}
	if v.Draw != nil {
		v.Draw(d, p, &s)
	}
	return s
}
