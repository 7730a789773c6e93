// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/internal/testkit"
)

// The format is raised to what every server knows by its own word, and to nothing newer.
func TestPropertyNobodyIsLeftBehindByFinalize(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	alice := w.client(pki.Operator, "alice", "m2")
	testkit.Check(t, func(t *rapid.T) {
		var formats []uint32
		w.group.edit(func() {
			w.group.done = nil
			for i := range w.group.members {
				w.group.members[i].Format = rapid.Uint32Range(1, 4).Draw(t, "format")
				formats = append(formats, w.group.members[i].Format)
			}
		})
		wanted := rapid.Uint32Range(0, 5).Draw(t, "wanted")
		answer, err := alice.Raft.Finalize(w.ctx(), &fairleadv1.FinalizeRequest{Format: wanted})
		least := slices.Min(formats)
		switch {
		case wanted > least:
			if !errors.Is(err, admin.Invalid) || len(w.group.history()) > 0 || !strings.Contains(err.Error(), "upgrade it first") {
				t.Fatalf("format %d of %v: %v, %v", wanted, formats, err, w.group.history())
			}
		case err != nil:
			t.Fatalf("format %d of %v: %v", wanted, formats, err)
		case wanted == 0 && answer.GetFormat() != least, wanted != 0 && answer.GetFormat() != wanted:
			t.Fatalf("format %d of %v: it is %d", wanted, formats, answer.GetFormat())
		}
	})
}

// A member that is away may come back as anything. An operator may know better.
func TestFinalizeWaitsForThoseWhoDoNotSayWhatTheyRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.member("m3").stop()
	alice := w.client(pki.Operator, "alice", "m1")
	_, err := alice.Raft.Finalize(w.ctx(), &fairleadv1.FinalizeRequest{})
	if !errors.Is(err, admin.NotReady) || !strings.Contains(err.Error(), "m3-x") || len(w.group.history()) > 0 {
		t.Fatalf("%v, %v", err, w.group.history())
	}
	if _, err := alice.Raft.Finalize(w.ctx(), &fairleadv1.FinalizeRequest{Force: true}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"m1: finalize for operator/alice (certificate N) (), force"}; !slices.Equal(w.group.history(), want) {
		t.Errorf("%v", w.group.history())
	}
}
