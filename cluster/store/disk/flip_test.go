// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/cluster/store"
	"fairlead.io/fairlead/internal/testkit"
)

// contents is all that a member begins with.
type contents struct {
	Identity Identity
	Found    store.Found
	Vote     string
	VoteTerm uint64
	State    string
	Entries  []raft.Log
}

// readAll reads a folder as a start does.
func readAll(path string) (c contents, err error) {
	f, err := Open(path, "a")
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	g := store.NewGuard(f.Path(), f.Stores())
	c.Identity = f.Identity()
	if c.Found, err = g.Check(func(r io.Reader) error {
		raw, err := io.ReadAll(r)
		c.State = string(raw)
		return err
	}); err != nil {
		return c, err
	}
	s := g.Checked()
	vote, err := s.Stable.Get([]byte("LastVoteCand"))
	if err != nil {
		return c, err
	}
	c.Vote = string(vote)
	if c.VoteTerm, err = s.Stable.GetUint64([]byte("LastVoteTerm")); err != nil {
		return c, err
	}
	for i := c.Found.Snapshot + 1; i <= c.Found.Last; i++ {
		var l raft.Log
		if err := s.Log.GetLog(i, &l); err != nil {
			return c, err
		}
		l.AppendedAt = time.Time{} // for metrics
		c.Entries = append(c.Entries, l)
	}
	return c, nil
}

// furnish makes a folder with a log, a vote and two snapshots.
func furnish(t *testing.T) (path string, files []string) {
	t.Helper()
	path = t.TempDir()
	f := mustOpen(t, path)
	fill(t, f, 1, 20)
	snapshot(t, f, 10)
	snapshot(t, f, 20)
	fill(t, f, 21, 25)
	s := store.NewGuard(f.Path(), f.Stores()).Checked()
	if err := errors.Join(
		s.Stable.Set([]byte("LastVoteCand"), []byte("b:7444")), s.Stable.SetUint64([]byte("LastVoteTerm"), 1), f.SetMembership("g", 1, ""),
	); err != nil {
		t.Fatal(err)
	}
	mustClose(t, f)
	if err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Base(name) != lockFile && filepath.Base(name) != logFile {
			files = append(files, name[len(path)+1:])
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return path, files
}

// Whatever bit flips of whatever file, a member begins with what it had or not at all. The log is left out: where a key of a
// branch page is damaged bbolt ends the whole process, on a goroutine of its own. That is safe, and no test survives it.
func TestPropertyFlippedBitIsNoticed(t *testing.T) {
	t.Parallel()
	whole, files := furnish(t)
	want, err := readAll(whole)
	if err != nil {
		t.Fatal(err)
	}
	noticed := 0
	testkit.Check(t, func(t *rapid.T) {
		path, err := os.MkdirTemp("", "flip")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(path) }()
		if err := os.CopyFS(path, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(path, files[rapid.IntRange(0, len(files)-1).Draw(t, "file")]) // names have the time in them
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		raw[rapid.IntRange(0, len(raw)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if err := os.WriteFile(name, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readAll(path)
		if err != nil {
			noticed++
			return
		}
		if got.Identity.Sum == "" { // the name of the checksum is what flipped
			got.Identity.Sum = want.Identity.Sum
		}
		if !reflect.DeepEqual(got, want) {
			got.Entries, want.Entries = nil, nil // long
			t.Fatalf("it begins with\n%+v, not with\n%+v", got, want)
		}
	})
	if noticed == 0 {
		t.Error("nothing was noticed")
	}
}

// Whatever bit flips in what is kept of an obsolete snapshot, the member begins with the newest one, and the next one is kept in its
// place beside it.
func TestPropertyFlippedBitInAnObsoleteSnapshotCostsNothing(t *testing.T) {
	t.Parallel()
	whole, _ := furnish(t)
	obsolete, err := filepath.Glob(filepath.Join(whole, snapshotsDir, "1-10-*", "*"))
	if err != nil || len(obsolete) < 3 {
		t.Fatalf("%v, %v", obsolete, err)
	}
	testkit.Check(t, func(t *rapid.T) {
		path, err := os.MkdirTemp("", "flip")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(path) }()
		if err := os.CopyFS(path, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		running := rapid.Bool().Draw(t, "while the member runs")
		flip := func() {
			name := rapid.SampledFrom([]string{metaFile, metaFile, metaFile, sumFile, "state.bin"}).Draw(t, "file")
			name = filepath.Join(path, snapshotsDir, filepath.Base(filepath.Dir(obsolete[0])), name)
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			at := rapid.IntRange(0, len(raw)-1).Draw(t, "at")
			// What the library goes by is more worth a look than the rest.
			if key := rapid.SampledFrom([]string{"", `"ID":`, `"Index":`, `"Term":`}).Draw(t, "near"); key != "" && bytes.Contains(raw, []byte(key)) {
				at = bytes.Index(raw, []byte(key)) + rapid.IntRange(1, len(key)+1).Draw(t, "behind its beginning")
			}
			raw[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			if err := os.WriteFile(name, raw, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if !running {
			flip()
		}
		f, err := Open(path, "a")
		if err != nil {
			t.Fatal(err)
		}
		if running {
			flip()
		}
		newest := func(index uint64) {
			list, err := f.Stores().Snapshots.List()
			if err != nil || len(list) == 0 || list[0].Index != index {
				t.Fatalf("snapshots %v, want that of %d: %v", list, index, err)
			}
		}
		newest(20)
		_, wire := raft.NewInmemTransport("a")
		sink, err := f.Stores().Snapshots.Create(1, 25, 1, raft.Configuration{}, 1, wire)
		if err == nil {
			err = sink.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		newest(25)
		if kept, _ := filepath.Glob(filepath.Join(path, snapshotsDir, "1-20-*")); len(kept) != 1 {
			t.Fatal("the snapshot before is gone")
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := readAll(path); err != nil || got.Found.Snapshot != 25 {
			t.Fatalf("it begins with %+v: %v", got.Found, err)
		}
	})
}

// What cannot be read, as the newest snapshot where the system gives an error, is not told as damaged, and nobody is told to give the folder up.
func TestWhatCannotBeReadIsNotToldAsDamaged(t *testing.T) {
	t.Parallel()
	for _, file := range []string{metaFile, sumFile, "state.bin"} {
		path, _ := furnish(t)
		found, err := filepath.Glob(filepath.Join(path, snapshotsDir, "1-20-*", file))
		if err != nil || len(found) != 1 {
			t.Fatalf("%v, %v", found, err)
		}
		if err := errors.Join(os.Remove(found[0]), os.Mkdir(found[0], 0o700)); err != nil { // reading gives EISDIR, also to root
			t.Fatal(err)
		}
		_, err = readAll(path)
		var fault *store.Error
		if !errors.As(err, &fault) || errors.Is(err, store.ErrCorrupt) || fault.Remedy == store.RemedyReplace {
			t.Errorf("%s: told as %v", file, err)
		}
	}
}

// A log is read as memory. What the disk does not give of it ends in a fault of that, as what is damaged does: the one may well be sound.
func TestWhatCannotBeReadOfTheLogIsNotToldAsDamaged(t *testing.T) {
	t.Parallel()
	unread := t.TempDir() // reading it gives EISDIR
	path, _ := furnish(t)
	for where, damaged := range map[string]bool{unread: false, filepath.Join(path, logFile): true} {
		for what, fault := range map[string]func(){
			"a fault of memory":   func() { _ = *(*int)(nil) },
			"a page that is wild": func() { _ = []int{}[len(where)] },
			"bbolt's own":         func() { panic("page 7 already freed") },
		} {
			err := (&logStore{path: where}).guarded(func() error {
				fault()
				return nil
			})
			wantFault(t, err, where, nil)
			var told *store.Error
			if errors.As(err, &told); errors.Is(err, store.ErrCorrupt) != damaged || (told.Remedy == store.RemedyReplace) != damaged {
				t.Errorf("%s, damaged %v: told as %v", what, damaged, err)
			}
		}
	}
	if err := os.Remove(filepath.Join(path, logFile)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(path, logFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(path); !store.Unread(err) || errors.Is(err, store.ErrCorrupt) || strings.Contains(err.Error(), store.RemedyReplace) {
		t.Errorf("at a start: told as %v", err)
	}
}
