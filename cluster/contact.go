// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"time"

	"github.com/hashicorp/raft"
)

// Contact is what this member may believe about the group. It is what the announcing of routes hangs on.
type Contact struct {
	// At is when this member was surely in touch last: a leader of the current term sent something to a follower after that, a leader had heard
	// from a majority. With a monotonic reading; zero if never in this run.
	At time.Time
	// AsOf is the newest moment as of which this member's record is known to be complete: all that was committed by then is applied. It is
	// no later than At, and stays behind where a leader is heard and its entries do not arrive. Zero if none is known in this run.
	AsOf time.Time
	// Leads tells whether this member leads.
	Leads bool
	// Term is the current term.
	Term uint64
	// Commit is the newest index that a leader said, in this run, is committed, in a heartbeat or with entries; 0 if none did. A restart
	// forgets it, because the library does not keep it.
	Commit Index
	// Applied is the index up to which this member's record is complete.
	Applied Index
	// Writing is for how long a write of the log or of a vote has been waited for, 0 if none is under way.
	Writing time.Duration
}

// CaughtUp tells whether this member applied all that it knows to be committed, and knows something.
func (c Contact) CaughtUp() bool { return c.Commit > 0 && c.Applied >= c.Commit }

// Contact tells how things stand now. It is cheap.
func (n *Node) Contact() Contact {
	c := Contact{Term: n.raft.CurrentTerm(), Leads: n.raft.State() == raft.Leader, Writing: n.guard.Waits()}
	if c.Leads {
		n.seen.committed(n.raft.CommitIndex())
	}
	// On a follower the library's commit index says nothing: it reaches only as far as the follower's own log.
	heard, commit := n.seen.last()
	c.At, c.Commit = heard, Index(commit)
	if at := n.ledUntil(c); at.After(c.At) {
		c.At = at
	}
	c.Applied = Index(n.effective())
	if c.Leads {
		n.seen.fresh.learn(c.At, n.seen.committedIn(c.Term))
	}
	c.AsOf = n.seen.fresh.asOf(uint64(c.Applied))
	return c
}

// ledUntil is when this member last heard from a majority as leader, of this term or the last one that it led: who steps
// down was in touch until then. Zero if it never led, or is the only voter and leads no more.
func (n *Node) ledUntil(c Contact) time.Time {
	if c.Leads {
		n.led.Store(c.Term)
	}
	term := n.led.Load()
	if term == 0 {
		return time.Time{}
	}
	now := time.Now()
	at := n.seen.quorumAt(n.raft.GetConfiguration().Configuration(), n.id, term, 0, now)
	if !c.Leads && at.Equal(now) {
		return time.Time{}
	}
	return at
}

// effective is the index up to which everything is applied. The machine sees commands only, so entries behind its
// newest one that carry no command (the first of a leader's term, barriers) count as applied once they are committed.
func (n *Node) effective() uint64 {
	applied := n.fsm.position()
	commit := n.raft.CommitIndex()
	n.watch.Lock()
	from := max(applied, n.watch.effective)
	n.watch.Unlock()
	at := from
	for at < commit {
		var l raft.Log
		if err := n.stores.Log.GetLog(at+1, &l); err != nil || l.Type == raft.LogCommand || l.Type == raft.LogConfiguration {
			break
		}
		at++
	}
	if at > from {
		n.watch.Lock()
		n.watch.effective = max(n.watch.effective, at)
		n.watch.Unlock()
	}
	return at
}

// Changed gives a channel that is closed at the next change of Commit, Applied or leadership. Take the channel first
// and look second, or a change slips through between.
func (n *Node) Changed() <-chan struct{} {
	n.watch.Lock()
	defer n.watch.Unlock()
	return n.watch.changed
}

// AwaitApplied returns once this member's record is complete up to index.
func (n *Node) AwaitApplied(ctx context.Context, index Index) error {
	for {
		changed := n.Changed()
		if Index(n.effective()) >= index {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-n.failed:
			return ErrStopped
		case <-n.stopped:
			return ErrStopped
		}
	}
}

// Peer is another member, or this one.
type Peer struct {
	ID      string // Raft server id: name and instance
	Name    string
	Address string // of the Raft port
}

// Leader is who leads, as far as this member knows.
func (n *Node) Leader() (Peer, bool) {
	address, id := n.raft.LeaderWithID()
	if id == "" {
		return Peer{}, false
	}
	return Peer{ID: string(id), Name: NameOf(string(id)), Address: string(address)}, true
}

// leaderAndTerm is who leads, as far as this member knows, and in which term.
func (n *Node) leaderAndTerm() (leader Peer, term uint64, ok bool) {
	for {
		term = n.raft.CurrentTerm()
		leader, ok = n.Leader()
		if n.raft.CurrentTerm() == term {
			return leader, term, ok
		}
	}
}

// awaitLaterLeader waits until this member knows who leads a later term than that, and is false if ctx ends first.
func (n *Node) awaitLaterLeader(ctx context.Context, term uint64) bool {
	for {
		changed := n.Changed()
		if n.raft.CurrentTerm() > term { // the library forgets a leader before its term ends
			if _, ok := n.Leader(); ok {
				return true
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}
