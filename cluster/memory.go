// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"sync"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/store"
)

// Known is what a member remembers that a server told it of itself, since this member started: all of it was kept on that server's disk before
// it was told.
type Known struct {
	Term  uint64         // the newest term that it followed, led, or gave a vote in
	Voted uint64         // the newest term in which it gave this member its vote
	Last  store.Position // it held all entries up to here
	told  uint64         // the term in which it said so of Last first
	// Held is where the log of the member ends that remembers all this, committed or not.
	Held store.Position
}

// promises is what the disk of that server has to hold at least.
func (k Known) promises() store.Promises {
	return store.Promises{Term: k.Term, Voted: k.Voted, Last: k.Last}
}

// memory is what this member remembers of others. It does not survive the process.
type memory struct {
	mu    sync.Mutex
	known map[raft.ServerID]Known
}

func (m *memory) of(id raft.ServerID) Known {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known[id]
}

func (m *memory) note(id raft.ServerID, told Known) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[raft.ServerID]Known{}
	}
	k := m.known[id]
	k.Term, k.Voted = max(k.Term, told.Term), max(k.Voted, told.Voted)
	if k.Last.Before(told.Last) {
		k.Last, k.told = told.Last, told.told
	}
	m.known[id] = k
}

// entriesIn is where a log ends at least that holds what a message carries.
func entriesIn(args *raft.AppendEntriesRequest) store.Position {
	if n := len(args.Entries); n > 0 {
		return store.Position{Term: args.Entries[n-1].Term, Index: args.Entries[n-1].Index}
	}
	return store.Position{Term: args.PrevLogTerm, Index: args.PrevLogEntry}
}

// asks notes what a server says of itself by asking for something: who leads and who wants to holds what it names. What it would have after
// the election of a pre-vote it has not yet.
func (m *memory) asks(command any) {
	h := header(command)
	if h == nil || len(h.ID) == 0 {
		return
	}
	told := Known{}
	switch c := command.(type) {
	case *raft.AppendEntriesRequest:
		told = leads(c.Term, entriesIn(c))
	case *raft.InstallSnapshotRequest:
		told = leads(c.Term, store.Position{Term: c.LastLogTerm, Index: c.LastLogIndex})
	case *raft.RequestVoteRequest, *raft.RequestPreVoteRequest:
		told.Last, told.told, _ = candidacy(c)
	}
	if c, ok := command.(*raft.RequestVoteRequest); ok {
		told.Term = c.Term
	}
	m.note(raft.ServerID(h.ID), told)
}

// leads is what somebody says of himself by sending what he holds, as the leader of a term. The library's senders outlive a leadership by as long
// as one message takes, and then send what the log holds by now. So an entry of a later term is sent in a term that is not known, which may be
// later than that of a request for votes with less that comes after it.
func leads(term uint64, last store.Position) Known {
	if last.Term > term {
		return Known{Term: term}
	}
	return Known{Term: term, Last: last, told: term}
}

// less tells whether a candidate says that it holds less than it did: its disk is an older one, and so may be the vote that it asks for with it.
// Messages overtake each other: what it said in the term in which it asks it may have said later.
func (m *memory) less(command any) bool {
	last, in, ok := candidacy(command)
	if !ok {
		return false
	}
	held := m.of(raft.ServerID(header(command).ID))
	return held.told < in && last.Before(held.Last)
}

// candidacy is where the log of somebody ends who asks for a vote, and in which term he is; not ok: he asks for something else.
func candidacy(command any) (last store.Position, in uint64, ok bool) {
	switch c := command.(type) {
	case *raft.RequestVoteRequest:
		return store.Position{Term: c.LastLogTerm, Index: c.LastLogIndex}, c.Term, true
	case *raft.RequestPreVoteRequest:
		return store.Position{Term: c.LastLogTerm, Index: c.LastLogIndex}, c.Term - 1, true
	default:
		return store.Position{}, 0, false
	}
}

// acknowledges notes what a follower's answer says that it holds.
func (m *memory) acknowledges(id raft.ServerID, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) {
	told := Known{Term: resp.Term, told: resp.Term}
	if resp.Success {
		told.Last = entriesIn(args)
	}
	m.note(id, told)
}
