// SPDX-License-Identifier: Apache-2.0

package torture_test

import (
	"math/rand/v2"
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
