// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"

	comparing "fairlead.io/fairlead/cluster/compare"
	"fairlead.io/fairlead/fsm"
)

// runCheckpoints compares the record with the other members' from time to time (S1), until ctx ends, and commits what most of them have: who has another
// one, or could not be asked, compares itself with that. A group in which nothing was decided since, and in which all have the same, commits nothing.
func (l *Leader) runCheckpoints(ctx context.Context) {
	var compared *fsm.Group // as it was at the newest
	var rest fsm.Digest     // of what it compared beside
	for sleep(ctx, l.c.Clock, l.c.Timing.Checkpoint, nil) {
		v, alike, err := l.c.Agree(ctx)
		if err != nil {
			switch {
			case ctx.Err() != nil: // the term ended
			case errors.Is(err, comparing.ErrUntold): // in an upgrade, say
				l.c.Log.Warn("no checkpoint is proposed", "err", err)
			default:
				l.c.Log.Error("no checkpoint is proposed", "err", err)
			}
			continue
		}
		group, sum := v.Group(), v.DigestWithout(fsm.TableGroup, fsm.TableMembers) // members tell of each checkpoint that they have it
		if alike && compared != nil && compared.Alike(group) && rest == sum {
			continue
		}
		_, err = l.c.Group.Propose(ctx, Bulk, []fsm.Proposal{{
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
