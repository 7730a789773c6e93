// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"
	"time"
)

// Limits find processes that never park. Zero stands for the default.
type Limits struct {
	// Calls to the host in one go, by default 50 million. Beyond, the run fails.
	Calls int
	// Real is the real time that a process may compute in one go, by default a minute. Beyond, the whole program
	// crashes: code that makes no call cannot be stopped in any other way. It has no part in what happens in the world.
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

// watch crashes the program unless stop is called in time.
func (p *Process) watch() (stop func() bool) {
	name, seed, now, limit := p.spec.Name, p.spec.World.Seed(), p.spec.World.Now(), p.spec.Limits.Real
	return time.AfterFunc(limit, func() {
		panic(fmt.Sprintf("process %s, seed %d, resumed at %v: does not park for %v of real time", name, seed, now, limit))
	}).Stop
}

// spins fails the run of a process that made too many calls.
func (p *Process) spins() {
	w := p.spec.World
	w.Fail(fmt.Errorf("process %s, at %v: %d calls to the host without parking: it spins", p.spec.Name, w.Now(), p.calls))
	p.die()
}
