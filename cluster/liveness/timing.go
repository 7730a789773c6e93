// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"cmp"
	"time"

	"fairlead.io/fairlead/api/desired"
)

// Timing is what tests, simulations and unusual networks change. Zero fields take their default.
type Timing struct {
	// Beat is how often agents beat; the defaults of the next three follow from it. Default desired.Heartbeat.
	Beat time.Duration
	// List is the silence from which on a member mentions a node. Default a beat and a half.
	List time.Duration
	// Suspect is the silence from which on a node is probed. Default 2 beats.
	Suspect time.Duration
	// Silence is what a node is judged for: three beats missed, the third one late by a quarter. Default 3.25 beats.
	Silence time.Duration

	// Poll is how often each member is asked, and Hurry how often while a node is suspected. Defaults 100 and 25 ms.
	Poll, Hurry time.Duration
	// Contact is how old the answer of a member may be for it to count. Default 350 ms.
	Contact time.Duration

	// Within is how long a probe waits for an answer. Default 150 ms.
	Within time.Duration
	// Probe is how often a silent node is probed, and Reprobe how often one that answers or has been silent for long.
	// Defaults 200 and 500 ms.
	Probe, Reprobe time.Duration

	// AgentHold and NodeHold are how long an agent and a node must be heard of before they are up again, the first
	// time; it doubles with each flap up to AgentHoldMost and NodeHoldMost. Defaults 200 ms, 1 s, 10 s and 1 min.
	AgentHold, NodeHold         time.Duration
	AgentHoldMost, NodeHoldMost time.Duration
	// Forget is how long a node must stay up for one flap of it to be forgotten. Default 5 min.
	Forget time.Duration

	// Together is within what time nodes that go down are counted together. Default 10 s.
	Together time.Duration
	// HoldAfter is how long the same nodes must be held before an operator is asked. Default 1 s.
	HoldAfter time.Duration
}

func (t Timing) withDefaults() Timing {
	t.Beat = cmp.Or(t.Beat, desired.Heartbeat)
	t.List = cmp.Or(t.List, t.Beat+t.Beat/2)
	t.Suspect = cmp.Or(t.Suspect, 2*t.Beat)
	t.Silence = cmp.Or(t.Silence, 3*t.Beat+t.Beat/4)
	t.Poll = cmp.Or(t.Poll, 100*time.Millisecond)
	t.Hurry = cmp.Or(t.Hurry, 25*time.Millisecond)
	t.Contact = cmp.Or(t.Contact, 350*time.Millisecond)
	t.Within = cmp.Or(t.Within, 150*time.Millisecond)
	t.Probe = cmp.Or(t.Probe, 200*time.Millisecond)
	t.Reprobe = cmp.Or(t.Reprobe, 500*time.Millisecond)
	t.AgentHold = cmp.Or(t.AgentHold, 200*time.Millisecond)
	t.AgentHoldMost = cmp.Or(t.AgentHoldMost, 10*time.Second)
	t.NodeHold = cmp.Or(t.NodeHold, time.Second)
	t.NodeHoldMost = cmp.Or(t.NodeHoldMost, time.Minute)
	t.Forget = cmp.Or(t.Forget, 5*time.Minute)
	t.Together = cmp.Or(t.Together, 10*time.Second)
	t.HoldAfter = cmp.Or(t.HoldAfter, time.Second)
	return t
}
