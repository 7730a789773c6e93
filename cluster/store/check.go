// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"
)

// Found is what Check saw.
type Found struct {
	Snapshot      uint64             // index of the newest snapshot, 0 for none
	SnapshotTerm  uint64             // its term
	Last          uint64             // newest index, of the log or of the snapshot
	LastTerm      uint64             // its term
	Term          uint64             // the current term that was kept
	Voted         uint64             // the newest term in which a vote was given
	For           uint32             // as in Promises
	Configuration raft.Configuration // the newest one in snapshot or log, committed or not
}

// Empty tells whether nothing was ever kept here: no entry and no snapshot.
func (f Found) Empty() bool { return f.Last == 0 }

// Promises is what was kept, and may have been told.
func (f Found) Promises() Promises {
	return Promises{Term: f.Term, Voted: f.Voted, For: f.For, Last: Position{f.LastTerm, f.Last}}
}

// Check reads everything that a start depends on. The newest snapshot must restore (it is given to restore, in full),
// the log must go on right behind it without a gap, every entry must match its checksum, and the kept term must not be
// behind the log. An error means that this folder cannot be believed; it is remembered by the Guard too.
func (g *Guard) Check(restore func(io.Reader) error) (Found, error) {
	v := view{guard: g}
	s := g.Checked()
	var f Found
	if err := g.checkSnapshot(s.Snapshots, restore, &f); err != nil {
		return f, err
	}
	if err := checkTerms(s.Stable, &f); err != nil {
		return f, err
	}
	if f.Snapshot > 0 {
		if err := cutLate(s.Log, f.Snapshot, f.SnapshotTerm); err != nil {
			return f, err
		}
	}
	if err := checkLog(s.Log, &f); err != nil {
		return f, v.read("check the log", err)
	}
	if f.Term < f.LastTerm {
		return f, v.read("check the log", fmt.Errorf("%w: kept term %d is older than term %d of entry %d",
			ErrCorrupt, f.Term, f.LastTerm, f.Last))
	}
	return f, nil
}

func checkTerms(stable raft.StableStore, f *Found) (err error) {
	if f.Term, err = stable.GetUint64([]byte(keyTerm)); err != nil && !NotFound(err) {
		return err
	}
	if f.Voted, err = stable.GetUint64([]byte(keyVoted)); err != nil && !NotFound(err) {
		return err
	}
	candidate, err := stable.Get([]byte(keyVotedFor))
	if err != nil && !NotFound(err) {
		return err
	}
	f.For = voteSum(candidate)
	return nil
}

func (g *Guard) checkSnapshot(snapshots raft.SnapshotStore, restore func(io.Reader) error, f *Found) error {
	list, err := snapshots.List()
	if err != nil || len(list) == 0 {
		return err
	}
	meta, r, err := snapshots.Open(list[0].ID)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // read only
	if err := restore(r); err != nil {
		return view{guard: g}.read("restore snapshot "+meta.ID, err)
	}
	f.Snapshot, f.SnapshotTerm, f.Last, f.LastTerm = meta.Index, meta.Term, meta.Index, meta.Term
	f.Configuration = meta.Configuration
	return nil
}

func checkLog(log raft.LogStore, f *Found) error {
	last, err := log.LastIndex()
	if err != nil {
		return err
	}
	for i := f.Snapshot + 1; i <= last; i++ { // not once if there is no log, or an older one than the snapshot
		var l raft.Log
		if err := log.GetLog(i, &l); errors.Is(err, raft.ErrLogNotFound) {
			return fmt.Errorf("%w: entry %d is missing between the newest snapshot, of %d, and the newest entry, %d",
				ErrCorrupt, i, f.Snapshot, last)
		} else if err != nil {
			return err
		}
		if l.Term < f.LastTerm {
			return fmt.Errorf("%w: entry %d has term %d, an earlier one has %d", ErrCorrupt, i, l.Term, f.LastTerm)
		}
		f.Last, f.LastTerm = l.Index, l.Term
		if l.Type == raft.LogConfiguration {
			f.Configuration = raft.DecodeConfiguration(l.Data)
		}
	}
	return nil
}
