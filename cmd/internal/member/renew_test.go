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
		case ours != 0 && (format > have || have < fsm.FormatRestores):
			if !errors.Is(err, admin.Invalid) {
				t.Fatalf("format %d becomes %d: %v", have, format, err)
			}
		case err != nil:
			t.Fatal(err)
		default:
			next := proposals[0].Command.(*fsm.NewEpoch)
			if next.Epoch <= ours || next.Epoch <= theirs {
				t.Fatalf("after epochs %d and %d comes %d", ours, theirs, next.Epoch)
			}
			if named := next.Lineage != (fsm.Lineage{}); named != (ours != 0 && format >= fsm.FormatRestores) {
				t.Fatalf("a backup of format %d in our epoch %d is of lineage %+v", format, ours, next.Lineage)
			}
		}
	})
}

// A restore leaves the lineage of a group's log as it was, however often; two recovers of one record make two.
func TestRecoverBeginsALineageAndARestoreDoesNot(t *testing.T) {
	after := func(s *fsm.State, proposals []cluster.Proposal) *fsm.State {
		_, epoch, _ := s.Identity()
		data, err := fsm.EncodeEntry(epoch, proposals)
		if err != nil {
			t.Fatal(err)
		}
		if out := s.ApplyEntries([]fsm.LogEntry{{Index: s.Applied() + 1, Term: 1, Data: data}})[0][0]; out.Err() != nil {
			t.Fatal(out.Err())
		}
		return s
	}
	record := func() *fsm.State {
		return after(fsm.New(), []cluster.Proposal{{Command: &fsm.InitGroup{Group: "g", Format: fsm.NewestFormat}}})
	}
	live := record()
	for range 3 {
		before := live.Read().Group().Of()
		proposals, err := renewAfter(live, "restore")(cluster.Record{State: record()})
		if err != nil {
			t.Fatal(err)
		}
		live = after(record(), proposals)
		if now := live.Read().Group().Of(); now != before {
			t.Fatalf("a restore makes %+v of %+v", now, before)
		}
	}
	var lineages []fsm.Lineage
	for range 2 {
		proposals, err := recovered(cluster.Record{State: record()})
		if err != nil {
			t.Fatal(err)
		}
		lineages = append(lineages, after(record(), proposals).Read().Group().Of())
	}
	if lineages[0] == lineages[1] || lineages[0].Epoch != lineages[1].Epoch || lineages[0].Epoch <= live.Read().Group().Of().Epoch {
		t.Fatalf("two recovers of one record make %+v and %+v", lineages[0], lineages[1])
	}
}
