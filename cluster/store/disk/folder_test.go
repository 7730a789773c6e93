// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/store"
	"fairlead.io/fairlead/internal/mounttest"
	"fairlead.io/fairlead/internal/private"
)

func mustOpen(t *testing.T, path string) *Folder {
	t.Helper()
	f, err := Open(path, "a")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func mustClose(t *testing.T, f *Folder) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// wantFault fails unless err is a fault that names a path below folder and what to do.
func wantFault(t *testing.T, err error, folder string, cause error) {
	t.Helper()
	var fault *store.Error
	if !errors.As(err, &fault) {
		t.Fatalf("want a *store.Error, got %v", err)
	}
	if !strings.HasPrefix(fault.Path, folder) || fault.Remedy == "" {
		t.Fatalf("path or remedy is missing: %v", err)
	}
	if cause != nil && !errors.Is(err, cause) {
		t.Fatalf("want %v, got %v", cause, err)
	}
	wantPlain(t, err)
}

// wantPlain wants one line for people, which says what to do once and nothing of this program's memory.
func wantPlain(t *testing.T, err error) {
	t.Helper()
	var fault *store.Error
	text := err.Error()
	if !errors.As(err, &fault) || strings.Count(text, fault.Remedy) != 1 || strings.ContainsAny(text, "\n") {
		t.Errorf("not one line with one remedy: %q", text)
	}
	for _, ours := range []string{"runtime error", "nil pointer", "fault address", "goroutine", "out of range"} {
		if strings.Contains(text, ours) {
			t.Errorf("%q tells of a fault of ours: %q", ours, text)
		}
	}
}

// A process may end at any moment: the folder of snapshots is never open to others, also not until its mode is set.
func TestFolderOfSnapshotsIsMadeForItsOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	f, err := OpenWith(path, "a", Options{Lock: lock, MakeLog: createLog, OpenLog: openLog, Chmod: func(path string, mode fs.FileMode) error {
		if info, err := os.Stat(path); err != nil || filepath.Base(path) == snapshotsDir && info.Mode().Perm() != 0o700 {
			t.Errorf("%s is %v before its mode is set, %v", path, info.Mode(), err)
		}
		return os.Chmod(path, mode)
	}})
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, f)
}

// hangingLog does not close until it is well.
type hangingLog struct {
	Log
	well chan struct{}
}

func (h hangingLog) Close() error {
	<-h.well
	return h.Log.Close()
}

// A process ends though a write of its disk does not come back; until it has, nobody else gets the folder.
func TestAFolderWhoseDiskHangsIsLeftLocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, well := t.TempDir(), make(chan struct{})
		f, err := OpenWith(path, "a", Options{Lock: lock, MakeLog: createLog, OpenLog: func(path string) (Log, error) {
			log, err := openLog(path)
			return hangingLog{log, well}, err
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); !errors.Is(err, errWriting) {
			t.Errorf("want errWriting, got %v", err)
		}
		if _, err := Open(path, "a"); !errors.Is(err, ErrLocked) {
			t.Errorf("want ErrLocked, got %v", err)
		}
		close(well)
		synctest.Wait()
		if err := f.lock.Close(); err != nil {
			t.Error(err)
		}
	})
}

// fill stores entries from..to through a guard, as raft would.
func fill(t *testing.T, f *Folder, from, to uint64) {
	t.Helper()
	s := store.NewGuard(f.Path(), f.Stores()).Checked()
	if err := s.Stable.SetUint64([]byte("CurrentTerm"), 1); err != nil {
		t.Fatal(err)
	}
	for i := from; i <= to; i++ {
		if err := s.Log.StoreLog(&raft.Log{Index: i, Term: 1, Data: bytes.Repeat([]byte{byte(i)}, 300)}); err != nil {
			t.Fatal(err)
		}
	}
}

func snapshot(t *testing.T, f *Folder, index uint64) string {
	t.Helper()
	_, trans := raft.NewInmemTransport("a")
	members := raft.Configuration{Servers: []raft.Server{{ID: "a-1", Address: "a:7444"}, {ID: "b-2", Address: "b:7444"}}}
	sink, err := f.Stores().Snapshots.Create(1, index, 1, members, 1, trans)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(sink, "state at %d", index); err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(f.Path(), snapshotsDir, sink.ID())
}

// check reads a folder as a start does.
func check(path string) error {
	f, err := Open(path, "a")
	if err != nil {
		return err
	}
	_, err = store.NewGuard(f.Path(), f.Stores()).Check(func(r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	})
	return errors.Join(err, f.Close())
}

func TestFolderKeepsItsInstanceAndALostOneGetsAnother(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	f := mustOpen(t, path)
	first := f.Identity()
	if err := f.SetMembership("g1", 3, "k3x9"); err != nil {
		t.Fatal(err)
	}
	mustClose(t, f)
	f = mustOpen(t, path)
	if f.Identity().Instance != first.Instance || f.Identity().Group != "g1" || f.Identity().Epoch != 3 || f.Identity().Nonce != "k3x9" {
		t.Fatalf("%+v became %+v", first, f.Identity())
	}
	mustClose(t, f)
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	f = mustOpen(t, path)
	defer mustClose(t, f)
	if f.Identity().Instance == first.Instance {
		t.Fatal("an empty folder is the old instance")
	}
}

func TestFolderRemembersTheNewestFormat(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	for _, format := range []uint32{2, 3, 1} {
		f := mustOpen(t, path)
		if err := f.RaiseFormat(format); err != nil {
			t.Fatal(err)
		}
		mustClose(t, f)
	}
	f := mustOpen(t, path)
	defer mustClose(t, f)
	if f.Identity().Format != 3 {
		t.Errorf("%+v", f.Identity())
	}
}

func TestFolderIsLockedAgainstASecondProcess(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	f := mustOpen(t, path)
	defer mustClose(t, f)
	_, err := Open(path, "a")
	wantFault(t, err, path, ErrLocked)
}

func TestFolderOfAnotherMemberIsRefused(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	mustClose(t, mustOpen(t, path))
	_, err := Open(path, "b")
	wantFault(t, err, path, ErrForeign)
}

func TestFolderWithOtherThingsIsLeftAlone(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	other := filepath.Join(path, "photos")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path, "a")
	wantFault(t, err, path, ErrForeign)
	if _, err := os.Stat(filepath.Join(path, identityFile)); err == nil {
		t.Fatal("an identity was written into a foreign folder")
	}
}

// A folder whose making was cut off at any point is made to its end by the next start.
func TestHalfMadeFolderIsFinished(t *testing.T) {
	t.Parallel()
	whole := t.TempDir()
	mustClose(t, mustOpen(t, whole))
	raw, err := os.ReadFile(filepath.Join(whole, identityFile))
	if err != nil {
		t.Fatal(err)
	}
	var id Identity
	if err := json.Unmarshal(raw, &id); err != nil {
		t.Fatal(err)
	}
	id.Made, id.Sum = false, ""
	half, err := json.Marshal(id)
	if err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string]map[string]string{
		"lock":          {lockFile: ""},
		"next-identity": {lockFile: "", identityFile + ".next": "{"},
		"identity":      {lockFile: "", identityFile: string(half)},
		"cut-log":       {lockFile: "", identityFile: string(half), logFile: "cut"},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			for file, content := range files {
				if err := os.WriteFile(filepath.Join(path, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			f := mustOpen(t, path)
			defer mustClose(t, f)
			if !f.Identity().Made {
				t.Fatal("not finished")
			}
			fill(t, f, 1, 1)
		})
	}
}

func TestDamagedFilesAreRefused(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, path, snapshot string){
		"identity-cut":   func(t *testing.T, path, _ string) { truncate(t, filepath.Join(path, identityFile), 10) },
		"identity-empty": func(t *testing.T, path, _ string) { truncate(t, filepath.Join(path, identityFile), 0) },
		"log-removed":    func(t *testing.T, path, _ string) { remove(t, filepath.Join(path, logFile)) },
		"log-emptied":    func(t *testing.T, path, _ string) { truncate(t, filepath.Join(path, logFile), 0) },
		"log-cut-in-half": func(t *testing.T, path, _ string) {
			truncate(t, filepath.Join(path, logFile), size(t, filepath.Join(path, logFile))/2)
		},
		"log-cut-to-two-pages": func(t *testing.T, path, _ string) { truncate(t, filepath.Join(path, logFile), 8192) },
		"log-meta-pages":       func(t *testing.T, path, _ string) { overwrite(t, filepath.Join(path, logFile), 0, 8192) },
		"log-entry": func(t *testing.T, path, _ string) {
			file := filepath.Join(path, logFile)
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			entry := bytes.Repeat([]byte{37}, 300)
			for i := 0; ; i += len(entry) { // freed pages hold copies of it
				next := bytes.Index(raw[i:], entry)
				if next < 0 {
					return
				}
				i += next
				overwrite(t, file, int64(i)+5, 1)
			}
		},
		"snapshot-state":      func(t *testing.T, _, s string) { overwrite(t, filepath.Join(s, "state.bin"), 3, 2) },
		"snapshot-state-cut":  func(t *testing.T, _, s string) { truncate(t, filepath.Join(s, "state.bin"), 4) },
		"snapshot-state-gone": func(t *testing.T, _, s string) { remove(t, filepath.Join(s, "state.bin")) },
		"snapshot-meta-cut":   func(t *testing.T, _, s string) { truncate(t, filepath.Join(s, "meta.json"), 20) },
		"snapshot-meta-gone":  func(t *testing.T, _, s string) { remove(t, filepath.Join(s, "meta.json")) },
		"snapshot-gone":       func(t *testing.T, _, s string) { remove(t, s) },
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			f := mustOpen(t, path)
			fill(t, f, 1, 20)
			snapshot(t, f, 10)
			newest := snapshot(t, f, 20)
			fill(t, f, 21, 60)
			if err := f.Stores().Log.DeleteRange(1, 15); err != nil {
				t.Fatal(err)
			}
			mustClose(t, f)
			if err := check(path); err != nil {
				t.Fatalf("before the damage: %v", err)
			}
			damage(t, path, newest)
			wantFault(t, check(path), path, store.ErrCorrupt)
		})
	}
}

// Whatever page of the log is damaged, opening and reading it ends in an error or in the entries as they were stored,
// and never in a crash of the process.
func TestEveryDamagedPageIsSurvived(t *testing.T) {
	t.Parallel()
	whole := t.TempDir()
	f := mustOpen(t, whole)
	fill(t, f, 1, 200)
	mustClose(t, f)
	raw, err := os.ReadFile(filepath.Join(whole, logFile))
	if err != nil {
		t.Fatal(err)
	}
	identity, err := os.ReadFile(filepath.Join(whole, identityFile))
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	noticed := 0
	for at := 0; at < len(raw); at += page {
		for _, damage := range []func([]byte){
			func(p []byte) { clear(p) },
			func(p []byte) {
				for i := range p {
					p[i] = 0xff
				}
			},
			func(p []byte) { p[10]++; p[20]++; p[40] ^= 0x55 }, // header, first element
		} {
			path := t.TempDir()
			copied := bytes.Clone(raw)
			damage(copied[at:min(at+page, len(copied))])
			if err := os.WriteFile(filepath.Join(path, identityFile), identity, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(path, logFile), copied, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := check(path); err != nil {
				noticed++
				wantPlain(t, err)
			}
		}
	}
	if noticed == 0 {
		t.Fatal("no damage was noticed: the test damages the wrong thing")
	}
	t.Logf("%d damaged files, %d refused; the others held free pages or the older of the two meta pages", 3*len(raw)/page, noticed)
}

// An older snapshot and a log that reaches back to it would do; but then something happened to the disk, and the next
// thing that happens to it may not be noticed.
func TestNewestSnapshotIsNotFallenBackFrom(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	f := mustOpen(t, path)
	fill(t, f, 1, 20)
	snapshot(t, f, 10)
	newest := snapshot(t, f, 20)
	mustClose(t, f)
	remove(t, filepath.Join(newest, "meta.json"))
	wantFault(t, check(path), path, store.ErrCorrupt)
}

// Whoever looks at the snapshots of a member that runs sees the newest one, while another takes its place and the oldest goes. Found by torture:
// a member ended, since a snapshot that was there a moment later was taken for a damaged one.
func TestSnapshotsAreReadWhileOthersAreFinished(t *testing.T) {
	t.Parallel()
	f := mustOpen(t, t.TempDir())
	defer mustClose(t, f)
	snapshot(t, f, 1)
	all := f.Stores().Snapshots
	var done atomic.Bool
	var reading sync.WaitGroup
	for range 4 {
		reading.Go(func() {
			for last := uint64(0); !done.Load(); {
				list, err := all.List()
				if err != nil || len(list) == 0 || list[0].Index < last {
					t.Errorf("after %d: %d snapshots, %v", last, len(list), err)
					return
				}
				last = list[0].Index
				_, r, err := all.Open(list[0].ID)
				if errors.Is(err, fs.ErrNotExist) { // two others were finished meanwhile
					continue
				}
				if err != nil {
					t.Errorf("open %s: %v", list[0].ID, err)
					return
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range uint64(60) {
		snapshot(t, f, 2+i)
	}
	done.Store(true)
	reading.Wait()
}

func TestLogHeldByAnotherProgramIsNotTakenForDamaged(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	mustClose(t, mustOpen(t, path))
	other, err := createLog(filepath.Join(path, logFile))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(path, "a")
	wantFault(t, err, path, ErrLocked)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOlderHalfRemovedSnapshotIsNoFault(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	f := mustOpen(t, path)
	fill(t, f, 1, 20)
	older := snapshot(t, f, 10)
	snapshot(t, f, 20)
	mustClose(t, f)
	remove(t, filepath.Join(older, "meta.json"))
	if err := check(path); err != nil {
		t.Fatal(err)
	}
}

func TestUnfinishedSnapshotIsClearedAway(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	mustClose(t, mustOpen(t, path))
	left := filepath.Join(path, snapshotsDir, "1-5-99.tmp")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	mustClose(t, mustOpen(t, path))
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("it is still there (%v)", err)
	}
}

func TestFullDiskIsAFaultAndLosesNothing(t *testing.T) {
	t.Parallel()
	path := mounttest.Tmpfs(t, "1m")
	f := mustOpen(t, path)
	g := store.NewGuard(f.Path(), f.Stores())
	s := g.Checked()
	if err := s.Stable.SetUint64([]byte("CurrentTerm"), 1); err != nil {
		t.Fatal(err)
	}
	stored := uint64(0)
	var err error
	for err == nil && stored < 1000 {
		if err = s.Log.StoreLog(&raft.Log{Index: stored + 1, Term: 1, Data: make([]byte, 8192)}); err == nil {
			stored++
		}
	}
	wantFault(t, err, path, syscall.ENOSPC)
	if stored == 0 {
		t.Fatal("nothing was stored before the disk was full")
	}
	mustClose(t, f)

	f = mustOpen(t, path)
	found, err := store.NewGuard(f.Path(), f.Stores()).Check(nil)
	if err != nil {
		t.Fatalf("what was stored before is lost: %v", err)
	}
	if found.Last != stored {
		t.Fatalf("newest entry %d, stored %d", found.Last, stored)
	}
	mustClose(t, f)
}

func TestReadOnlyFolderIsRefused(t *testing.T) {
	t.Parallel()
	path := mounttest.Tmpfs(t, "4m")
	mustClose(t, mustOpen(t, path))
	mounttest.Remount(t, path, "", syscall.MS_RDONLY)
	_, err := Open(path, "a")
	wantFault(t, err, path, syscall.EROFS)
}

func truncate(t *testing.T, path string, to int64) {
	t.Helper()
	if err := os.Truncate(path, to); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// overwrite flips every bit of n bytes.
func overwrite(t *testing.T, path string, at int64, n int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, n)
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	for i := range b {
		b[i] ^= 0xff
	}
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// The kernel keeps what was looked at mapped, and counts it as memory of the process.
func TestWhatWasLookedAtDoesNotStayMapped(t *testing.T) {
	t.Parallel()
	f := mustOpen(t, filepath.Join(t.TempDir(), "data"))
	defer mustClose(t, f)
	const entries = 20_000
	s := f.Stores()
	look := func() {
		t.Helper()
		for i := uint64(1); i <= entries; i++ {
			if err := s.Log.GetLog(i, new(raft.Log)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var logs []*raft.Log
	for i := uint64(1); i <= entries; i++ {
		logs = append(logs, &raft.Log{Index: i, Term: 1, Data: bytes.Repeat([]byte{byte(i)}, 400)})
	}
	if err := s.Log.StoreLogs(logs); err != nil {
		t.Fatal(err)
	}
	look()
	before := resident(t, f.Path())
	if before < 6<<10 {
		t.Fatalf("%d KB are mapped: the test shows nothing", before)
	}
	for i := range uint64(shedAfter / writeLooks) {
		if err := s.Stable.SetUint64([]byte("CurrentTerm"), i); err != nil {
			t.Fatal(err)
		}
	}
	if now := resident(t, f.Path()); now > before/4 {
		t.Errorf("after many writes %d KB are mapped of %d", now, before)
	}
	look()
	if err := s.Log.DeleteRange(1, entries-100); err != nil {
		t.Fatal(err)
	}
	if now := resident(t, f.Path()); now > before/4 {
		t.Errorf("after entries were deleted %d KB are mapped of %d", now, before)
	}
}

// resident is how much of files of a folder this process has mapped, in KB.
func resident(t *testing.T, folder string) (sum int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	ours := false
	for line := range strings.Lines(string(text)) {
		switch fields := strings.Fields(line); {
		case !strings.HasSuffix(fields[0], ":"):
			ours = strings.HasPrefix(fields[len(fields)-1], folder)
		case ours && fields[0] == "Rss:":
			n, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// Snapshots are the record, with what passwords are called and who may do what: no umask and no library opens them to others.
func TestNobodyElseReadsTheFolder(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	path := filepath.Join(t.TempDir(), "data")
	f := mustOpen(t, path)
	fill(t, f, 1, 5)
	snapshot(t, f, 3)
	_, trans := raft.NewInmemTransport("a")
	begun, err := f.Stores().Snapshots.Create(1, 4, 1, raft.Configuration{}, 1, trans)
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && private.Wide(d) {
			t.Errorf("%s is open to others", path)
		}
		return err
	})
	if err := errors.Join(err, begun.Cancel()); err != nil {
		t.Fatal(err)
	}
	mustClose(t, f)
}
