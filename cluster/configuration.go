// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
)

// ConfigurationIndex is the log index of the newest committed configuration that this member applied. (The library
// answers 0 for its own, whatever it is.)
func (n *Node) ConfigurationIndex() Index { return Index(n.fsm.configured()) }

// Demote takes a server's vote away; it goes on receiving entries. It does not ask whether a quorum is left: that is
// the caller's guard. On the leader only.
//
// Errors: ErrUnknownServer, ErrNotLeader.
func (n *Node) Demote(ctx context.Context, id string) error {
	s, err := n.server(id)
	if err != nil {
		return fmt.Errorf("demote: %w", err)
	}
	return n.leaderError("demote "+id, n.await(ctx, n.raft.DemoteVoter(s.ID, 0, changeTimeout)))
}
