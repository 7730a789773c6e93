// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"io"

	"github.com/hashicorp/raft"
)

// What a leader sends may begin before what this member has in its newest snapshot: its own is an older one, or its message was long on
// its way. All of that was committed, so that this member has it, whoever sends it (Ongaro and Ousterhout, §5.3 and §7). The library does
// not know that: it refuses entries whose predecessor it has in no log any more, until the leader sends a snapshot, by which it would go
// back to what was before, and skip what it has applied since.

// vouched gives a message as the library may take it: it begins no earlier than behind the newest snapshot, and commits nothing beyond what
// it brings or builds upon. The library takes a commit index for one of its whole log, the end of which may be another one than the leader's.
func vouched(m *raft.AppendEntriesRequest, snapshot, term uint64) *raft.AppendEntriesRequest {
	if m.PrevLogEntry == 0 && len(m.Entries) == 0 {
		return m // a heartbeat
	}
	out := *m
	out.LeaderCommitIndex = min(m.LeaderCommitIndex, m.PrevLogEntry+uint64(len(m.Entries)))
	if m.PrevLogEntry < snapshot {
		known := min(snapshot-m.PrevLogEntry, uint64(len(m.Entries)))
		out.Entries = m.Entries[known:]
		out.PrevLogEntry, out.PrevLogTerm = snapshot, term
	}
	return &out
}

// stale tells whether a snapshot has nothing that this member has not, and is of the leader that it follows.
func (o *observer) stale(m *raft.InstallSnapshotRequest) bool {
	library := o.library.Load()
	return library != nil && m.Term == library.CurrentTerm() && m.LastLogIndex <= library.AppliedIndex()
}

// have answers a stale snapshot as if it had been installed.
func have(rpc raft.RPC, m *raft.InstallSnapshotRequest) raft.RPCResponse {
	_, err := io.Copy(io.Discard, io.LimitReader(rpc.Reader, m.Size)) // what follows on the connection is the next message
	return raft.RPCResponse{Response: &raft.InstallSnapshotResponse{Term: m.Term, Success: err == nil}, Error: err}
}
