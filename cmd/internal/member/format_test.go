// SPDX-License-Identifier: Apache-2.0

package member_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/member"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// alone is a member that founds a group of its own in a folder.
func alone(folder string) config.Controller {
	const api, raftAt = "m1:7443", "m1:7444"
	return config.Controller{
		Name: "m1", DataDir: folder, BootstrapToken: "t",
		Advertise: config.Advertise{API: api, Raft: raftAt}, Members: []config.Member{{Name: "m1", API: api, Raft: raftAt}},
	}
}

// files are all files of a folder and what they hold.
func files(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(folder), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			text, readErr := os.ReadFile(filepath.Join(folder, path))
			all[path], err = string(text), readErr
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// unreadable has a record find that the group raised the format beyond this release.
type unreadable struct {
	cluster.Record
	now *atomic.Bool
}

func (u unreadable) ApplyEntries(entries []cluster.LogEntry) [][]cluster.Outcome {
	if u.now.Load() {
		panic(&fsm.FormatError{Format: fsm.NewestFormat + 1})
	}
	return u.Record.ApplyEntries(entries)
}

// A member that met a format which it does not know ends, and until it is upgraded it does not begin again: it changes
// nothing, and nobody hears of it.
func TestAMemberThatCannotReadTheRecordStaysAway(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "m1")
	w := &wire{apis: map[string]http.Handler{}}
	edges, raised := w.member(), &atomic.Bool{}
	edges.Machine = func(r cluster.Record) cluster.Machine { return unreadable{r, raised} }
	m, err := member.Open(alone(folder), "test", edges, quiet)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- m.Run(context.Background()) }()
	testkit.Until(t, "it leads", func() bool { id, _, _ := m.Record().Identity(); return m.Leads() && id != "" })
	raised.Store(true)
	_, _ = w.client("m1:7443", caller(pki.Operator, "alice", func() pki.Membership { return pki.Membership{} })).Record.ReleaseHold(
		context.Background(), &fairleadv1.ReleaseHoldRequest{Id: "none"}) // has it commit something
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "upgrade this member") {
		t.Fatalf("it ended with %v", err)
	}
	before := files(t, folder)
	_, err = member.Open(alone(folder), "test", edges, quiet)
	var unknown *fsm.FormatError
	if !errors.As(err, &unknown) || unknown.Format != fsm.NewestFormat+1 || !strings.Contains(err.Error(), folder) {
		t.Errorf("it began again: %v", err)
	}
	if _, err := member.Recover(alone(folder), edges, nil, quiet); !errors.As(err, &unknown) {
		t.Errorf("it was recovered: %v", err)
	}
	if !maps.Equal(files(t, folder), before) {
		t.Error("it changed its folder")
	}
}

// A member that knows the record's format may begin again on its folder.
func TestAFolderRemembersTheFormatOfItsRecord(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "m1")
	edges := (&wire{apis: map[string]http.Handler{}}).member()
	m, err := member.Open(alone(folder), "test", edges, quiet)
	if err != nil {
		t.Fatal(err)
	}
	stop := running(t, "member", m.Run)
	testkit.Until(t, "the folder says so", func() bool {
		text, _ := os.ReadFile(filepath.Join(folder, "identity.json"))
		return strings.Contains(string(text), `"format": 2`)
	})
	stop()
	again, err := member.Open(alone(folder), "test", edges, quiet)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

// A server of a release that cannot read the record is not taken in: not even as one that does not vote.
func TestAnOlderReleaseIsNotTakenIn(t *testing.T) {
	t.Parallel()
	w := &wire{apis: map[string]http.Handler{}}
	m, err := member.Open(alone(filepath.Join(t.TempDir(), "m1")), "test", w.member(), quiet)
	if err != nil {
		t.Fatal(err)
	}
	running(t, "member", m.Run)
	testkit.Until(t, "it leads", func() bool { id, _, _ := m.Record().Identity(); return m.Leads() && id != "" })
	join := w.client("m1:7443", caller(pki.Member, "m2", func() pki.Membership { return pki.Membership{} })).Join
	request := &fairleadv1.JoinRequest{Name: "m2", ServerId: "m2-0123", Address: "m2:7444", ApiAddress: "m2:7443", Format: fsm.NewestFormat - 1, Version: "v0"}
	if _, err := join.Join(context.Background(), request); !errors.Is(err, admin.Invalid) || !strings.Contains(err.Error(), "upgrade that member") {
		t.Errorf("%v", err)
	}
	request.Format = fsm.NewestFormat
	if _, err := join.Join(context.Background(), request); err != nil {
		t.Errorf("one that can read it is not taken in: %v", err)
	}
}
