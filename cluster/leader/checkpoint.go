// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"

	"fairlead.io/fairlead/fsm"
)

// runCheckpoints has every member compare its record with this one from time to time (S1), until ctx ends. A group
// in which nothing was decided since has nothing to compare.
func (l *Leader) runCheckpoints(ctx context.Context) {
	var last fsm.Index
	for sleep(ctx, l.c.Clock, l.c.Timing.Checkpoint, nil) {
		v := l.c.Record.Read()
		if v.Applied() <= last {
			continue
		}
		outcomes, err := l.c.Group.Propose(ctx, Bulk, []fsm.Proposal{{
			Actor: actor, Reason: "compare all copies", AtUnixMilli: l.c.Clock.Wall().UnixMilli(),
			Command: &fsm.Checkpoint{Index: v.Applied(), Digest: v.Digest()},
		}})
		if err != nil {
			if !gaveUp(ctx, err) {
				l.c.Log.Warn("checkpoint not committed", "err", err)
			}
			continue
		}
		last = max(v.Applied(), outcomes[0].Revision.Index)
	}
}
