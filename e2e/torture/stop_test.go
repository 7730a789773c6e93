// SPDX-License-Identifier: Apache-2.0

package torture_test

import (
	"math/rand/v2"
	"time"

	"fairlead.io/fairlead/e2e/lab"
)

// mostStill is the longest that a member stands still.
const mostStill = 30 * time.Second

// stopped is a member that stands still (SIGSTOP) and goes on with what it had begun. Its BGP speaker is another process, and runs.
var stopped = kind{name: "stop", weight: 4, plan: func(r *run, rng *rand.Rand, begin, end time.Duration) []step {
	whom := r.victim(rng)
	end = min(end, begin+mostStill)
	var m *lab.Member
	return []step{
		{begin, func() {
			m = whom()
			r.trace.act("stop", "%s until +%v", m.Name, end-begin)
			r.halt(m)
		}},
		{end, func() {
			r.trace.note("%s goes on", m.Name)
			r.resume(m)
		}},
	}
}}

// stutters is a member that runs a part of the time only, as on a machine that has much else to do.
var stutters = kind{name: "stutter", weight: 2, plan: func(r *run, rng *rand.Rand, begin, end time.Duration) []step {
	whom := r.victim(rng)
	runs, rests := milliseconds(rng, 20, 300), milliseconds(rng, 20, 300)
	var m *lab.Member
	steps := []step{{begin, func() {
		m = whom()
		r.trace.act("stutter", "%s until +%v: %v of %v", m.Name, end-begin, runs, runs+rests)
	}}}
	for at := begin; at+rests < end; at += runs + rests {
		steps = append(steps, step{at, func() { r.halt(m) }}, step{at + rests, func() { r.resume(m) }})
	}
	return append(steps, step{end, func() { r.trace.note("%s runs all of the time", m.Name) }})
}}

// milliseconds draws milliseconds.
func milliseconds(rng *rand.Rand, least, most int) time.Duration {
	return time.Duration(least+rng.IntN(most-least)) * time.Millisecond
}

// halt has a member stand still, and remembers for the switch's sake that one did.
func (r *run) halt(m *lab.Member) {
	r.standing.Store(int64(r.pace.now() + time.Hour))
	r.troupe.halt(m)
}

func (r *run) resume(m *lab.Member) {
	r.troupe.resume(m)
	if !r.troupe.anyStill() {
		r.standing.Store(int64(r.pace.now() + afterStandstill))
	}
}
