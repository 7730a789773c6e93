// SPDX-License-Identifier: Apache-2.0

package member

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// A restored record begins an epoch that nobody has seen, and is of no format that somebody here may not know.
func TestPropertyRenewedRecordsAreNewerAndCanBeRead(t *testing.T) {
	of := func(epoch fsm.Epoch, format uint32) *fsm.State {
		s := fsm.New()
		proposals := []fsm.Proposal{{Command: &fsm.InitGroup{Group: "g", Format: format}}}
		for e := fsm.Epoch(2); e <= epoch; e++ {
			proposals = append(proposals, fsm.Proposal{Command: &fsm.NewEpoch{Group: "g", Epoch: e}})
		}
		if epoch == 0 {
			return s // it holds nothing
		}
		for i, p := range proposals {
			data, err := fsm.EncodeEntry(fsm.Epoch(i), []fsm.Proposal{p})
			if err != nil {
				t.Fatal(err)
			}
			s.ApplyEntries([]fsm.LogEntry{{Index: fsm.Index(i + 1), Term: 1, Data: data}})
		}
		return s
	}
	testkit.Check(t, func(t *rapid.T) {
		draw := func(what string) (fsm.Epoch, uint32) {
			return fsm.Epoch(rapid.IntRange(0, 4).Draw(t, what+" epoch")), rapid.Uint32Range(fsm.OldestFormat, fsm.NewestFormat).Draw(t, what+" format")
		}
		ours, have := draw("our")
		theirs, format := draw("their")
		proposals, err := renewAfter(of(ours, have), "restore")(cluster.Record{State: of(theirs, format)})
		switch {
		case theirs == 0:
			if err == nil {
				t.Fatal("a record of no group is renewed")
			}
		case ours != 0 && format > have:
			if !errors.Is(err, admin.Invalid) {
				t.Fatalf("format %d becomes %d: %v", have, format, err)
			}
		case err != nil:
			t.Fatal(err)
		default:
			if next := proposals[0].Command.(*fsm.NewEpoch).Epoch; next <= ours || next <= theirs {
				t.Fatalf("after epochs %d and %d comes %d", ours, theirs, next)
			}
		}
	})
}
