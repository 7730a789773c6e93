// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/dataplane/agent/disk"
)

var _ agent.Store = (*disk.File)(nil)

func TestSavedStateIsThereAfterReopening(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "if-missing")
	open := func() *disk.File {
		t.Helper()
		f, err := disk.Open(dir, "agent.state")
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := open()
	if data, err := f.Load(); data != nil || err != nil {
		t.Errorf("nothing was saved: %q, %v", data, err)
	}
	for _, want := range []string{"one, which is longer", "two"} {
		if err := f.Save([]byte(want)); err != nil {
			t.Fatal(err)
		}
		f = open()
		if data, err := f.Load(); string(data) != want || err != nil {
			t.Errorf("loaded %q, %v, want %q", data, err, want)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Errorf("left behind: %v, %v", files, err)
	}
}

// A file that was being written when the power went does not count.
func TestHalfWrittenStateDoesNotCount(t *testing.T) {
	dir := t.TempDir()
	f, err := disk.Open(dir, "agent.state")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Save([]byte("whole")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "agent.state.next"), []byte("ha"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := f.Load(); string(data) != "whole" || err != nil {
		t.Errorf("loaded %q, %v", data, err)
	}
	if err := f.Save([]byte("next")); err != nil {
		t.Fatal(err)
	}
	if data, err := f.Load(); string(data) != "next" || err != nil {
		t.Errorf("loaded %q, %v", data, err)
	}
}

func TestUnusableFolderIsSaidAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := disk.Open(file, "agent.state"); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("%v", err)
	}
}

func TestBootIDIsThatOfThisBoot(t *testing.T) {
	one, err := disk.BootID()
	if err != nil {
		t.Skip(err) // no /proc here
	}
	two, err := disk.BootID()
	if err != nil || one != two || len(one) != 36 {
		t.Errorf("%q, %q, %v", one, two, err)
	}
}
