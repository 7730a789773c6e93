// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"

	"fairlead.io/fairlead/internal/private"
)

// Keys, backups and what names them are the operator's alone, whatever the umask of the shell is.
func TestNobodyElseReadsWhatCommandsWrite(t *testing.T) {
	w := newWorld(t)
	server := w.serve(&fakeRaft{backup: []byte("0123456789")}, &fakeRecord{})
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := filepath.Join(t.TempDir(), "made")
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, args := range [][]string{
		{"pki", "init", "--dir", at("ca")},
		{"pki", "signer", "--dir", at("ca"), "--out", at("signer")},
		{"pki", "issue", "member", "m1", "--host", "192.0.2.1", "--dir", at("ca"), "--out", at("m1")},
		{"pki", "issue", "operator", "alice", "--server", "192.0.2.1:7443", "--dir", at("ca"), "--out", at("alice")},
		{"pki", "rotate", "--dir", at("ca"), "--out", at("next")},
		{"pki", "rotate", "--dir", at("next"), "--finish"},
	} {
		fairlead(t, args...).mustPrint(t)
	}
	w.run([]string{server}, "raft", "backup", at("next/backup")).mustPrint(t)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && private.Wide(d) {
			t.Errorf("%s is open to others", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
