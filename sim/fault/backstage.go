// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"math/rand/v2"

	"fairlead.io/fairlead/sim/stage"
)

// Backstage is where the faults of one run are worked from. It keeps who is held by how many of them, so that faults of
// one target do not fight: a process runs while nothing holds it and its machine has power, a machine has power while
// no fault takes it, and what is slow, full or cut several times is so until the last of them ends.
type Backstage struct {
	*stage.Stage
	Cast Cast

	counts map[effect]int
}

// effect is something that several faults may do to a machine at the same time.
type effect struct{ what, machine string }

// New goes behind a stage.
func New(s *stage.Stage) *Backstage {
	return &Backstage{Stage: s, Cast: CastOf(s), counts: map[effect]int{}}
}

// share does something to a machine when the first fault wants it, and undoes it when none does any more.
func (b *Backstage) share(what, machine string, begin, end func(machine string)) func() {
	e := effect{what, machine}
	if b.counts[e]++; b.counts[e] == 1 {
		begin(machine)
	}
	return func() {
		if b.counts[e]--; b.counts[e] == 0 {
			end(machine)
		}
	}
}

// CastOf is who plays on a stage.
func CastOf(s *stage.Stage) Cast {
	c := Cast{Members: s.Members(), Nodes: s.Nodes()}
	for _, sw := range s.Switches() {
		c.Switches = append(c.Switches, sw.Name())
	}
	return c
}

// random is the stream of a fault.
func (b *Backstage) random(f Fault) *rand.Rand {
	return b.World.Random(fmt.Sprintf("fault/%s/%s/%v", f.Kind, f.At, f.On))
}

// unplug takes the power of a machine.
func (b *Backstage) unplug(machine string) (plug func()) {
	return b.share("power", machine, b.PowerOff, b.PowerOn)
}

// each does something to everybody whom a fault befalls, and undoes it in the same order.
func each(names []string, begin func(name string) (end func())) (end func()) {
	var ends []func()
	for _, name := range names {
		ends = append(ends, begin(name))
	}
	return together(ends)
}

func together(ends []func()) func() {
	return func() {
		for _, end := range ends {
			end()
		}
	}
}
