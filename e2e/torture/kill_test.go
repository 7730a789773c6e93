// SPDX-License-Identifier: Apache-2.0

package torture_test

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"fairlead.io/fairlead/e2e/lab"
)

// killed is a member that ends at once (SIGKILL) and comes back later.
var killed = kind{name: "kill", weight: 4, plan: func(r *run, rng *rand.Rand, begin, end time.Duration) []step {
	whom := r.victim(rng)
	var m *lab.Member
	return []step{
		{begin, func() {
			m = whom()
			r.trace.act("kill", "%s until +%v", m.Name, end-begin)
			r.troupe.down(m)
		}},
		{end, func() {
			r.trace.note("%s comes back", m.Name)
			r.troupe.up(m)
		}},
	}
}}

// blackout is all members that end at once, and come back at once.
var blackout = kind{name: "blackout", weight: 2, plan: func(r *run, _ *rand.Rand, begin, end time.Duration) []step {
	var all []*lab.Member
	return []step{
		{begin, func() {
			all = r.troupe.members()
			r.trace.act("blackout", "%s until +%v", names(all), end-begin)
			for _, m := range all {
				r.troupe.down(m)
			}
		}},
		{end, func() {
			r.trace.note("%s come back", names(all))
			for _, m := range all {
				r.troupe.up(m)
			}
		}},
	}
}}

// rebooted is a member that ends at once, and whose clocks count from elsewhere when it comes back, as after its machine was booted: those
// that no adjustment of the time touches, in a time namespace. The clock on the wall is the machine's, and stays.
var rebooted = kind{name: "reboot", weight: 1, probe: []string{"unshare", "--time", "true"}, plan: func(r *run, rng *rand.Rand, begin, end time.Duration) []step {
	whom, ahead := r.victim(rng), fmt.Sprint(rng.IntN(2)*(1+rng.IntN(10_000_000)))
	var m *lab.Member
	return []step{
		{begin, func() {
			m = whom()
			r.trace.act("reboot", "%s until +%v; its clocks are then %s s ahead", m.Name, end-begin, ahead)
			r.troupe.down(m)
			m.Within = []string{"unshare", "--time", "--monotonic", ahead, "--boottime", ahead}
		}},
		{end, func() {
			r.trace.note("%s comes back", m.Name)
			r.troupe.up(m)
		}},
	}
}}

// spoken is the BGP speaker of a member that ends at once: a process of its own, which the member starts again.
var spoken = kind{name: "speaker", weight: 1, plan: func(r *run, rng *rand.Rand, begin, _ time.Duration) []step {
	whom := r.victim(rng)
	return []step{{begin, func() {
		m := whom()
		if !m.Runs() {
			return
		}
		r.trace.act("speaker", "of %s is killed", m.Name)
		for _, child := range m.Children() {
			_ = syscall.Kill(child, syscall.SIGKILL) // it may have ended
		}
	}}}
}}
