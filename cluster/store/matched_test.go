// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"io"
	"testing"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/store"
)

// A member may die between the snapshot that it was sent and the cut of its log by that.
func TestStartCutsALogThatTheSnapshotContradicts(t *testing.T) {
	for name, c := range map[string]struct {
		term uint64 // of the entry at which the snapshot ends, in the log; the snapshot's is 1
		last uint64 // that is left of the log
	}{"another-entry": {2, 0}, "its-entry": {1, 9}} {
		t.Run(name, func(t *testing.T) {
			inner := raft.NewInmemStore()
			g := store.NewGuard("p", store.Stores{Log: inner, Stable: inner, Snapshots: snapshotsOf(t, 5)})
			if err := g.Checked().Stable.SetUint64([]byte("CurrentTerm"), 2); err != nil {
				t.Fatal(err)
			}
			for i := uint64(3); i <= 9; i++ {
				if err := g.Checked().Log.StoreLog(&raft.Log{Index: i, Term: c.term}); err != nil {
					t.Fatal(err)
				}
			}
			found, err := g.Check(func(io.Reader) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
			if last, _ := inner.LastIndex(); last != c.last || found.Last != max(c.last, 5) {
				t.Fatalf("the log ends at %d, want %d; found %+v", last, c.last, found)
			}
		})
	}
}
