// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/sim/event"
)

// Trace is what happened in one run, as far as it was kept.
type Trace struct {
	About   About
	Digest  string            // of all that was heard, also of what was dropped
	Heard   uint64            // events
	Dropped map[string]uint64 // events that were heard and did not fit, by kind
	packed  [][]byte          // stretches, oldest first
	kept    int
}

// About says which run a trace is of. Whoever ran it fills it in; nothing here depends on it.
type About struct {
	Seed      uint64        `json:"seed"`
	Scenario  string        `json:"scenario,omitempty"` // its text
	Module    string        `json:"module,omitempty"`   // hash of the code that ran
	Command   string        `json:"command,omitempty"`  // line that repeats the run
	Until     time.Duration `json:"until,omitempty"`    // virtual time at the end, in nanoseconds
	Violation *Violation    `json:"violation,omitempty"`
}

// Violation is the first rule that was broken.
type Violation struct {
	Rule     string        `json:"rule"`             // "S1"
	At       time.Duration `json:"at"`               // nanoseconds
	Number   uint64        `json:"number,omitempty"` // of the event with which it came out, 0 when it was none
	Sentence string        `json:"sentence"`         // what is wrong, on what
}

// Kept is how many events the trace holds.
func (t Trace) Kept() int { return t.kept }

// Events goes through what was kept, in order.
func (t Trace) Events() iter.Seq[event.Stamped] {
	return func(yield func(event.Stamped) bool) {
		for _, packed := range t.packed {
			var err error
			for _, e := range unpacked(packed, &err) {
				if !yield(e) {
					return
				}
			}
			if err != nil {
				panic("trace: " + err.Error() + " in memory") // Read has checked what came from outside
			}
		}
	}
}

// Missing says in words what was dropped, "" when nothing was.
func (t Trace) Missing() string {
	var names []string
	var all uint64
	for name, n := range t.Dropped {
		all += n
		names = append(names, fmt.Sprintf("%d %s", n, name))
	}
	if all == 0 {
		return ""
	}
	slices.Sort(names)
	return fmt.Sprintf("%d of %d events did not fit and are missing from the beginning: %s",
		all, t.Heard, strings.Join(names, ", "))
}

// Clock renders a time of the run as people read it in traces: seconds to the microsecond.
func Clock(d time.Duration) string { return fmt.Sprintf("%.6fs", d.Seconds()) }
