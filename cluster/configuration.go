// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"
)

// ConfigurationIndex is the log index of the newest committed configuration that this member applied. (The library
// answers 0 for its own, whatever it is.)
func (n *Node) ConfigurationIndex() Index { return Index(n.fsm.configured()) }

// Serves tells whether the newest committed configuration that this member applied names a server of a member. It never waits.
func (n *Node) Serves(name string) bool {
	c := n.fsm.committed.Load()
	return c != nil && slices.ContainsFunc(c.Servers, func(s raft.Server) bool { return NameOf(string(s.ID)) == name })
}

// Demote takes a server's vote away; it goes on receiving entries. Unless it is forced it asks whether the others are a
// majority (VerifyWithout). On the leader only.
//
// Errors: ErrUnknownServer, ErrNotLeader; ErrNotReady while the others that answer and are caught up are no majority.
func (n *Node) Demote(ctx context.Context, id string, forced bool) error {
	s, err := n.server(id)
	if err == nil && !forced {
		err = n.VerifyWithout(ctx, id)
	}
	if err != nil {
		return fmt.Errorf("demote: %w", err)
	}
	return n.leaderError("demote "+id, n.await(ctx, n.raft.DemoteVoter(s.ID, 0, changeTimeout)))
}

// look gives a server of the newest configuration, and that configuration's index. A change that is asked of the library with this index is
// refused if another one came in between: who was removed since would be a member again, by a vote or a new address.
func (n *Node) look(id string) (s raft.Server, at uint64, err error) {
	at = n.fsm.configured() // before looking: the library compares it with what is committed when it begins the change
	if at == 0 {            // to the library this means any
		return raft.Server{}, 0, fmt.Errorf("%s: %w: no configuration is known to be committed", id, ErrNotReady)
	}
	s, err = n.server(id)
	return s, at, err
}
