// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Limits find processes that never park. Zero stands for the default.
type Limits struct {
	// Calls to the host in one go, by default 50 million. Beyond, the run fails.
	Calls int
	// Real is how long a process may compute in one go, by default a minute: processor time where that can be told, so that
	// a busy machine costs no run, else real time. Beyond, the whole program crashes: code that makes no call cannot be
	// stopped in any other way. It has no part in what happens in the world.
	Real time.Duration
}

func (l Limits) orDefault() Limits {
	if l.Calls == 0 {
		l.Calls = 50_000_000
	}
	if l.Real == 0 {
		l.Real = time.Minute
	}
	return l
}

// watch crashes the program unless stop is called in time. Where processor time can be told, that counts from the end of
// the same real time on: asking each time would cost each turn.
func (p *Process) watch() (stop func()) {
	name, seed, now, limit, pid := p.spec.Name, p.spec.World.Seed(), p.spec.World.Now(), p.spec.Limits.Real, p.pid
	var over atomic.Bool
	timer := time.AfterFunc(limit, func() {
		before, known := computed(pid)
		for took := time.Duration(0); known && took < limit; {
			time.Sleep(limit - took)
			after, still := computed(pid)
			if over.Load() || !still {
				return
			}
			took = after - before
		}
		panic(fmt.Sprintf("process %s, seed %d, resumed at %v: does not park for %v", name, seed, now, limit))
	})
	return func() { over.Store(true); timer.Stop() }
}

// computed is the processor time of a process of this machine; false if that cannot be told.
func computed(pid int) (time.Duration, bool) {
	const schedClock = 2 // of a whole process: CPUCLOCK_SCHED of Linux
	var t unix.Timespec
	if pid <= 0 || unix.ClockGettime(int32(^pid)<<3|schedClock, &t) != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}

// spins fails the run of a process that made too many calls.
func (p *Process) spins() {
	w := p.spec.World
	w.Fail(fmt.Errorf("process %s, at %v: %d calls to the host without parking: it spins", p.spec.Name, w.Now(), p.calls))
	p.die()
}
