// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/binary"
	"sync"
	"time"
)

// A heartbeat says that its leader is there, and nothing of what that leader committed: the library's bear no index. A follower that gets
// heartbeats and no entries (links that flap, a path that loses what is larger than a packet, a disk that hangs) would pass for current as long
// as they come. So a leader of ours writes its commit index behind the echo in each request. A follower whose record has all of that is as
// current as the moment after which the request was surely sent.
//
// A leader speaks of its commit index only once it committed something of its own term: before that it may know of less than was committed.

const (
	// commitLen is 8 bytes of a commit index.
	commitLen = 8
	// grain is how exactly a moment has to be known. Requests follow each other in less.
	grain = 20 * time.Millisecond
	// mostMoments bounds what is kept for a record that falls behind: five seconds of it.
	mostMoments = 256
)

// freshness keeps as of when this member's record is complete.
type freshness struct {
	mu      sync.Mutex
	at      time.Time
	pending []completeness // in the order of both; not reached yet
}

// completeness says up to which index the log was committed at a time, at most.
type completeness struct {
	at     time.Time
	commit uint64
}

// learn takes in that no more was committed at a time than up to an index.
func (f *freshness) learn(at time.Time, commit uint64) {
	if at.IsZero() || commit == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	last := completeness{at: f.at}
	if n := len(f.pending); n > 0 {
		last = f.pending[n-1]
	}
	switch next := (completeness{at, max(commit, last.commit)}); {
	case !at.After(last.at): // messages overtake each other
	case next.commit == last.commit, len(f.pending) == mostMoments:
		f.pending[len(f.pending)-1] = next
	case len(f.pending) > 0 && at.Sub(last.at) < grain:
	default:
		f.pending = append(f.pending, next)
	}
}

// asOf is the newest moment as of which a record is complete that has everything up to an index; zero if none is known.
func (f *freshness) asOf(applied uint64) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for n < len(f.pending) && f.pending[n].commit <= applied {
		f.at = f.pending[n].at
		n++
	}
	f.pending = append(f.pending[:0], f.pending[n:]...)
	return f.at
}

// withCommit writes a commit index behind an echo; 0 if nothing may be said yet.
func withCommit(echo []byte, commit uint64) []byte {
	return binary.BigEndian.AppendUint64(echo, commit)
}

// cutCommit takes it off again. Leaders of builds before write none.
func cutCommit(leader []byte) (echo []byte, commit uint64, says bool) {
	at := len(leader) - commitLen
	if (at == 1 || at == 1+stampLen) && leader[0] == nameMark {
		return leader[:at], binary.BigEndian.Uint64(leader[at:]), true
	}
	return leader, 0, false
}
