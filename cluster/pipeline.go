// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"sync"

	"github.com/hashicorp/raft"
)

// mostUntaken is how many answers wait for the library to take them. It takes each at once, and asks no more than two things before the
// first is answered, so that when it takes none of so many nobody takes any.
const mostUntaken = 64

// pipeline carries entries to a follower that is up to date. It names the addressee, and takes what the follower answers, whether or not
// the library asks for it.
//
// The library stops taking answers at the first that is no success or has a newer term, and its sender learns of that between two messages
// only. With another message on the way it waits for room in the pipeline, which waits for somebody to take an answer: for ever. Its
// follower gets heartbeats and no entries from then on, also once it is no member any more, and the leader does not end
// (hashicorp/raft #612).
type pipeline struct {
	raft.AppendPipeline
	to     raft.ServerID
	seen   *observer
	taken  chan raft.AppendFuture
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex
	pending map[*raft.AppendEntriesResponse]peerSeen // what was known before each message that is on the way
}

func newPipeline(p raft.AppendPipeline, to raft.ServerID, seen *observer) *pipeline {
	out := &pipeline{
		AppendPipeline: p, to: to, seen: seen,
		taken: make(chan raft.AppendFuture, mostUntaken), closed: make(chan struct{}), pending: map[*raft.AppendEntriesResponse]peerSeen{},
	}
	go out.take()
	return out
}

// AppendEntries implements raft.AppendPipeline. The pipeline below may hold that a message is no news: then there is no answer either.
func (p *pipeline) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	if err := cmp.Or(p.seen.closed(), p.seen.trusts(p.to)); err != nil {
		return nil, err
	}
	before := p.seen.asking(p.to, args.Term)
	p.mu.Lock()
	p.pending[resp] = before
	p.mu.Unlock()
	f, err := p.AppendPipeline.AppendEntries(p.seen.entries(args, p.to), resp)
	if f == nil || err != nil {
		p.answerTo(resp)
	}
	return f, err
}

// Consumer implements raft.AppendPipeline.
func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.taken }

// Close implements raft.AppendPipeline. It may be called again.
func (p *pipeline) Close() error {
	p.once.Do(func() { close(p.closed) })
	return p.AppendPipeline.Close()
}

func (p *pipeline) take() {
	for {
		select {
		case f := <-p.AppendPipeline.Consumer():
			if before := p.answerTo(f.Response()); p.seen.hears(p.to, f.Error()) == nil && p.seen.answered(p.to, f.Start(), before, f.Request(), f.Response()) != nil {
				_ = p.Close() // it does not count
				return
			}
			select {
			case p.taken <- f:
			default:
				_ = p.Close() // whoever sends is told by the next message
				return
			}
		case <-p.closed:
			return
		}
	}
}

// answerTo takes a message off those that are on the way, and gives what was known before it was sent.
func (p *pipeline) answerTo(resp *raft.AppendEntriesResponse) peerSeen {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.pending[resp]
	delete(p.pending, resp)
	return before
}
