// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

func TestPropertyCrashKeepsWhatWasSyncedAndInventsNothing(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		m := newModel()
		t.Repeat(map[string]func(*rapid.T){
			"":          m.check,
			"create":    m.create,
			"remove":    m.remove,
			"rename":    m.rename,
			"write":     m.write,
			"truncate":  m.truncate,
			"sync-file": m.syncFile,
			"sync-dir":  m.syncDirectory,
			"crash":     m.crash,
		})
	})
}

// Each of the things that a loss of power may do is done at times.
func TestCrashDoesAllThatItMay(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(300) {
		d := New()
		d.Put("/old", bytes.Repeat([]byte{'a'}, 2*sector))
		old, _ := d.Find(d.root, "old")
		_ = old.WriteAt(bytes.Repeat([]byte{'b'}, 2*sector), 0)
		_ = old.WriteAt(bytes.Repeat([]byte{'c'}, 10), 2*sector+5)
		_ = d.Mkdir(d.root, "dir")
		_ = d.Rename(d.root, "old", d.root, "dir/new")
		d.Crash(rand.New(rand.NewPCG(seed, 1)))
		raw, e := d.Get("/dir/new")
		seen["renamed"] = seen["renamed"] || e == None
		if e != None {
			raw, e = d.Get("/old")
			seen["not renamed"] = seen["not renamed"] || e == None
			_, none := d.Find(d.root, "dir")
			seen["directory, but not renamed"] = seen["directory, but not renamed"] || none == None
		}
		seen[fmt.Sprintf("%c%c", raw[0], raw[sector])] = true
		switch n := len(raw); {
		case n == 2*sector+15:
			seen["appended"] = true
			seen["appended beyond what is lost"] = seen["appended beyond what is lost"] || raw[0] == 'a'
		case n > 2*sector:
			seen["torn tail"] = true
		}
	}
	for _, what := range []string{
		"renamed", "not renamed", "directory, but not renamed", "aa", "bb", "ba",
		"appended", "appended beyond what is lost", "torn tail",
	} {
		if !seen[what] {
			t.Errorf("never seen: %s", what)
		}
	}
	if seen["ab"] {
		t.Error("a torn write kept its end")
	}
}

// A file that was moved is not lost together with the new directory that it was moved to.
func TestCrashLosesNoDurableFileWithADirectory(t *testing.T) {
	for seed := range uint64(300) {
		d := New()
		d.Put("/d/f", []byte("kept"))
		_ = d.Mkdir(d.root, "e")
		_ = d.Rename(d.root, "d/f", d.root, "e/f")
		_ = d.Remove(d.root, "d", true)
		d.Crash(rand.New(rand.NewPCG(seed, 2)))
		if files := d.Files(); len(files) != 1 {
			t.Fatalf("seed %d: files %q, want one", seed, files)
		}
	}
}

// A directory is not moved below itself, where an earlier move out of it is lost.
func TestCrashLosesNoDirectoryToACircle(t *testing.T) {
	for seed := range uint64(300) {
		d := New()
		d.Put("/r/a/b/f", []byte("kept"))
		d.Put("/q/g", []byte("kept"))
		_ = d.Rename(d.root, "r/a/b", d.root, "q/b")
		_ = d.Rename(d.root, "r/a", d.root, "q/b/a")
		d.Crash(rand.New(rand.NewPCG(seed, 3)))
		if files := d.Files(); len(files) != 2 {
			t.Fatalf("seed %d: files %q, want two", seed, files)
		}
	}
}
