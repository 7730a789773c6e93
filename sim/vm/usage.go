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
	// Computing is processor time of this program spent in processes, calls to the host included. It is right only where the
	// world's goroutine is locked to its thread. Processes of this machine have their own besides.
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
	began := threadTime()
	u.Resumes++
	return func() {
		u.Computing += threadTime() - began
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

// threadTime is the processor time of this thread; 0 where the system does not tell.
func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
