// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"io"
	"testing"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/store"
)

// A member may die between the snapshot that it was sent and the cut of its log by that. It starts, whatever its log had.
func TestStartCutsALogThatTheSnapshotContradicts(t *testing.T) {
	for name, c := range map[string]struct {
		snapshot    uint64 // its term; it ends at entry 5
		term        uint64 // of the log's entries
		first, last uint64 // of them
		left        uint64 // the last one that is left
	}{
		"another-entry":    {1, 2, 3, 9, 0},
		"an-older-entry":   {2, 1, 3, 9, 0}, // what follows it is older than the snapshot
		"its-entry":        {1, 1, 3, 9, 9},
		"ends-before":      {2, 1, 1, 4, 0},
		"ends-right-there": {1, 1, 1, 5, 5},
		"begins-behind":    {1, 1, 6, 9, 9},
	} {
		t.Run(name, func(t *testing.T) {
			inner := raft.NewInmemStore()
			g := store.NewGuard("p", store.Stores{Log: inner, Stable: inner, Snapshots: snapshotsUpTo(t, 5, c.snapshot)})
			if err := g.Checked().Stable.SetUint64([]byte("CurrentTerm"), 2); err != nil {
				t.Fatal(err)
			}
			for i := c.first; i <= c.last; i++ {
				if err := g.Checked().Log.StoreLog(&raft.Log{Index: i, Term: c.term}); err != nil {
					t.Fatal(err)
				}
			}
			found, err := g.Check(func(io.Reader) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
			if last, _ := inner.LastIndex(); last != c.left || found.Last != max(c.left, 5) {
				t.Fatalf("the log ends at %d, want %d; found %+v", last, c.left, found)
			}
		})
	}
}
