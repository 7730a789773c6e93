// SPDX-License-Identifier: Apache-2.0

package torture_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
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

// deaf is a member that sends and hears nothing of the others, or the other way round: packets go in one direction, those that
// acknowledge them, too.
var deaf = kind{name: "oneway", weight: 3, plan: func(r *run, rng *rand.Rand, begin, end time.Duration) []step {
	whom, name, mute := r.victim(rng), lossName(rng), rng.IntN(2) == 0
	return []step{
		{begin, func() {
			m := whom()
			ways, what := to(m, r.Others(m), 100), "hears nothing"
			if mute {
				ways, what = from(m, r.Others(m), 100), "is not heard"
			}
			r.trace.act("oneway", "%s %s until +%v (%s)", m.Name, what, end-begin, name)
			r.Lose(name, ways...)
		}},
		{end, func() { r.deliver(name) }},
	}
}}

// parted are two members that do not reach each other, while others reach both.
var parted = kind{name: "split", weight: 2, plan: func(r *run, rng *rand.Rand, begin, end time.Duration) []step {
	whom, name, n := r.victim(rng), lossName(rng), rng.IntN(1<<16)
	return []step{
		{begin, func() {
			m := whom()
			others := slices.DeleteFunc(r.troupe.members(), func(o *lab.Member) bool { return o == m })
			other := others[n%len(others)]
			r.trace.act("split", "%s and %s until +%v (%s)", m.Name, other.Name, end-begin, name)
			r.Lose(name, both(m, []*lab.Member{other}, 100)...)
		}},
		{end, func() { r.deliver(name) }},
	}
}}

// flapping is a cut that comes and goes.
var flapping = kind{name: "flap", weight: 2, plan: func(r *run, rng *rand.Rand, begin, end time.Duration) []step {
	whom, name := r.victim(rng), lossName(rng)
	off, on := milliseconds(rng, 100, 1500), milliseconds(rng, 100, 1500)
	var m *lab.Member
	steps := []step{{begin, func() {
		m = whom()
		r.trace.act("flap", "%s until +%v: cut off for %v of %v (%s)", m.Name, end-begin, off, off+on, name)
	}}}
	for at := begin; at+off < end; at += off + on {
		steps = append(steps, step{at, func() { r.Lose(name, both(m, r.Others(m), 100)...) }}, step{at + off, func() { r.Deliver(name) }})
	}
	return append(steps, step{end, func() { r.deliver(name) }})
}}

// lossy is a part of the packets that gets lost, of one member and the others, or among all of them.
var lossy = kind{name: "loss", weight: 3, plan: func(r *run, rng *rand.Rand, begin, end time.Duration) []step {
	whom, name, percent, all := r.victim(rng), lossName(rng), 2+rng.IntN(40), rng.IntN(3) == 0
	return []step{
		{begin, func() {
			m := whom()
			ways, of := both(m, r.Others(m), percent), m.Name
			if all {
				ways, of = nil, "all"
				for _, m := range r.Members {
					ways = append(ways, from(m, r.Others(m), percent)...)
				}
			}
			r.trace.act("loss", "%d%% of the packets of %s until +%v (%s)", percent, of, end-begin, name)
			r.Lose(name, ways...)
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
