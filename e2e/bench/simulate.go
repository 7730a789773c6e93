// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/sim"
	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/program"
	"fairlead.io/fairlead/sim/scenario"
	simstage "fairlead.io/fairlead/sim/stage"
	"fairlead.io/fairlead/sim/vm"
)

// Sizes of simulated.
const (
	simSeeds    = 4
	simMembers  = 3
	simNodes    = 5
	simServices = 20
	simStart    = 3 * time.Second // by then the group has formed and agents follow it
)

// simulated plays worlds with faults, one after the other, and compares their time with the processor time that this
// process and theirs took for them, checkers and garbage collection included. A sample is one seed.
func simulated(t *bench) figures {
	p, err := program.Find(context.Background(), program.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := vm.Load(context.Background(), p.Code, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close(context.Background()) }() // nothing follows

	f := figures{}
	var all costs
	for seed := range uint64(simSeeds) {
		t.progressf("seed %d", seed)
		c := simulate(t, m, seed)
		all.add(c)
		f.samples = append(f.samples, c.virtual.Seconds()/c.cpu.Seconds())
	}
	value := all.virtual.Seconds() / all.cpu.Seconds()
	f.value = &value
	f.detail = map[string]any{
		"members": simMembers, "nodes": simNodes, "services": simServices, "virtual_s": all.virtual.Seconds(),
		"program_mb":             float64(len(p.Code)) / 1e6,
		"start_cpu_s":            started(t, m).Seconds(),
		"processes_cpu_share":    all.children.Seconds() / all.cpu.Seconds(),
		"resumes_per_virtual_s":  float64(all.usage.Resumes) / all.virtual.Seconds(),
		"messages_per_virtual_s": float64(all.usage.Frames) / all.virtual.Seconds(),
		"events_per_virtual_s":   float64(all.events) / all.virtual.Seconds(),
		"us_per_resume":          all.cpu.Seconds() * 1e6 / float64(all.usage.Resumes),
	}
	return f
}

// costs is what a world took.
type costs struct {
	virtual, cpu, children time.Duration // children: of cpu, what the processes of the world took
	events                 uint64
	usage                  vm.Usage
}

func (c *costs) add(other costs) {
	c.virtual, c.cpu, c.children = c.virtual+other.virtual, c.cpu+other.cpu, c.children+other.children
	c.events += other.events
	c.usage.Resumes += other.usage.Resumes
	c.usage.Frames += other.usage.Frames
}

// simulate plays the scenario of a seed. That a rule breaks is none of a benchmark's business, but such a run is short.
func simulate(t *bench, m *vm.Module, seed uint64) (c costs) {
	runtime.GC()
	s := scenario.Draw(seed, scenario.Options{Members: simMembers, Nodes: simNodes, Services: simServices})
	before, children := worldTime(), used(unix.RUSAGE_CHILDREN)
	var result sim.Result
	play := sim.Setting{Program: m, Usage: &c.usage}.Player()
	_, err := sim.Run(context.Background(), 0, slices.Values([]scenario.Scenario{s}), play, func(r sim.Result) { result = r })
	if err != nil {
		t.Fatal(err)
	}
	if v := result.Violation; v != nil {
		t.progressf("seed %d ended at %v: %v", seed, v.At, v)
	}
	c.virtual, c.cpu, c.events = result.Virtual, worldTime()-before, result.Events
	c.children = used(unix.RUSAGE_CHILDREN) - children
	return c
}

// started is what it takes to start the processes of a world, and to have them find each other.
func started(t *bench, m *vm.Module) time.Duration {
	before := worldTime()
	w := engine.New(1)
	s := simstage.New(w, simstage.Options{Members: simMembers, Nodes: simNodes, Switches: 2, Program: m})
	s.Raise()
	err := w.Run(simStart)
	s.Strike()
	if err != nil {
		t.Fatal(err)
	}
	return worldTime() - before
}

// worldTime is the processor time of this process and of the processes of worlds that have ended.
func worldTime() time.Duration { return processorTime() + used(unix.RUSAGE_CHILDREN) }
