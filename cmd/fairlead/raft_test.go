// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
)

func TestRaftAnswersInEveryFormat(t *testing.T) {
	w := newWorld(t)
	server := w.serve(&fakeRaft{}, &fakeRecord{})
	for name, args := range map[string][]string{
		"raft-status":   {"raft", "status"},
		"raft-peers":    {"raft", "peers"},
		"raft-add":      {"raft", "add", "m4-k3x9", "192.0.2.4:7444"},
		"raft-remove":   {"raft", "remove", "m3"},
		"raft-transfer": {"raft", "transfer", "m2"},
		"raft-snapshot": {"raft", "snapshot"},
		"raft-finalize": {"raft", "finalize"},
	} {
		for _, format := range []string{"table", "json", "yaml"} {
			t.Run(name+"/"+format, func(t *testing.T) {
				golden(t, name+"-"+format, w.run([]string{server}, append(args, "-o", format)...).mustPrint(t))
			})
		}
	}
}

func TestRaftChangesCarryWhatTheOperatorSaid(t *testing.T) {
	w := newWorld(t)
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"status-local":   {[]string{"raft", "status", "--local"}, []string{"local:true"}},
		"add":            {[]string{"raft", "add", "m-4-k3x9", "192.0.2.4:7444", "--reason", "new rack"}, []string{`name:"m-4"`, `server_id:"m-4-k3x9"`, `address:"192.0.2.4:7444"`, "SUFFRAGE_NONVOTER", `reason:"new rack"`}},
		"add-voter":      {[]string{"raft", "add", "m4-x", "192.0.2.4:7444", "--voter", "--name", "other", "--api-address", "192.0.2.4:7443"}, []string{`name:"other"`, "SUFFRAGE_VOTER", `api_address:"192.0.2.4:7443"`}},
		"remove-force":   {[]string{"raft", "remove", "m3", "--force"}, []string{`server:"m3"`, "force:true"}},
		"transfer-any":   {[]string{"raft", "transfer", "--reason", "upgrade"}, []string{`reason:"upgrade"`}},
		"transfer-named": {[]string{"raft", "transfer", "m2", "--force"}, []string{`server:"m2"`, "force:true"}},
		"snapshot":       {[]string{"raft", "snapshot", "--reason", "disk"}, []string{`reason:"disk"`}},
		"finalize":       {[]string{"raft", "finalize", "--format", "2", "--force"}, []string{"format:2", "force:true"}},
	} {
		t.Run(name, func(t *testing.T) {
			raft := &fakeRaft{}
			w.run([]string{w.serve(raft, &fakeRecord{})}, test.args...).mustPrint(t)
			asked := strings.Join(raft.requests(), "\n")
			for _, want := range test.want {
				if !strings.Contains(strings.ReplaceAll(asked, ": ", ":"), want) { // the library's text form varies its blanks
					t.Errorf("%s is not in %s", want, asked)
				}
			}
		})
	}
}

func TestRefusalIsToldWholeInOneLine(t *testing.T) {
	w := newWorld(t)
	raft := &fakeRaft{refuse: &admin.Refusal{
		Code: admin.WouldLoseQuorum, What: "remove m2", Why: "2 of 3 voters are healthy", Remedy: "bring the others back first, or force it", ForceOverrides: true,
	}}
	server := w.serve(raft, &fakeRecord{})
	want := []string{"fairlead: remove m2: 2 of 3 voters are healthy; bring the others back first, or force it\n"}
	backup := filepath.Join(t.TempDir(), "backup")
	w.run([]string{server}, "raft", "remove", "m2").mustFail(t, exitFailed, want...)
	w.run([]string{server}, "raft", "backup", backup).mustFail(t, exitFailed, want...)
	// More than one piece: the member ends the call while the file is still being sent.
	if err := os.WriteFile(backup, bytes.Repeat([]byte("x"), 5<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run([]string{server}, "raft", "restore", backup).mustFail(t, exitFailed, want...)
}

func TestViewerMayLookButNotChange(t *testing.T) {
	w := newWorld(t)
	raft := &fakeRaft{}
	server := w.serve(raft, &fakeRecord{})
	viewer := w.ca.Issue(t, pki.Request{Role: pki.Viewer, Name: "vera"})
	w.runAs(viewer, []string{server}, "raft", "peers").mustPrint(t)
	w.runAs(viewer, []string{server}, "raft", "remove", "m3").mustFail(t, exitFailed, "viewer/vera", "role operator")
	if asked := raft.requests(); len(asked) != 1 {
		t.Errorf("asked %v", asked)
	}
}

func TestBackupComesBackThroughRestore(t *testing.T) {
	w := newWorld(t)
	raft := &fakeRaft{backup: bytes.Repeat([]byte("0123456789"), 100_000)}
	server := w.serve(raft, &fakeRecord{})
	path := filepath.Join(t.TempDir(), "backup")
	var made backedUp
	if err := json.Unmarshal([]byte(w.run([]string{server}, "raft", "backup", path, "-o", "json").mustPrint(t)), &made); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || !slices.Equal(data, raft.backup) || made.SizeBytes != uint64(len(data)) || made.File != path {
		t.Fatalf("%d bytes, %v; told %+v", len(data), err, made)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a backup that others can read: %v, %v", info.Mode(), err)
	}
	for _, format := range []string{"table", "json", "yaml"} {
		golden(t, "raft-restore-"+format, w.run([]string{server}, "raft", "restore", path, "-o", format).mustPrint(t))
	}
	golden(t, "raft-restore-dry-run-table", w.run([]string{server}, "raft", "restore", path, "--dry-run").mustPrint(t))
	if asked := raft.requests(); !strings.Contains(asked[len(asked)-1], "dry_run:true") {
		t.Errorf("asked %v", asked)
	}
}

func TestBackupThatIsNotWholeLeavesNothingBehind(t *testing.T) {
	w := newWorld(t)
	server := w.serve(&fakeRaft{backup: []byte("0123456789"), broken: true}, &fakeRecord{})
	folder := t.TempDir()
	w.run([]string{server}, "raft", "backup", filepath.Join(folder, "backup")).mustFail(t, exitFailed, "raft backup", "10 bytes came", "try again")
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left behind %v, %v", left, err)
	}
}

func TestBackupNeverOverwrites(t *testing.T) {
	w := newWorld(t)
	raft := &fakeRaft{backup: []byte("new")}
	server := w.serve(raft, &fakeRecord{})
	path := filepath.Join(t.TempDir(), "backup")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run([]string{server}, "raft", "backup", path).mustFail(t, exitFailed, path, "never overwritten", "another file")
	if data, err := os.ReadFile(path); err != nil || string(data) != "old" || len(raft.requests()) > 0 {
		t.Errorf("holds %q, %v; asked %v", data, err, raft.requests())
	}
}

func TestBackupAndRestoreNameTheFileTheyCannotUse(t *testing.T) {
	w := newWorld(t)
	missing := filepath.Join(t.TempDir(), "missing", "backup")
	w.run([]string{deadAddress(t)}, "raft", "backup", missing).mustFail(t, exitFailed, filepath.Dir(missing), "no such file")
	w.run([]string{deadAddress(t)}, "raft", "restore", missing).mustFail(t, exitFailed, missing, "no such file")
	w.run([]string{deadAddress(t)}, "raft", "restore", t.TempDir()).mustFail(t, exitFailed, "is a directory")
}

// Who was removed says what it knew last, and that this is all; scripts are not to take it for how the group is.
func TestRaftStatusOfAFormerMemberFails(t *testing.T) {
	w := newWorld(t)
	got := w.run([]string{w.serve(&fakeRaft{former: true}, &fakeRecord{})}, "raft", "status", "-o", "json")
	var status groupStatus
	if err := json.Unmarshal([]byte(got.stdout), &status); err != nil || !status.Former || len(status.Members) != 3 {
		t.Errorf("%v: %s", err, got.stdout)
	}
	if want := "raft status: m4-gone answered, which is no member of the group any more and does not know how the others are"; got.code != exitFailed || !strings.Contains(got.stderr, want) {
		t.Errorf("exit %d, %q", got.code, got.stderr)
	}
}
