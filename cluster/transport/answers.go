// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"sync"

	"github.com/hashicorp/raft"
)

// mostUntaken is how many answers wait for somebody to take them. The library takes each at once, and asks no more than two things before
// the first is answered, so that somebody who takes none of so many is gone.
const mostUntaken = 64

// answers takes what a peer answers on a pipeline, whether or not somebody asks for it.
//
// The library stops taking answers at the first that is no success or has a newer term, and its sender learns of that between two messages
// only. With another message on the way it waits for room in the pipeline, which waits for somebody to take an answer: for ever. Its
// follower gets heartbeats and no entries from then on, also once it is no member any more, and the leader does not end
// (hashicorp/raft #612).
type answers struct {
	raft.AppendPipeline
	taken  chan raft.AppendFuture
	closed chan struct{}
	once   sync.Once
}

func withAnswers(p raft.AppendPipeline) *answers {
	a := &answers{AppendPipeline: p, taken: make(chan raft.AppendFuture, mostUntaken), closed: make(chan struct{})}
	go a.take()
	return a
}

// Consumer implements raft.AppendPipeline.
func (a *answers) Consumer() <-chan raft.AppendFuture { return a.taken }

// Close implements raft.AppendPipeline. It may be called again.
func (a *answers) Close() error {
	a.once.Do(func() { close(a.closed) })
	return a.AppendPipeline.Close()
}

func (a *answers) take() {
	for {
		select {
		case f := <-a.AppendPipeline.Consumer():
			select {
			case a.taken <- f:
			default:
				_ = a.Close() // whoever sends is told by the next message
				return
			}
		case <-a.closed:
			return
		}
	}
}
