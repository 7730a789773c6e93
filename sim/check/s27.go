// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"time"

	"fairlead.io/fairlead/sim/event"
)

// s27 holds what members say of their touch with the group against the network: who is cut off from every majority is not in touch any more after
// Demote, however it spent that time. One that stood still finds what it was sent before in its sockets when it goes on.
type s27 struct {
	idle
	*judge
	apart map[int]apart
}

// apart are members that a partition cuts off from a majority.
type apart struct {
	members []string
	since   time.Duration
	number  uint64
}

// saysWithin is what a member may take to say that it is in touch no more, while it runs.
const saysWithin = time.Second

func newS27(j *judge) rule { return &s27{judge: j, apart: map[int]apart{}} }

func (r *s27) hear(e event.Stamped) {
	switch x := e.Event.(type) {
	case event.FaultBegan:
		if x.Fault == "partition" { // what it excuses is the side without a majority
			r.apart[x.ID] = apart{slices.DeleteFunc(slices.Clone(x.On), func(name string) bool { return !slices.Contains(r.scene.members(), name) }), e.At, e.Number}
		}
	case event.FaultEnded:
		delete(r.apart, x.ID)
	}
}

func (r *s27) tick() {
	for _, a := range r.apart {
		late := r.scene.now-a.since >= r.bounds.Demote+saysWithin && !r.majority(a.members)
		for _, m := range a.members {
			c, said := r.scene.contact[m]
			if !said {
				continue
			}
			r.checked()
			if late && c.quorum && r.acts(m) {
				r.broken(m, fmt.Sprintf("it says that it is in touch with a quorum, and has been cut off from every majority since %s", a.since), a.number)
			}
		}
	}
}

// acts tells whether a member has been able to say something for a while.
func (r *s27) acts(member string) bool {
	return r.scene.runs[member] && r.scene.frozen[member] == 0 && r.scene.now-r.scene.freed[member] >= saysWithin
}

// majority tells whether some members are one, of those that have a vote. A member that waits for its vote may still have it.
func (r *s27) majority(members []string) bool {
	all := slices.DeleteFunc(slices.Clone(r.scene.members()), func(m string) bool { return !r.scene.votes(m) })
	return 2*len(members) > len(all)
}
