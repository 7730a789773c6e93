// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/raft"
)

// The library takes a snapshot after so many entries, and leaves so many behind it, whatever they take. An entry may take twelve megabytes, so
// a log is bounded in bytes as well, by Tuning.MaxLogBytes: a snapshot is due at half of it, and a quarter stays for followers a little behind.
// The last quarter is for what comes while a snapshot is written. When it is taken, and what then stays, is said here alone; the library's own clock
// never strikes.
const libraryInterval = 365 * 24 * time.Hour

// compactionPause is between two snapshots: one may be due that cannot be taken yet.
const compactionPause = time.Second

// runCompaction takes a snapshot whenever one is due.
func (n *Node) runCompaction(ctx context.Context) {
	interval := n.o.Tuning.SnapshotInterval
	for {
		// Members of a group, whose logs are alike, do not all write a snapshot at the same moment.
		at := n.o.Tuning.MaxLogBytes/2 - rand.N(n.o.Tuning.MaxLogBytes/8+1)
		entries := n.o.Tuning.SnapshotThreshold
		select {
		case <-ctx.Done():
			return
		case <-n.outlived:
			n.beginLogAnew(ctx)
			continue
		case <-time.After(interval + rand.N(interval)):
		case <-n.meter.Stored(n.untilDue(at)):
			if n.untilDue(at) > 0 {
				continue // there was nothing to take one of, and now there is
			}
			entries = 0
		}
		if behind, _ := n.meter.Behind(n.snapshotted()); behind == 0 || behind < entries {
			continue
		}
		_ = n.compact(ctx, n.mayStay()) // the library says why there is none, and the next one is due at once
		select {
		case <-ctx.Done():
			return
		case <-time.After(compactionPause):
		}
	}
}

// beginLogAnew has the log begin behind a backup that the group restored: what brought it takes room that the record does not, would be read
// again at each start, and can be read by no release of an older format, to which there is a way back by a backup.
func (n *Node) beginLogAnew(ctx context.Context) {
	if err := n.compact(ctx, 0); err != nil && ctx.Err() == nil {
		n.log.Warn("the log was not shortened after a backup was restored; that comes with the next snapshot", "error", err)
	}
}

// untilDue is how many bytes may still be stored until a snapshot is due, by so many behind the last one or by what all takes.
func (n *Node) untilDue(at uint64) uint64 {
	entries, bytes := n.meter.Behind(n.snapshotted())
	if entries == 0 {
		return 1 // a snapshot would be the one that there is
	}
	limit := n.o.Tuning.MaxLogBytes
	return min(at-min(at, bytes), limit-min(limit, n.meter.Bytes()))
}

// snapshotted is the index of the newest snapshot, 0 for none.
func (n *Node) snapshotted() uint64 {
	list, err := n.stores.Snapshots.List()
	if err != nil || len(list) == 0 {
		return 0 // a failure ends this member
	}
	return list[0].Index
}

// mayStay is how many entries may stay behind a snapshot that is taken now.
func (n *Node) mayStay() uint64 {
	return n.meter.Newest(n.o.Tuning.TrailingLogs, n.o.Tuning.MaxLogBytes/4)
}

// compact takes a snapshot and keeps no more than so many entries behind it.
func (n *Node) compact(ctx context.Context, entries uint64) error {
	select {
	case n.compacting <- struct{}{}:
		defer func() { <-n.compacting }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := n.keepBehind(entries); err != nil {
		return err
	}
	var snapshot raft.SnapshotFuture
	err := n.await(ctx, lazily(func() error {
		snapshot = n.raft.Snapshot()
		return snapshot.Error()
	}))
	if err := errors.Join(err, n.keepBehind(n.o.Tuning.TrailingLogs)); err != nil {
		return err
	}
	if first, err := n.stores.Log.FirstIndex(); err != nil || first > 0 && first <= n.effective()+1 {
		return err
	}
	// The log does not tell any more that what is behind the newest command needs no applying.
	meta, whole, err := snapshot.Open()
	if err != nil {
		return err
	}
	n.watch.Lock()
	n.watch.effective = max(n.watch.effective, meta.Index)
	n.watch.Unlock()
	n.touch()
	return whole.Close()
}

// keepBehind has the library keep so many entries behind the next snapshot.
func (n *Node) keepBehind(entries uint64) error {
	c := n.raft.ReloadableConfig()
	c.TrailingLogs = entries
	return n.raft.ReloadConfig(c)
}

// lazily is a raft.Future that begins when it is asked for.
type lazily func() error

func (f lazily) Error() error { return f() }

// Snapshot is one on this member's disk.
type Snapshot struct {
	ID    string // the name of its folder
	Index Index  // of the last entry in it
	Term  uint64 // likewise
	Bytes int64
}

// Snapshot writes a snapshot of this member's record now, so that its log gets shorter. It returns the newest one: when nothing was applied
// since, that is an earlier one.
func (n *Node) Snapshot(ctx context.Context) (Snapshot, error) {
	if err := n.compact(ctx, n.mayStay()); err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return Snapshot{}, fmt.Errorf("snapshot: %w", err)
	}
	list, err := n.stores.Snapshots.List()
	if err != nil {
		return Snapshot{}, fmt.Errorf("snapshot: %w", err)
	}
	if len(list) == 0 {
		return Snapshot{}, fmt.Errorf("snapshot: %w: nothing was committed yet", ErrNotReady)
	}
	return Snapshot{ID: list[0].ID, Index: Index(list[0].Index), Term: list[0].Term, Bytes: list[0].Size}, nil
}
