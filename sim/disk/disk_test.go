// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// file opens or makes a file.
func file(t *testing.T, d *Disk, path string) *Node {
	t.Helper()
	n, e := d.Open(d.root, path, Flags{Create: true})
	if e != None {
		t.Fatalf("open %s: %v", path, e)
	}
	return n
}

func want(t *testing.T, what string, got, want Error) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestOperationsRefuseWhatNoRealDiskDoes(t *testing.T) {
	d := New()
	d.Put("/dir/file", []byte("x"))
	d.Put("/other", []byte("y"))
	root := d.Root()
	_, e := d.Open(root, "none", Flags{})
	want(t, "open what is not there", e, NoEntry)
	_, e = d.Open(root, "other", Flags{Create: true, Exclusive: true})
	want(t, "create what is there", e, Exists)
	_, e = d.Open(root, "other", Flags{Directory: true})
	want(t, "open a file as a directory", e, NoDirectory)
	_, e = d.Open(root, "dir", Flags{Truncate: true})
	want(t, "truncate a directory", e, IsDirectory)
	_, e = d.Open(root, "other/below", Flags{Create: true})
	want(t, "create below a file", e, NoDirectory)
	_, e = d.Find(root, "../x")
	want(t, "leave the disk", e, Forbidden)
	want(t, "mkdir over a file", d.Mkdir(root, "other"), Exists)
	want(t, "mkdir below nothing", d.Mkdir(root, "none/x"), NoEntry)
	want(t, "remove a directory that is not empty", d.Remove(root, "dir", true), NotEmpty)
	want(t, "unlink a directory", d.Remove(root, "dir", false), IsDirectory)
	want(t, "rmdir a file", d.Remove(root, "other", true), NoDirectory)
	want(t, "rename nothing", d.Rename(root, "none", root, "x"), NoEntry)
	want(t, "rename a directory below itself", d.Rename(root, "dir", root, "dir/x"), Invalid)
	want(t, "rename a directory over a file", d.Rename(root, "dir", root, "other"), NoDirectory)
	want(t, "rename a file over a directory", d.Rename(root, "other", root, "dir"), IsDirectory)
	want(t, "remove the root", d.Remove(root, "/", true), Invalid)
	if got := d.Files(); !slices.Equal(got, []string{"/dir/file", "/other"}) {
		t.Errorf("files %q: something was done nevertheless", got)
	}
}

func TestFullDiskTakesOnlyWhatNeedsNoRoom(t *testing.T) {
	d := New()
	f := file(t, d, "f")
	want(t, "write", f.WriteAt([]byte("12345"), 0), None)
	d.Fill()
	want(t, "overwrite", f.WriteAt([]byte("abc"), 1), None)
	want(t, "append", f.WriteAt([]byte("abc"), 3), NoSpace)
	_, e := d.Open(d.root, "g", Flags{Create: true})
	want(t, "create", e, NoSpace)
	d.Free()
	want(t, "append", f.WriteAt([]byte("abc"), 3), None)
}

func TestFailHitsThatManyOperationsOfAKind(t *testing.T) {
	d := New()
	f := file(t, d, "f")
	d.Fail(OpWrite, 2)
	want(t, "first write", f.WriteAt([]byte("a"), 0), IO)
	want(t, "sync", f.Sync(), None)
	want(t, "second write", f.Truncate(4), IO)
	want(t, "third write", f.WriteAt([]byte("a"), 0), None)
}

func TestSyncsOfNamedFilesHang(t *testing.T) {
	d := New()
	if d.Hangs("log") {
		t.Error("a disk hangs from the start")
	}
	d.Hang("log")
	for name, hangs := range map[string]bool{"log": true, "log.next": true, "lock": false, "": false} {
		if d.Hangs(name) != hangs {
			t.Errorf("%q hangs: %v", name, !hangs)
		}
	}
	if d.Recover(); d.Hangs("log") {
		t.Error("it hangs on")
	}
}

func TestNoLaterSyncMakesDurableWhatOneFailedOn(t *testing.T) {
	d := New()
	f := file(t, d, "f")
	want(t, "sync", f.Sync(), None)
	want(t, "write", f.WriteAt([]byte("lost"), 0), None)
	d.Fail(OpSync, 1)
	want(t, "sync", f.Sync(), IO)
	want(t, "sync again", f.Sync(), None)
	if raw, _ := d.Get("/f"); string(raw) != "lost" {
		t.Errorf("reads %q before the crash", raw)
	}
	d.Crash(rand.New(rand.NewPCG(1, 1)))
	if raw, e := d.Get("/f"); len(raw) != 0 || e != None {
		t.Errorf("reads %q, %v after the crash, want nothing", raw, e)
	}
}

func TestRestoreBringsBackAnOldFolderForGood(t *testing.T) {
	d := New()
	d.Put("/data/log", []byte("old"))
	d.Put("/boot", []byte("1"))
	old := d.Clone()
	_ = file(t, d, "data/log").WriteAt([]byte("newer"), 0)
	file(t, d, "data/more")
	d.Put("/boot", []byte("2"))
	want(t, "restore", d.Restore(old, "/data"), None)
	_ = file(t, old, "data/log").WriteAt([]byte("x"), 0) // the copies are apart
	d.Crash(rand.New(rand.NewPCG(1, 1)))
	for path, content := range map[string]string{"/data/log": "old", "/boot": "2"} {
		if raw, _ := d.Get(path); string(raw) != content {
			t.Errorf("%s is %q, want %q", path, raw, content)
		}
	}
	if got := d.Files(); !slices.Equal(got, []string{"/boot", "/data/log"}) {
		t.Errorf("files %q", got)
	}
}

func TestEmptyTakesOneFolderForGood(t *testing.T) {
	d := New()
	d.Empty("/run") // there is none
	d.Put("/run/a/b", []byte("x"))
	d.Put("/data/log", []byte("old"))
	file(t, d, "run/c")
	d.Empty("/run")
	d.Crash(rand.New(rand.NewPCG(1, 1)))
	if got := d.Files(); !slices.Equal(got, []string{"/data/log"}) {
		t.Errorf("files %q", got)
	}
	d.Put("/run/a", nil)
	if got := d.Files(); !slices.Equal(got, []string{"/data/log", "/run/a"}) {
		t.Errorf("files %q", got)
	}
}

func TestFlipChangesOneDurableBit(t *testing.T) {
	d := New()
	if _, _, flipped := d.Flip(rand.New(rand.NewPCG(1, 1))); flipped {
		t.Error("flipped a bit of nothing")
	}
	d.Put("/a", bytes.Repeat([]byte{0}, 100))
	path, at, flipped := d.Flip(rand.New(rand.NewPCG(1, 1)))
	d.Crash(rand.New(rand.NewPCG(1, 1)))
	raw, _ := d.Get("/a")
	ones := 0
	for b := range slices.Values(raw) {
		for ; b != 0; b &= b - 1 {
			ones++
		}
	}
	if !flipped || path != "/a" || ones != 1 || raw[at] == 0 {
		t.Errorf("flipped %v at %s:%d, %d bits differ", flipped, path, at, ones)
	}
}

func TestWipeLeavesNothing(t *testing.T) {
	d := New()
	d.Put("/a/b", []byte("x"))
	f := file(t, d, "c")
	d.Wipe()
	_ = f.WriteAt([]byte("x"), 0)
	_ = f.Sync()
	d.Crash(rand.New(rand.NewPCG(1, 1)))
	if got := d.Files(); len(got) != 0 {
		t.Errorf("files %q", got)
	}
}

// Writes that are never synced do not pile up.
func TestOldWritesAreWrittenBack(t *testing.T) {
	d := New()
	f := file(t, d, "f")
	for range 10 * maxPending {
		_ = f.WriteAt([]byte("x"), f.Size())
	}
	if len(f.pending) > maxPending || len(f.durable) < 9*maxPending {
		t.Errorf("%d writes wait, %d bytes are durable", len(f.pending), len(f.durable))
	}
}
