// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"time"

	"fairlead.io/fairlead/fsm"
)

// subject is what a judge remembers of a node beyond its record.
type subject struct {
	liveness fsm.Liveness
	downAt   time.Duration         // when it was last seen to go down
	upAt     time.Duration         // and to come back
	flaps    [fsm.NodeDown + 1]int // how often it went so, less what is forgotten
	// heardSince is when a majority began to hear of it without a break; negative while it does not.
	heardSince time.Duration

	probes   map[string]*probe // the newest of each member
	answered time.Duration     // when a probe was last answered
}

// subject finds what is remembered of a node. Of a node that was not up when this leader began the first flap is
// counted, and the time of its fall is taken to be that beginning.
func (j *Judge) subject(n *fsm.Node) *subject {
	x := j.subjects[n.ID]
	if x == nil {
		x = &subject{liveness: n.Liveness, downAt: j.began, upAt: j.began, heardSince: -1, probes: map[string]*probe{}, answered: j.began}
		x.flaps[n.Liveness] = 1
		j.subjects[n.ID] = x
	}
	return x
}

// observe takes note of a verdict that was committed. What a node was held down for is forgotten with the time that
// it stays up.
func (x *subject) observe(now time.Duration, n *fsm.Node, t Timing) {
	if n.Liveness == x.liveness {
		return
	}
	switch n.Liveness {
	case fsm.NodeUp:
		x.upAt = now
	default:
		if x.liveness == fsm.NodeUp {
			forgotten := int((now - x.upAt) / t.Forget)
			for i := range x.flaps {
				x.flaps[i] = max(0, x.flaps[i]-forgotten)
			}
		}
		x.flaps[n.Liveness]++
		x.downAt, x.heardSince = now, -1
	}
	x.liveness = n.Liveness
}

// returned tells whether a node that was not up is up again: a majority has heard of it long enough.
func (c *court) returned(n *fsm.Node, x *subject, e evidence) bool {
	if e.hear < c.need {
		x.heardSince = -1
		return false
	}
	if x.heardSince < 0 {
		x.heardSince = c.now
	}
	return c.now-x.heardSince >= c.j.t.holdDown(n.Liveness, x.flaps[n.Liveness])
}

// holdDown is how long a node must be heard of that went so for the nth time.
func (t Timing) holdDown(l fsm.Liveness, flaps int) time.Duration {
	hold, most := t.NodeHold, t.NodeHoldMost
	if l == fsm.AgentDown {
		hold, most = t.AgentHold, t.AgentHoldMost
	}
	for range flaps - 1 {
		if hold *= 2; hold >= most {
			return most
		}
	}
	return hold
}
