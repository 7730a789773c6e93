// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"fairlead.io/fairlead/internal/mounttest"
)

// fill leaves no room on a disk.
func fillDisk(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "full"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for {
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return
		}
	}
}

// leftovers are what a command left behind, but for what was there.
func leftovers(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "full" {
			names = append(names, e.Name())
		}
	}
	return names
}

// A full disk loses the page or the scenarios, not what the runs told, and leaves no halves behind.
func TestSimOnAFullDiskStillReports(t *testing.T) {
	dir := mounttest.Tmpfs(t, "64k")
	old := filepath.Join(dir, "old.html")
	if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	fillDisk(t, dir)
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"run-html":    {[]string{"run", "--seeds", "2..3", "--html", filepath.Join(dir, "p.html")}, []string{"p.html", "no space left on device", "make room"}},
		"run-save":    {[]string{"run", "--seeds", "2..3", "--save", dir}, []string{"1 of 2 runs broke a rule", "keep failed scenarios", "no space left on device"}},
		"replay-html": {[]string{"replay", "--seed", "2", "--html", old}, []string{"old.html", "no space left on device"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := (&actor{breaks: map[uint64]bool{3: true}}).run(t, t.Context(), test.args...)
			got.mustEnd(t, exitFailed, test.want...)
			if !strings.Contains(got.stdout, "digest") {
				t.Errorf("no report: %q", got.stdout)
			}
			if left := leftovers(t, dir); len(left) != 1 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	if text, _ := os.ReadFile(old); !bytes.Equal(text, []byte("old")) {
		t.Errorf("the page of before is now %q", text)
	}
}

// The report itself goes into a full file.
func TestSimReportThatCannotBeWrittenIsAFailure(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, args := range [][]string{{"run", "--seeds", "1", "--json"}, {"replay", "--seed", "1", "-v"}, {"list"}} {
		var stderr bytes.Buffer
		c := &cli{out: full, err: &stderr, getenv: os.Getenv}
		code := execute(t.Context(), newRoot(c, newSim(c, (&actor{}).load)), append([]string{"sim"}, args...), &stderr)
		ran{code: code, stderr: stderr.String()}.mustEnd(t, exitFailed, "no space left on device")
	}
}

func TestSimRefusesFoldersThatCannotBeWritten(t *testing.T) {
	dir := mounttest.Tmpfs(t, "64k")
	mounttest.Remount(t, dir, "", syscall.MS_RDONLY)
	for name, args := range map[string][]string{
		"save":     {"run", "--save", dir},
		"save-new": {"run", "--save", filepath.Join(dir, "new")},
		"html":     {"run", "--html", filepath.Join(dir, "p.html")},
		"replay":   {"replay", "--seed", "1", "--html", filepath.Join(dir, "p.html")},
	} {
		t.Run(name, func(t *testing.T) {
			a := &actor{}
			a.run(t, t.Context(), args...).mustFail(t, exitFailed, dir, "read-only file system", "name a f")
			if a.loaded {
				t.Error("the program was loaded for nothing")
			}
		})
	}
}

// A page into a pipe or a device is written as it comes.
func TestSimPageGoesIntoDevices(t *testing.T) {
	got := (&actor{}).run(t, t.Context(), "replay", "--seed", "1", "--html", "/dev/null")
	got.mustPrint(t)
	if info, err := os.Stat("/dev/null"); err != nil || info.Mode().IsRegular() {
		t.Fatalf("%v %v", info, err)
	}
}
