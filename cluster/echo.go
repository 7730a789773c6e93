// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// A process that was stopped (SIGSTOP, a debugger, a machine without processor time) finds messages of before in its sockets when it goes on. A
// heartbeat among them says that its leader was there when it was sent, and not when it is read: by the time of reading, a member that was cut off
// meanwhile would be in touch once more. The clocks of two machines cannot be compared, so a follower writes the time of its own clock on each answer,
// and whoever is answered gives it back in the next message: that one was sent after the answer, which is all that can be known (RFC 7323, section
// 4, measures with the same echo).
//
// The answer's own header carries a stamp behind the address of who answers, which the library does not look at; what comes back travels in a
// request's field Leader, which the library reads only where the header has no address.

// stampLen is 8 bytes that tell one run of a process from any other, and 8 of nanoseconds since its beginning.
const stampLen = 16

// echo stamps what this server answers, and gives back the stamps of others.
type echo struct {
	began time.Time
	run   [8]byte

	mu     sync.Mutex
	stamps map[raft.ServerID][]byte // the newest one of each server that answered
}

func newEcho() *echo {
	e := &echo{began: time.Now(), stamps: map[raft.ServerID][]byte{}}
	_, _ = rand.Read(e.run[:]) // never fails
	return e
}

// stamp writes this moment on an answer.
func (e *echo) stamp(answer any) {
	h := answerHeader(answer)
	if h == nil {
		return
	}
	s := append(h.Addr[:len(h.Addr):len(h.Addr)], nameMark)
	s = append(s, e.run[:]...)
	h.Addr = binary.BigEndian.AppendUint64(s, uint64(time.Since(e.began))) //nolint:gosec // it does not run backwards
}

// keep keeps the stamp on another server's answer. Releases that write none have none kept.
func (e *echo) keep(id raft.ServerID, answer any) {
	h := answerHeader(answer)
	if h == nil {
		return
	}
	_, stamp, _ := bytes.Cut(h.Addr, []byte{nameMark})
	if len(stamp) != stampLen {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stamps[id] = bytes.Clone(stamp)
}

// back is what a request to a server carries in its field Leader.
func (e *echo) back(id raft.ServerID) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]byte{nameMark}, e.stamps[id]...)
}

// sent gives a moment after which a request was surely sent to this run of this server, as late a one as can be known; zero if none is known. A request
// of a release that gives nothing back counts as sent when it is read.
func (e *echo) sent(leader []byte) time.Time {
	back, knows := bytes.CutPrefix(leader, []byte{nameMark})
	if !knows {
		return time.Now()
	}
	if len(back) != stampLen || !bytes.Equal(back[:len(e.run)], e.run[:]) {
		return time.Time{}
	}
	at := e.began.Add(time.Duration(binary.BigEndian.Uint64(back[len(e.run):]))) //nolint:gosec // ours, or it is not believed below
	if now := time.Now(); at.Before(e.began) || at.After(now) {
		return time.Time{}
	}
	return at
}

// answerHeader finds the header of an answer.
func answerHeader(answer any) *raft.RPCHeader {
	switch a := answer.(type) {
	case *raft.AppendEntriesResponse:
		return &a.RPCHeader
	case *raft.RequestVoteResponse:
		return &a.RPCHeader
	case *raft.RequestPreVoteResponse:
		return &a.RPCHeader
	case *raft.InstallSnapshotResponse:
		return &a.RPCHeader
	default:
		return nil
	}
}
