// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// changeTimeout bounds how long a change of membership waits for an earlier one.
const changeTimeout = 10 * time.Second

// ErrUnknownServer says that no server of the configuration has this id.
var ErrUnknownServer = errors.New("no such server")

// Status is how one member sees the group and itself.
type Status struct {
	ServerID string
	Name     string
	Address  string
	State    string // Leader, Follower, Candidate, Shutdown
	Leader   Peer   // zero while nobody is known to lead
	Contact  Contact
	Last     Index  // newest entry of the log
	Snapshot Index  // newest snapshot, 0 for none
	Queued   int    // commands that wait on this member
	Former   bool   // it belonged to the group, and does not any more
	Obstacle string // what kept the group from being founded, or this member from joining, when that was tried last; empty once it belongs
	Peers    []PeerStatus
}

// PeerStatus is one server of the configuration.
type PeerStatus struct {
	Peer
	Voter  bool
	Leads  bool
	Self   bool
	Heard  time.Time // when the newest message that it answered was sent; on the leader only, zero if it answered none in its term
	Last   Index     // newest entry that it holds; on the leader only
	Answer bool      // it answered lately; on the leader only
	Behind string    // what it lacks of what was committed behindAfter ago, empty if nothing; on the leader only
}

// Status tells how this member sees the group.
func (n *Node) Status() Status {
	s := Status{
		ServerID: string(n.id), Name: n.o.Name, Address: string(n.o.Transport.LocalAddr()),
		State: n.raft.State().String(), Contact: n.Contact(), Last: Index(n.raft.LastIndex()),
		Queued: n.queue.depth(Urgent) + n.queue.depth(Bulk), Peers: n.Peers(),
		Former: n.former(),
	}
	s.Leader, _ = n.Leader()
	if at := n.obstacle.Load(); at != nil {
		s.Obstacle = *at
	}
	if list, err := n.stores.Snapshots.List(); err == nil && len(list) > 0 {
		s.Snapshot = Index(list[0].Index)
	}
	return s
}

// Peers lists the servers of the newest configuration, which may not be committed yet.
func (n *Node) Peers() []PeerStatus {
	_, leader := n.raft.LeaderWithID()
	leads, term := n.raft.State() == raft.Leader, n.raft.CurrentTerm()
	var out []PeerStatus
	for _, s := range n.raft.GetConfiguration().Configuration().Servers {
		p := PeerStatus{
			Peer:  Peer{ID: string(s.ID), Name: NameOf(string(s.ID)), Address: string(s.Address)},
			Voter: s.Suffrage == raft.Voter, Leads: s.ID == leader, Self: s.ID == n.id,
		}
		if leads && p.Self {
			p.Heard, p.Last, p.Answer = time.Now(), Index(n.raft.LastIndex()), true
		} else if seen, ok := n.seen.seen(s.ID, term); leads && ok {
			p.Heard, p.Last, p.Answer = seen.at, Index(seen.lastLog), n.answers(s.ID)
		}
		if leads {
			p.Behind = n.lacks(s.ID, term)
		}
		out = append(out, p)
	}
	return out
}

// Add makes a server part of the group, as a non-voter; it gets its vote once it caught up and stayed healthy. On the
// leader only.
//
// Errors: ErrNotLeader, ErrNotReady while no majority answers.
func (n *Node) Add(ctx context.Context, id, address string) error {
	// A new server takes entries at once. Those of a leader without a majority come to nothing, and who holds some and is no
	// member is told that it was removed (Admit).
	if err := n.VerifyWithout(ctx, id); err != nil {
		return fmt.Errorf("add %s: %w", id, err)
	}
	f := n.raft.AddNonvoter(raft.ServerID(id), raft.ServerAddress(address), 0, changeTimeout)
	return n.leaderError("add "+id, n.await(ctx, f))
}

// Promote gives a server its vote at once, caught up or not. On the leader only.
//
// Errors: ErrUnknownServer, ErrNotLeader.
func (n *Node) Promote(ctx context.Context, id string) error {
	if err := n.Barrier(ctx); err != nil { // as verifiedPromoter does, for the same reason
		return fmt.Errorf("promote: %w", err)
	}
	s, at, err := n.look(id)
	if err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	return n.leaderError("promote "+id, n.await(ctx, n.raft.AddVoter(s.ID, s.Address, at, changeTimeout)))
}

// Remove takes a server out of the group; its folder can never belong again. A leader that removes itself steps down
// and ends with ErrRemoved. Unless it is forced it asks whether the others are a majority (VerifyWithout). On the leader only.
//
// Errors: ErrUnknownServer, ErrNotLeader; ErrNotReady while the others that answer and are caught up are no majority.
func (n *Node) Remove(ctx context.Context, id string, forced bool) error {
	s, err := n.server(id)
	if err == nil && !forced {
		err = n.VerifyWithout(ctx, id)
	}
	if err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	return n.leaderError("remove "+id, n.await(ctx, n.raft.RemoveServer(s.ID, 0, changeTimeout)))
}

func (n *Node) server(id string) (raft.Server, error) {
	for _, s := range n.raft.GetConfiguration().Configuration().Servers {
		if s.ID == raft.ServerID(id) {
			return s, nil
		}
	}
	return raft.Server{}, fmt.Errorf("%s: %w; `raft peers` lists them", id, ErrUnknownServer)
}
