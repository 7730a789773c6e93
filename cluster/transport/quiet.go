// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// sayAgain is after what time a follower is told what it knows: a safeguard, should a connection be lost in a way that
// heartbeats do not show.
const sayAgain = 250 * time.Millisecond

// Messages is a raft.Transport that does not repeat itself. Every cluster.Tuning.CommitNotice the library tells each
// follower the commit index, whether or not it has moved; of that, Messages sends what is news. Heartbeats are always
// sent: they tell both ends that the other one lives.
type Messages struct {
	*raft.NetworkTransport

	mu     sync.Mutex
	losses map[raft.ServerID]*atomic.Uint64
}

// lossesOf counts the messages to a peer that failed.
func (m *Messages) lossesOf(id raft.ServerID) *atomic.Uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.losses[id]
	if !ok {
		n = new(atomic.Uint64)
		m.losses[id] = n
	}
	return n
}

// AppendEntries implements raft.Transport. Heartbeats go this way.
func (m *Messages) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	err := m.NetworkTransport.AppendEntries(id, target, args, resp)
	if err != nil {
		m.lossesOf(id).Add(1)
	}
	return err
}

// AppendEntriesPipeline implements raft.Transport.
func (m *Messages) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	p, err := m.NetworkTransport.AppendEntriesPipeline(id, target)
	if err != nil {
		return nil, err
	}
	return &pipeline{AppendPipeline: p, losses: m.lossesOf(id)}, nil
}

// pipeline is a connection on which a follower is told one thing after another. It belongs to one goroutine.
type pipeline struct {
	raft.AppendPipeline
	losses *atomic.Uint64
	said   news
	at     time.Time // zero: nothing was said
}

// news is what a message without entries tells.
type news struct {
	term, prevTerm, prev, commit uint64
	losses                       uint64 // before it was said: a peer that was lost may have forgotten
}

// AppendEntries implements raft.AppendPipeline. What is no news is not sent: there is no future then, which the library
// does not look at, and Consumer tells nothing of it.
func (p *pipeline) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	say := news{args.Term, args.PrevLogTerm, args.PrevLogEntry, args.LeaderCommitIndex, p.losses.Load()}
	now := time.Now()
	if len(args.Entries) == 0 && say == p.said && !p.at.IsZero() && now.Sub(p.at) < sayAgain {
		return nil, nil
	}
	if n := len(args.Entries); n > 0 {
		say.prev, say.prevTerm = args.Entries[n-1].Index, args.Entries[n-1].Term
	}
	p.said, p.at = say, now
	return p.AppendPipeline.AppendEntries(args, resp)
}
