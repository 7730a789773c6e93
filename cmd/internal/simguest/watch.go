// SPDX-License-Identifier: Apache-2.0

//go:build wasip1 || simulated

package main

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/store"
	"fairlead.io/fairlead/cmd/internal/member"
	"fairlead.io/fairlead/sim/guest/abi"
	"fairlead.io/fairlead/sim/guest/fact"
)

// What follows lets the world see what a member does to its record. It changes nothing, but that entries are applied
// one at a time.

func tell(f fact.Fact) { abi.Observe(uint32(f.Kind()), fact.Encode(f)) }

// watchRecord stands before the record.
func (g *guest) watchRecord(r cluster.Record) cluster.Machine {
	return watched{r, stray{r, g.start.Name}}
}

type watched struct {
	cluster.Record
	stray stray
}

// ApplyEntries implements cluster.Machine.
func (w watched) ApplyEntries(entries []cluster.LogEntry) [][]cluster.Outcome {
	out := make([][]cluster.Outcome, 0, len(entries))
	for _, e := range entries {
		out = append(out, w.stray.apply(e)...)
		tell(fact.Applied{Index: uint64(e.Index), Term: e.Term, Entry: e.Data, Digest: w.Read().Digest().String()})
	}
	return out
}

// Restore implements cluster.Machine.
func (w watched) Restore(r io.Reader) error {
	_, before, _ := w.Identity()
	var whole bytes.Buffer
	err := w.Record.Restore(io.TeeReader(r, &whole))
	if err != nil {
		return err
	}
	view := w.Read()
	f := fact.Restored{Index: uint64(view.Revision().Index), Digest: view.Digest().String()}
	if view.Group().Epoch > max(before, 1) {
		f.Snapshot = whole.Bytes()
	}
	tell(f)
	return nil
}

// ReplaceBy implements cluster.Machine.
func (w watched) ReplaceBy(backup cluster.Machine, renewal cluster.LogEntry) []cluster.Outcome {
	out := w.Record.ReplaceBy(backup, renewal)
	var whole bytes.Buffer
	if err := w.Freeze().Write(&whole); err != nil {
		panic(err) // it was read a moment ago
	}
	view := w.Read()
	tell(fact.Restored{Index: uint64(renewal.Index), Digest: view.Digest().String(), Snapshot: whole.Bytes()})
	return out
}

// tellHolds tells how far a folder goes. What cannot be read the member finds out, too.
func tellHolds(s store.Stores) {
	last, _ := s.Log.LastIndex()
	list, _ := s.Snapshots.List()
	for _, snapshot := range list {
		last = max(last, snapshot.Index)
	}
	tell(fact.Holds{Last: last})
}

// watchedTransport tells which snapshots are sent, and who follows and votes.
type watchedTransport struct {
	cluster.Transport
	mu      sync.Mutex
	follows map[raft.ServerID]bool // of whom it was told already
}

// AppendEntries implements raft.Transport.
func (t *watchedTransport) AppendEntries(id raft.ServerID, to raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	began := time.Now()
	err := t.Transport.AppendEntries(id, to, args, resp)
	t.mu.Lock()
	known := t.follows[id]
	t.follows[id] = err == nil && resp.Success
	t.mu.Unlock()
	if err == nil && resp.Success && !known {
		tell(fact.Answered{From: cluster.NameOf(string(id)), Does: "follows", Took: time.Since(began)})
	}
	return err
}

// RequestVote implements raft.Transport.
func (t *watchedTransport) RequestVote(id raft.ServerID, to raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	began := time.Now()
	err := t.Transport.RequestVote(id, to, args, resp)
	if err == nil && resp.Granted {
		tell(fact.Answered{From: cluster.NameOf(string(id)), Does: "votes for", Took: time.Since(began)})
	}
	return err
}

// InstallSnapshot implements raft.Transport.
func (t *watchedTransport) InstallSnapshot(id raft.ServerID, to raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse,
	data io.Reader,
) error {
	tell(fact.Sends{To: cluster.NameOf(string(id)), Index: args.LastLogIndex})
	return t.Transport.InstallSnapshot(id, to, args, resp, data)
}

// watchLeading is a cluster.LeaderFunc.
func watchLeading(ctx context.Context, term uint64) {
	tell(fact.Leading{Term: term, On: true})
	<-ctx.Done()
	tell(fact.Leading{Term: term})
}

// lookEvery is how often a member's contact is looked at.
const lookEvery = 250 * time.Millisecond

// watchContact tells when a member begins or ceases to be in touch with a quorum, as its announcer sees it.
func watchContact(ctx context.Context, m *member.Member) error {
	var told, quorum bool
	for ctx.Err() == nil {
		c := m.Contact()
		now := !c.AsOf.IsZero() && time.Since(c.AsOf) < demoteAfter
		if !told || now != quorum {
			tell(fact.Contact{Quorum: now, Commit: uint64(c.Commit), Applied: uint64(c.Applied)})
			told, quorum = true, now
		}
		time.Sleep(lookEvery)
	}
	return nil
}
