// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"runtime"
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
	runtime.LockOSThread() // see vm.Usage
	defer runtime.UnlockOSThread()
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
		"processes_cpu_share":    all.usage.Computing.Seconds() / all.cpu.Seconds(),
		"resumes_per_virtual_s":  float64(all.usage.Resumes) / all.virtual.Seconds(),
		"messages_per_virtual_s": float64(all.usage.Frames) / all.virtual.Seconds(),
		"events_per_virtual_s":   float64(all.events) / all.virtual.Seconds(),
		"us_per_resume":          all.usage.Computing.Seconds() * 1e6 / float64(all.usage.Resumes),
		"process_mb":             largestChild(),
	}
	return f
}

// costs is what a world took.
type costs struct {
	virtual, cpu time.Duration
	events       uint64
	usage        vm.Usage
}

func (c *costs) add(other costs) {
	c.virtual, c.cpu, c.events = c.virtual+other.virtual, c.cpu+other.cpu, c.events+other.events
	c.usage.Resumes += other.usage.Resumes
	c.usage.Frames += other.usage.Frames
	c.usage.Computing += other.usage.Computing
	c.usage.MemoryBytes = max(c.usage.MemoryBytes, other.usage.MemoryBytes)
}

// simulate plays the scenario of a seed. That a rule breaks is none of a benchmark's business, but such a run is short.
func simulate(t *bench, m *vm.Module, seed uint64) (c costs) {
	runtime.GC()
	s := scenario.Draw(seed, scenario.Options{Members: simMembers, Nodes: simNodes, Services: simServices})
	before := worldTime()
	result, err := sim.Play(s, sim.Setting{Program: m, Usage: &c.usage})
	if err != nil {
		t.Fatal(err)
	}
	if v := result.Violation; v != nil {
		t.progressf("seed %d ended at %v: %v", seed, v.At, v)
	}
	c.virtual, c.cpu, c.events = result.Virtual, worldTime()-before, result.Events
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

// largestChild is what the largest process of any world had in memory at once, in MB.
func largestChild() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &u); err != nil {
		return 0
	}
	return float64(u.Maxrss) / 1e3
}
