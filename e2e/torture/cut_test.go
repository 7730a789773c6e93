// SPDX-License-Identifier: Apache-2.0

package torture_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"fairlead.io/fairlead/e2e/lab"
)

// cutOff is a member that no packet of the others reaches, nor theirs it. The switch and clients still do.
var cutOff = kind{name: "cut", weight: 3, plan: func(r *run, rng *rand.Rand, begin, end time.Duration) []step {
	whom, name := r.victim(rng), lossName(rng)
	return []step{
		{begin, func() {
			m := whom()
			r.trace.act("cut", "%s from the others until +%v (%s)", m.Name, end-begin, name)
			r.Lose(name, both(m, r.Others(m), 100)...)
		}},
		{end, func() { r.deliver(name) }},
	}
}}

// both are the ways between a member and others.
func both(m *lab.Member, others []*lab.Member, lost int) []lab.Way {
	return append(from(m, others, lost), to(m, others, lost)...)
}

func from(m *lab.Member, others []*lab.Member, lost int) (ways []lab.Way) {
	for _, o := range others {
		ways = append(ways, lab.Way{From: m, To: o, Lost: lost})
	}
	return ways
}

func to(m *lab.Member, others []*lab.Member, lost int) (ways []lab.Way) {
	for _, o := range others {
		ways = append(ways, lab.Way{From: o, To: m, Lost: lost})
	}
	return ways
}

// lossName draws a name under which packets get lost: several faults lose some at once.
func lossName(rng *rand.Rand) string { return fmt.Sprintf("loss%d", rng.IntN(1_000_000)) }

// deliver ends a loss.
func (r *run) deliver(name string) {
	r.trace.note("%s is over", name)
	r.Deliver(name)
}
