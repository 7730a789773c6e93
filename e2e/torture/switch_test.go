// SPDX-License-Identifier: Apache-2.0

package torture_test

import (
	"math/rand/v2"
	"time"
)

// switched is the switch that loses power, and all paths with it, and comes back later.
var switched = kind{name: "switch", weight: 1, plan: func(r *run, _ *rand.Rand, begin, end time.Duration) []step {
	return []step{
		{begin, func() {
			r.trace.act("switch", "until +%v", end-begin)
			r.border.forgets()
			if r.off++; r.off == 1 {
				r.Bird.Kill()
			}
		}},
		{end, func() {
			if r.off--; r.off == 0 {
				r.trace.note("the switch comes back")
				r.Bird.Run()
			}
		}},
	}
}}
