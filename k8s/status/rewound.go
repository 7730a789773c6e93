// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"

	"fairlead.io/fairlead/fsm"
)

// EventSourceRanBack is the reason of Events on Services that the record does not have, and does not get, since the cluster ran back, as after a
// restore of its etcd, and nobody has said that this is meant. They bear nothing else of ours.
const EventSourceRanBack = "SourceRanBack"

// rewoundIn is why a source ran back, and what to do about it, as the record has it.
func rewoundIn(v *fsm.View) string {
	holds := fsm.List[*fsm.Hold](v, fsm.TableHolds)
	if i := slices.IndexFunc(holds, func(h *fsm.Hold) bool { return h.Of == fsm.OfSource && !h.Released }); i >= 0 {
		return holds[i].Why
	}
	return ""
}

// stuck tells of a Service that the record does not have whether it waits for somebody's word about its source.
func (r *run) stuck(seen *Seen) bool {
	return r.rewound != "" && seen != nil && !seen.Going && r.c.Options.ours(seen)
}
