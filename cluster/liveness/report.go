// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
)

// Silence is what a member knows of a node's heartbeats.
type Silence struct {
	// Boot is the one that the newest heartbeat named; empty if none ever came.
	Boot fsm.BootID
	// For is the time since that heartbeat came; if none did, or if the member was deaf later than that, since it
	// listens.
	For time.Duration
}

// Report is what one member heard and did not hear.
type Report struct {
	// Heard is how many nodes the member heard of lately, whether the record knows them or not.
	Heard int
	// Silences are of nodes that it did not hear of for a while, and of those that it was asked about.
	Silences map[fsm.NodeID]Silence
}

// blind says that a member hears nobody: it has lost its own network, or there is nobody else to hear.
func (r *Report) blind() bool { return r.Heard == 0 }

// Beat is the newest heartbeat of a node, as old as Ago.
type Beat struct {
	Node fsm.NodeID
	Boot fsm.BootID
	Ago  time.Duration
}

// NewReport tells what a member that has listened for a while makes of the newest heartbeats: which of the nodes
// that registered are silent, and how those stand that it is asked about.
func (t Timing) NewReport(listening time.Duration, beats []Beat, nodes []*fsm.Node, about []fsm.NodeID) Report {
	t = t.withDefaults()
	r := Report{Silences: map[fsm.NodeID]Silence{}}
	newest := make(map[fsm.NodeID]Silence, len(beats))
	for _, b := range beats {
		newest[b.Node] = Silence{Boot: b.Boot, For: min(b.Ago, listening)}
		if b.Ago < t.Suspect {
			r.Heard++
		}
	}
	of := func(id fsm.NodeID) Silence {
		if s, ok := newest[id]; ok {
			return s
		}
		return Silence{For: listening}
	}
	for _, n := range nodes {
		if s := of(n.ID); judged(n) && s.For >= t.List {
			r.Silences[n.ID] = s
		}
	}
	for _, id := range about {
		r.Silences[id] = of(id)
	}
	return r
}

// judged tells whether a node is one to judge: an agent of it registered.
func judged(n *fsm.Node) bool { return n.Boot != "" }

// sorted are the ids of a set, in order.
func sorted(ids []fsm.NodeID) []fsm.NodeID {
	slices.Sort(ids)
	return slices.Compact(ids)
}
