// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"math/rand/v2"
	"time"

	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/stage"
)

// Backstage is where the faults of one run are worked from. It keeps what several of them do to one target, so that they
// do not fight: a process runs while none holds it and its machine has power; a machine has power while none takes it;
// who is frozen, full, cut off or switched off several times is so until the last of them ends; delays and drifts add up.
type Backstage struct {
	*stage.Stage
	Cast Cast

	counts map[effect]int
	sums   map[effect]time.Duration
	// slowUntil is when the disk of a machine is quick again.
	slowUntil map[string]time.Duration
	frames    int // that have begun
	// newcomers are agents that began with an empty disk, each with what ends the excuse for that.
	newcomers map[string]func()
	acts      []*act // of operators, that are not over
	leader    string // that said so last
	applied   uint64 // by the member that has applied most
}

// effect is something that several faults may do to a machine at the same time.
type effect struct{ what, machine string }

// New goes behind a stage.
func New(s *stage.Stage) *Backstage {
	b := &Backstage{
		Stage: s, Cast: CastOf(s), counts: map[effect]int{}, sums: map[effect]time.Duration{}, slowUntil: map[string]time.Duration{},
		newcomers: map[string]func(){},
	}
	b.World.Hear(b.hear)
	return b
}

// CastOf is who plays on a stage.
func CastOf(s *stage.Stage) Cast {
	c := Cast{Members: s.Members(), Nodes: s.Nodes()}
	for _, sw := range s.Switches() {
		c.Switches = append(c.Switches, sw.Name())
	}
	for _, d := range s.Balancers() {
		c.Drivers = append(c.Drivers, d.Name())
	}
	c.Segments = s.Segments()
	c.Sockets, c.Policies, c.Probes = s.Sockets().Any(), s.Sockets().Policies, s.Sockets().Probes
	return c
}

// Begin begins a fault, which was checked, and publishes that. What it gives ends it, and is to be called once.
func (b *Backstage) Begin(f Fault) (end func(), err error) {
	k, ok := Find(f.Kind)
	if !ok {
		return nil, fmt.Errorf("fault %s: unknown", f.Kind)
	}
	over := b.frame(f.Kind, f.String(), k.Excuses(b.Cast, f))
	undo := k.Begin(b, f)
	return func() {
		undo()
		over()
	}, nil
}

// frame publishes that a fault begins, and gives what publishes its end.
func (b *Backstage) frame(kind, text string, on []string) (over func()) {
	b.frames++
	id := b.frames
	b.World.Publish(event.FaultBegan{ID: id, Fault: kind, On: on, Text: text})
	return func() { b.World.Publish(event.FaultEnded{ID: id, Fault: kind, On: on}) }
}

// random is the stream of a fault.
func (b *Backstage) random(f Fault) *rand.Rand {
	return b.World.Random(fmt.Sprintf("fault/%s/%s/%v", f.Kind, f.At, f.On))
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

// add adds to something of a machine that several faults change, until the function that it returns is called.
func (b *Backstage) add(what, machine string, d time.Duration) (end func()) {
	e := effect{what, machine}
	b.sums[e] += d
	return func() { b.sums[e] -= d }
}

// sum is what several faults come to.
func (b *Backstage) sum(what, machine string) time.Duration { return b.sums[effect{what, machine}] }

// again does something now and from time to time, until the function that it returns is called.
func (b *Backstage) again(every time.Duration, do func()) (end func()) {
	over := false
	var next func()
	next = func() {
		if over {
			return
		}
		do()
		b.World.After(max(every, time.Millisecond), next)
	}
	next()
	return func() { over = true }
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
