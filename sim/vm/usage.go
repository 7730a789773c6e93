// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"time"

	"golang.org/x/sys/unix"
)

// Usage is what running processes takes: the sum of all that were started with it. It has no part in what happens in
// their world.
type Usage struct {
	Resumes uint64
	Frames  uint64 // that were delivered
	// Computing is processor time spent in processes, calls to the host included. It is right only where the world's
	// goroutine is locked to its thread.
	Computing time.Duration
	// MemoryBytes is the size of all memories at once, at its highest; see Process.MemoryBytes.
	MemoryBytes int

	now int // size of all memories
}

// computes measures a resumption, until the function it returns is called.
func (p *Process) computes() (parked func()) {
	u := p.spec.Usage
	if u == nil {
		return func() {}
	}
	began := threadTime() + p.childTime()
	u.Resumes++
	return func() {
		u.Computing += max(0, threadTime()+p.childTime()-began) // a child that has ended took its time with it
		u.now += p.MemoryBytes() - p.counted
		p.counted = p.MemoryBytes()
		u.MemoryBytes = max(u.MemoryBytes, u.now)
	}
}

// delivers counts a frame.
func (u *Usage) delivers() {
	if u != nil {
		u.Frames++
	}
}

// freed counts the memory of a process that has ended.
func (p *Process) freed() {
	if u := p.spec.Usage; u != nil {
		u.now -= p.counted
		p.counted = 0
	}
}

// childTime is the processor time of the process itself where it is one of this machine.
func (p *Process) childTime() time.Duration {
	if p.child == nil {
		return 0
	}
	const ofAllThreads = 2 // CPUCLOCK_SCHED: what clock_getcpuclockid(3) gives for a process
	var t unix.Timespec
	if unix.ClockGettime(int32(^p.child.pid<<3|ofAllThreads), &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// threadTime is the processor time of this thread; 0 where the system does not tell.
func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
