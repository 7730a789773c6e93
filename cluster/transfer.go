// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// transfers is what is known of hand-overs of the leadership. One is under way at a time.
//
// The library (v1.7.3, leadershipTransfer) asks the goroutine that sends entries to the successor to send the rest, by a channel with one
// place, and waits for that place without looking at anything else. After an attempt that came to nothing, the question of which nobody took,
// the next one waits for ever; from then on the leader refuses whatever is proposed, in later terms, too (hashicorp/raft #696, #581, #487).
// So nobody is asked again before he answered to entries since, which tells that the goroutine is there.
type transfers struct {
	mu       sync.Mutex
	underWay raft.ServerID // empty: none is
	failed   map[raft.ServerID]time.Time
}

// begin has a transfer to a server be under way until end is called. took is when that server answered to entries last.
//
// Errors: ErrNotReady.
func (t *transfers) begin(to raft.ServerID, took time.Time) (end func(error), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch failed, ok := t.failed[to]; {
	case t.underWay != "":
		return nil, fmt.Errorf("%w: a transfer to %s is under way; ask again when it is over", ErrNotReady, t.underWay)
	case ok && !took.After(failed):
		return nil, fmt.Errorf("%w: an earlier transfer to %s came to nothing, and it has taken no entry since; look at that server first", ErrNotReady, to)
	}
	began := time.Now()
	t.underWay = to
	return func(err error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.underWay = ""
		if delete(t.failed, to); err != nil {
			t.failed[to] = began
		}
	}, nil
}

// failedAt is when a transfer to a server began that came to nothing, zero if the last one did not.
func (t *transfers) failedAt(to raft.ServerID) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed[to]
}

// transfer is the library's future of a transfer, with what is to be done when it is over.
type transfer struct {
	raft.Future
	end func(error)
}

func (t transfer) Error() error {
	err := t.Future.Error()
	t.end(err)
	return err
}

// Transfer hands the leadership to a server, or when id is empty to the voter that is furthest, of those that answer and are caught up. It
// returns once this member no longer leads.
//
// Errors: ErrUnknownServer, ErrNotLeader; ErrNotReady if id is empty and there is no such voter, while another transfer is under way, and
// if an earlier one to that server came to nothing and it took no entry since; ErrUnknownOutcome if the library does not say in time what
// became of it, as while a disk hangs.
func (n *Node) Transfer(ctx context.Context, id string) error {
	if n.raft.State() != raft.Leader {
		return fmt.Errorf("transfer leadership: %w", ErrNotLeader)
	}
	s, err := n.successor(id)
	if err != nil {
		return fmt.Errorf("transfer leadership: %w", err)
	}
	what := "transfer leadership to " + string(s.ID)
	err = n.transferTo(ctx, s, what)
	if err != nil && strings.HasSuffix(err.Error(), streamBroke) && n.raft.State() == raft.Leader {
		return n.transferTo(ctx, s, what)
	}
	return err
}

// streamBroke is what the library says (v1.7.3, pipelineReplicate) where the stream on which it sends entries to the successor broke just then. It
// sends them one by one from there on.
const streamBroke = "replication failed"

// transferTo is one attempt at a transfer.
func (n *Node) transferTo(ctx context.Context, s raft.Server, what string) error {
	within, cancel := context.WithTimeout(ctx, 2*n.o.Tuning.Election+busyFor) // the library takes as long as an election twice
	defer cancel()
	term := n.raft.CurrentTerm()
	end, err := n.transfers.begin(s.ID, n.took(within, s.ID))
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	err = n.await(within, transfer{n.raft.LeadershipTransferToServer(s.ID, s.Address), end})
	switch {
	case err != nil && within.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf("%s: %w: nothing was heard of it; `raft status` tells who leads", what, ErrUnknownOutcome)
	case errors.Is(err, raft.ErrLeadershipTransferInProgress), errors.Is(err, raft.ErrEnqueueTimeout):
		return fmt.Errorf("%s: %w: the library has not done with an earlier transfer; ask again in some seconds", what, ErrNotReady)
	case err != nil && strings.HasSuffix(err.Error(), tookLong) && n.left(ctx, term):
		return nil
	}
	return n.leaderError(what, err)
}

// tookLong is what the library says (v1.7.3, leadershipTransfer) where this member leads on for as long as an election takes after the successor was
// told to begin one. That one goes on with it.
const tookLong = "leadership transfer timeout"

// left tells whether this member ceases to lead in a term within the time of one more election.
func (n *Node) left(ctx context.Context, term uint64) bool {
	ctx, cancel := context.WithTimeout(ctx, n.o.Tuning.Election)
	defer cancel()
	for n.raft.State() == raft.Leader && n.raft.CurrentTerm() == term {
		select {
		case <-time.After(n.o.Tuning.Election / 50):
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// took is when a server last answered to entries. One that did not take an earlier transfer is sent one first, and has a moment to answer: in a
// group that has nothing to do there would be none for it.
func (n *Node) took(ctx context.Context, id raft.ServerID) time.Time {
	failed := n.transfers.failedAt(id)
	if failed.IsZero() {
		return time.Time{}
	}
	ctx, cancel := context.WithTimeout(ctx, max(n.lately(), n.o.Tuning.Election))
	defer cancel()
	asked := false
	for {
		answer := n.seen.answer()
		if p, _ := n.seen.seen(id, n.raft.CurrentTerm()); p.took.After(failed) || ctx.Err() != nil {
			return p.took
		}
		if !asked {
			asked = true
			_ = n.awaitBarrier(ctx) // if it comes to nothing, so does the wait
			continue
		}
		select {
		case <-answer:
		case <-ctx.Done():
		}
	}
}

// successor is the server with that id, or when it is empty the one to hand the leadership to. The library's own choice
// (v1.7.3, pickServer) asks how much a voter was sent, and a dead one may have been sent the most.
func (n *Node) successor(id string) (raft.Server, error) {
	if id != "" {
		return n.server(id)
	}
	voters := slices.DeleteFunc(n.Peers(), func(p PeerStatus) bool { return p.Self || !p.Voter || !p.Answer || p.Behind != "" })
	if len(voters) == 0 {
		return raft.Server{}, fmt.Errorf("%w: no other voter answered lately and is caught up", ErrNotReady)
	}
	best := slices.MaxFunc(voters, func(p, q PeerStatus) int {
		return cmp.Or(cmp.Compare(p.Last, q.Last), p.Heard.Compare(q.Heard)) // an idle group's are even: who answered last is the likeliest to live
	})
	return raft.Server{ID: raft.ServerID(best.ID), Address: raft.ServerAddress(best.Address)}, nil
}
