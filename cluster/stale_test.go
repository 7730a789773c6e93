// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"testing"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// A follower that has a snapshot takes from a message what is behind it, and commits what the message vouches for: the model is what Raft §5.3
// asks of a log that has the whole history.
func TestPropertyMessageIsTakenBehindTheSnapshot(t *testing.T) {
	t.Parallel()
	testkit.Check(t, func(t *rapid.T) {
		snapshot := rapid.Uint64Range(0, 12).Draw(t, "snapshot")
		m := &raft.AppendEntriesRequest{PrevLogEntry: rapid.Uint64Range(0, 12).Draw(t, "previous"), PrevLogTerm: 3}
		for i := range rapid.Uint64Range(0, 6).Draw(t, "entries") {
			m.Entries = append(m.Entries, &raft.Log{Index: m.PrevLogEntry + 1 + i})
		}
		m.LeaderCommitIndex = rapid.Uint64Range(0, 30).Draw(t, "commit")
		before, last := *m, m.PrevLogEntry+uint64(len(m.Entries))
		got := vouched(m, snapshot, 2)
		if m.PrevLogEntry != before.PrevLogEntry || len(m.Entries) != len(before.Entries) || m.LeaderCommitIndex != before.LeaderCommitIndex {
			t.Fatal("the leader's own message was changed, which it still reads")
		}
		if m.PrevLogEntry == 0 && len(m.Entries) == 0 {
			return // a heartbeat
		}
		var indexes []uint64
		for i := m.PrevLogEntry + 1; i <= last; i++ {
			if i > snapshot {
				indexes = append(indexes, i)
			}
		}
		wantPrevious, wantTerm := m.PrevLogEntry, m.PrevLogTerm
		if m.PrevLogEntry < snapshot {
			wantPrevious, wantTerm = snapshot, 2
		}
		if got.PrevLogEntry != wantPrevious || got.PrevLogTerm != wantTerm || len(got.Entries) != len(indexes) || got.LeaderCommitIndex != min(m.LeaderCommitIndex, last) {
			t.Fatalf("%+v became %+v; entries %v", before, got, indexes)
		}
		for i, e := range got.Entries {
			if e.Index != indexes[i] {
				t.Fatalf("entry %d is %d, want %d", i, e.Index, indexes[i])
			}
		}
	})
}

// A snapshot that comes late takes a follower nowhere: it would skip what it has applied since.
func TestSnapshotThatComesLateIsHadAlready(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGroup(t, "a", "b", "c")
		g.startAll()
		defer g.stopAll()
		for i := range 10 {
			mustPropose(t, g.leader(), put(i))
		}
		leader, follower := g.leader(), g.followers()[0]
		g.settle()
		if err := leader.node.raft.Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
		old := leader.disk.snapshots.list[0]
		for i := 10; i < 20; i++ {
			mustPropose(t, leader, put(i))
		}
		g.settle()
		if err := follower.node.compact(t.Context(), 0); err != nil { // nothing is left of which it could apply that again
			t.Fatal(err)
		}
		var answer raft.InstallSnapshotResponse
		err := leader.node.seen.InstallSnapshot(raft.ServerID(ServerID(follower.name, follower.instance)), raft.ServerAddress(follower.name), &raft.InstallSnapshotRequest{
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(leader.node.id), Addr: []byte(leader.name)},
			Term:      leader.node.raft.CurrentTerm(), SnapshotVersion: old.meta.Version, LastLogIndex: old.meta.Index, LastLogTerm: old.meta.Term,
			Configuration: raft.EncodeConfiguration(old.meta.Configuration), ConfigurationIndex: old.meta.ConfigurationIndex, Size: old.meta.Size,
		}, &answer, bytes.NewReader(old.data))
		if err != nil || !answer.Success {
			t.Fatalf("%+v, %v", answer, err)
		}
		mustPropose(t, leader, put(20))
		g.settle()
		if !has(follower.state, 19) || !has(follower.state, 20) {
			t.Error("the follower has lost what it had applied")
		}
	})
}
