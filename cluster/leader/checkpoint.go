// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"

	"fairlead.io/fairlead/fsm"
)

// runCheckpoints has every member compare its record with this one from time to time (S1), until ctx ends. A group
// in which nothing was decided since has nothing to compare.
func (l *Leader) runCheckpoints(ctx context.Context) {
	var compared *fsm.Group // as it was at the newest
	var rest fsm.Digest     // of what it compared beside
	for sleep(ctx, l.c.Clock, l.c.Timing.Checkpoint, nil) {
		v := l.c.Record.Read()
		group, sum := v.Group(), v.DigestWithout(fsm.TableGroup, fsm.TableMembers) // members tell of each checkpoint that they have it
		if compared != nil && compared.Alike(group) && rest == sum {
			continue
		}
		_, err := l.c.Group.Propose(ctx, Bulk, []fsm.Proposal{{
			Actor: actor, Reason: "compare all copies", AtUnixMilli: l.c.Clock.Wall().UnixMilli(),
			Command: &fsm.Checkpoint{Index: v.Applied(), Digest: v.Digest()},
		}})
		if err != nil {
			if !gaveUp(ctx, err) {
				l.c.Log.Warn("checkpoint not committed", "err", err)
			}
			continue
		}
		compared, rest = group, sum
	}
}
