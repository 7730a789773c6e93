// SPDX-License-Identifier: Apache-2.0

package torture_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"time"

	"fairlead.io/fairlead/e2e/lab"
)

// transferred is leadership that an operator hands on, whatever else happens then, once a round: see transferredTwice.
var transferred = kind{name: "transfer", weight: 2, plan: func(r *run, _ *rand.Rand, begin, _ time.Duration) []step {
	return []step{{begin, func() {
		if !r.transferred {
			r.troupe.ask("transfer", "raft", "transfer")
		}
		r.transferred = true
	}}}
}}

// transferredTwice is leadership that an operator hands on to a member that stands still, and again, while the leader hears nothing of the third one.
var transferredTwice = kind{
	name: "transfer-twice", weight: 1,
	plan: func(r *run, rng *rand.Rand, begin, _ time.Duration) []step {
		name := lossName(rng)
		var to, third, leads *lab.Member // nil if there is no leader, or there are more members
		when := func(after time.Duration, do func()) step {
			return step{begin + after, func() {
				if leads != nil {
					do()
				}
			}}
		}
		transfer := func() { r.troupe.ask("transfer-twice", "raft", "transfer", to.Name, "--force") }
		return []step{
			{begin, func() {
				if leads = r.leader(); leads == nil || r.troupe.size() != first {
					leads = nil
					return
				}
				others := slices.DeleteFunc(r.troupe.members(), func(o *lab.Member) bool { return o == leads })
				to, third = others[0], others[1]
				r.halt(to)
			}},
			when(3*time.Second, transfer),
			when(4500*time.Millisecond, transfer),
			when(4550*time.Millisecond, func() { r.Lose(name, from(third, []*lab.Member{leads}, 100)...) }),
			when(5*time.Second, func() {
				r.deliver(name)
				r.resume(to)
			}),
		}
	},
}

// snapshotted is a snapshot that an operator asks for.
var snapshotted = kind{name: "snapshot", weight: 1, plan: func(r *run, _ *rand.Rand, begin, _ time.Duration) []step {
	return []step{{begin, func() { r.troupe.ask("snapshot", "raft", "snapshot") }}}
}}

// grown is a group of three that becomes one of five.
var grown = kind{name: "grow", weight: 2, plan: func(r *run, _ *rand.Rand, begin, _ time.Duration) []step {
	return []step{{begin, func() {
		if r.troupe.size() > first {
			return
		}
		r.trace.act("grow", "%s join", names(r.Members[first:]))
		for _, m := range r.Members[first:] {
			r.troupe.roles[m].belongs = true
			r.troupe.start(m)
		}
	}}}
}}

// shrunk is a group of five that an operator makes one of three.
var shrunk = kind{name: "shrink", weight: 2, plan: func(r *run, _ *rand.Rand, begin, _ time.Duration) []step {
	return []step{{begin, func() {
		if r.troupe.size() == first {
			return
		}
		for _, m := range r.Members[first:] {
			r.troupe.roles[m].leaves, r.troupe.roles[m].excused = true, "it is removed"
			r.troupe.ask("shrink", "raft", "remove", m.Name)
		}
	}}}
}}

// leaves has a member removed, if it is not yet, and waits until it has noticed.
func (r *run) leaves(m *lab.Member) {
	r.t.Helper()
	r.within(m.Name+" is removed", agreesWithin, func() error {
		s, ok := r.Status()
		if !ok {
			return fmt.Errorf("nobody says who is a member")
		}
		if slices.ContainsFunc(s.Members, func(s lab.MemberStatus) bool { return s.Name == m.Name }) {
			_, stderr, _ := r.CLI("raft", "remove", m.Name)
			return fmt.Errorf("it is a member: %s", stderr)
		}
		return nil
	})
	if !r.troupe.roles[m].joined && m.Runs() { // it waits to be let in, and nobody will do that now
		m.Kill()
	}
	r.within(m.Name+" ends", agreesWithin, func() error {
		if m.Runs() {
			return fmt.Errorf("it runs")
		}
		return nil
	})
	m.Wipe()
	*r.troupe.roles[m] = role{}
	r.trace.note("%s was removed", m.Name)
}

// addition is what the log of a member says that was removed before: what an operator has to do to let it in.
var addition = regexp.MustCompile("`fairlead (raft) (add) (\\S+) (\\S+) (--api-address) (\\S+)` alone")

// joins waits until a member has a vote, and lets it in where an operator has to.
func (r *run) joins(m *lab.Member) {
	r.t.Helper()
	r.within(m.Name+" has a vote", agreesWithin, func() error {
		r.troupe.start(m)
		s, ok := r.Status()
		i := slices.IndexFunc(s.Members, func(s lab.MemberStatus) bool { return s.Name == m.Name })
		switch {
		case !ok:
			return fmt.Errorf("nobody says who is a member")
		case i >= 0 && s.Members[i].Suffrage == "voter":
			r.troupe.roles[m].joined = true
			return nil
		case i >= 0:
			return fmt.Errorf("it is a %s", s.Members[i].Suffrage)
		}
		if all := addition.FindAllStringSubmatch(m.Log(), -1); len(all) > 0 {
			_, stderr, _ := r.CLI(all[len(all)-1][1:]...)
			return fmt.Errorf("it is no member: %s", stderr)
		}
		return fmt.Errorf("it is no member")
	})
}
