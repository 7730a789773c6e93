// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// waitAway bounds how long entries wait for a peer that is out of reach. It is as good as for ever, and short enough for
// peers that were removed meanwhile.
const waitAway = 10 * time.Minute

var errAway = errors.New("out of reach")

// reach knows which peers heartbeats reach, and holds entries for others back. The library would try again and again, and
// wait twice as long each time, up to ten seconds, whether or not heartbeats arrive by then: a peer that was away
// for ten seconds would get no entries for ten more. One call that waits fails once.
type reach struct {
	mu       sync.Mutex
	away     map[raft.ServerID]*absence
	released chan struct{} // closed: this member ends
	once     sync.Once
}

// absence is a peer's, until it is back, or until somebody else waits for it.
type absence struct {
	back    chan struct{}
	waiting chan struct{} // of who waits; closed when another one does
}

func newReach() *reach {
	return &reach{away: map[raft.ServerID]*absence{}, released: make(chan struct{})}
}

// await waits until a peer is within reach, as far as one knows. Of several that wait, all but the last fail: they belong
// to terms that are over.
func (p *reach) await(id raft.ServerID) error {
	p.mu.Lock()
	a := p.away[id]
	if a == nil {
		p.mu.Unlock()
		return nil
	}
	if a.waiting != nil {
		close(a.waiting)
	}
	mine := make(chan struct{})
	a.waiting = mine
	p.mu.Unlock()
	late := time.NewTimer(waitAway)
	defer late.Stop()
	select {
	case <-a.back:
	case <-late.C:
	case <-mine:
		return errAway
	case <-p.released:
		return errAway
	}
	return nil
}

// note takes in whether a call reached a peer.
func (p *reach) note(id raft.ServerID, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.away[id]
	switch {
	case err != nil && a == nil:
		p.away[id] = &absence{back: make(chan struct{})}
	case err == nil && a != nil:
		close(a.back)
		delete(p.away, id)
	}
}

// release lets everybody go who waits, and who will.
func (p *reach) release() { p.once.Do(func() { close(p.released) }) }

// heartbeat tells whether a message is one: it carries neither entries nor what they follow (see raft's heartbeat).
func heartbeat(args *raft.AppendEntriesRequest) bool {
	return len(args.Entries) == 0 && args.PrevLogEntry == 0 && args.PrevLogTerm == 0 && args.LeaderCommitIndex == 0
}
