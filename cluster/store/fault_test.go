// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/cluster/store"
	"fairlead.io/fairlead/internal/testkit"
)

var errDisk = errors.New("no space left on device")

// failing is a store that fails one kind of operation.
type failing struct {
	*raft.InmemStore
	op string
}

func (f *failing) on(op string) error {
	if f.op == op {
		return errDisk
	}
	return nil
}

func (f *failing) StoreLogs(logs []*raft.Log) error {
	return errors.Join(f.on("StoreLogs"), f.InmemStore.StoreLogs(logs))
}

func (f *failing) DeleteRange(a, b uint64) error {
	return errors.Join(f.on("DeleteRange"), f.InmemStore.DeleteRange(a, b))
}

// Set and Get fail for numbers, too: a Guard keeps them as values with a checksum.
func (f *failing) Set(k, v []byte) error {
	return errors.Join(f.on("Set"), f.on("SetUint64"), f.InmemStore.Set(k, v))
}

func (f *failing) GetLog(i uint64, l *raft.Log) error {
	if err := f.on("GetLog"); err != nil {
		return err
	}
	return f.InmemStore.GetLog(i, l)
}

func (f *failing) Get(k []byte) ([]byte, error) {
	if err := errors.Join(f.on("Get"), f.on("GetUint64")); err != nil {
		return nil, err
	}
	return f.InmemStore.Get(k)
}

// failingSnapshots fails one kind of operation on snapshots.
type failingSnapshots struct {
	*raft.InmemSnapshotStore
	op string
}

type failingSink struct {
	raft.SnapshotSink
	op string
}

func (f *failingSnapshots) Create(v raft.SnapshotVersion, index, term uint64, c raft.Configuration, ci uint64, t raft.Transport,
) (raft.SnapshotSink, error) {
	if f.op == "Create" {
		return nil, errDisk
	}
	sink, err := f.InmemSnapshotStore.Create(v, index, term, c, ci, t)
	return &failingSink{sink, f.op}, err
}

func (f *failingSnapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	if f.op == "Open" {
		return nil, nil, errDisk
	}
	return f.InmemSnapshotStore.Open(id)
}

func (f *failingSnapshots) List() ([]*raft.SnapshotMeta, error) {
	if f.op == "List" {
		return nil, errDisk
	}
	return f.InmemSnapshotStore.List()
}

func (f *failingSink) Write(p []byte) (int, error) {
	if f.op == "Write" {
		return 0, errDisk
	}
	return f.SnapshotSink.Write(p)
}

func (f *failingSink) Close() error {
	if f.op == "Close" {
		return errDisk
	}
	return f.SnapshotSink.Close()
}

// takeSnapshot writes a snapshot as the library does.
func takeSnapshot(s store.Stores) error {
	_, trans := raft.NewInmemTransport("a")
	sink, err := s.Snapshots.Create(1, 1, 1, raft.Configuration{}, 1, trans)
	if err != nil {
		return err
	}
	if _, err := sink.Write([]byte("state")); err != nil {
		return err
	}
	return sink.Close()
}

// operations is every operation that can fail.
var operations = map[string]func(store.Stores) error{
	"StoreLogs":   func(s store.Stores) error { return s.Log.StoreLog(&raft.Log{Index: 2, Term: 1}) },
	"GetLog":      func(s store.Stores) error { return s.Log.GetLog(1, new(raft.Log)) },
	"DeleteRange": func(s store.Stores) error { return s.Log.DeleteRange(1, 1) },
	"Set":         func(s store.Stores) error { return s.Stable.Set([]byte("k"), nil) },
	"SetUint64":   func(s store.Stores) error { return s.Stable.SetUint64([]byte("k"), 1) },
	"Get":         func(s store.Stores) error { _, err := s.Stable.Get([]byte("k")); return err },
	"GetUint64":   func(s store.Stores) error { _, err := s.Stable.GetUint64([]byte("k")); return err },
	"Create":      takeSnapshot,
	"Write":       takeSnapshot,
	"Close":       takeSnapshot,
	"List":        func(s store.Stores) error { _, err := s.Snapshots.List(); return err },
	"Open":        func(s store.Stores) error { _, _, err := s.Snapshots.Open("x"); return err },
}

func guarded(op string) *store.Guard {
	inner := &failing{InmemStore: raft.NewInmemStore(), op: op}
	snapshots := &failingSnapshots{InmemSnapshotStore: raft.NewInmemSnapshotStore(), op: op}
	return store.NewGuard("/data/a", store.Stores{Log: inner, Stable: inner, Snapshots: snapshots})
}

func TestFailureIsRememberedWithPathAndRemedy(t *testing.T) {
	for op, do := range operations {
		t.Run(op, func(t *testing.T) {
			g := guarded(op)
			err := do(g.Checked())
			var fault *store.Error
			if !errors.As(err, &fault) || !errors.Is(err, errDisk) {
				t.Fatalf("want a store.Error around the disk's, got %v", err)
			}
			if fault.Path != "/data/a" || fault.Remedy == "" || !strings.Contains(err.Error(), fault.Remedy) {
				t.Fatalf("path or remedy is missing: %v", err)
			}
			if !errors.Is(g.Err(), errDisk) {
				t.Fatalf("the guard forgot: %v", g.Err())
			}
		})
	}
}

// What the library's goroutines ask does not come back from a failure: it would be logged and forgotten, or panic.
func TestFailureEndsTheLibrarysGoroutine(t *testing.T) {
	for op, do := range operations {
		t.Run(op, func(t *testing.T) {
			g := guarded(op)
			returned, ended := false, make(chan struct{})
			go func() {
				defer close(ended)
				_ = do(g.ForRaft())
				returned = true
			}()
			<-ended
			if returned {
				t.Fatal("the call returned")
			}
			select {
			case <-g.Failed():
			default:
				t.Fatal("nobody is told")
			}
		})
	}
}

// hangingLog writes nothing, and does not say so, until it is well.
type hangingLog struct {
	*raft.InmemStore
	well chan struct{}
}

func (h hangingLog) StoreLogs(logs []*raft.Log) error {
	<-h.well
	return h.InmemStore.StoreLogs(logs)
}

// A write that hangs is a failure that is told while it hangs; one that takes long is none.
func TestAWriteThatHangsIsAFailure(t *testing.T) {
	for after, fails := range map[time.Duration]bool{9 * time.Second: false, 11 * time.Second: true} {
		synctest.Test(t, func(t *testing.T) {
			inner := hangingLog{raft.NewInmemStore(), make(chan struct{})}
			g := store.NewGuard("/data/a", store.Stores{Log: inner, Stable: inner, Snapshots: raft.NewInmemSnapshotStore()})
			wrote := make(chan error, 1)
			go func() { wrote <- g.Checked().Log.StoreLog(&raft.Log{Index: 1, Term: 1}) }()
			time.Sleep(after)
			if err := g.Err(); errors.Is(err, store.ErrHangs) != fails {
				t.Errorf("after %s: %v", after, err)
			}
			if waits := g.Waits(); waits != after {
				t.Errorf("after %s it waits for %s", after, waits)
			}
			close(inner.well)
			if err := <-wrote; err != nil || g.Waits() != 0 {
				t.Errorf("once it is well: %v, waits for %s", err, g.Waits())
			}
			time.Sleep(time.Minute)
			if err := g.Err(); (err != nil) != fails {
				t.Errorf("a minute later: %v", err)
			}
		})
	}
}

func TestWhatIsNotThereIsNoFailure(t *testing.T) {
	g := guarded("")
	s := g.ForRaft()
	if err := s.Log.GetLog(9, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
		t.Fatalf("want ErrLogNotFound, got %v", err)
	}
	if _, err := s.Stable.Get([]byte("k")); !store.NotFound(err) {
		t.Fatalf("want not found, got %v", err)
	}
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
}

// Values that an older release kept have no checksum.
func TestValuesAreKeptWithAChecksum(t *testing.T) {
	inner := raft.NewInmemStore()
	s := store.NewGuard("/data/a", store.Stores{Log: inner, Stable: inner, Snapshots: raft.NewInmemSnapshotStore()}).Checked().Stable
	old, vote := binary.BigEndian.AppendUint64(nil, 7), []byte("10.0.0.1:7444")
	if err := errors.Join(inner.Set([]byte("CurrentTerm"), old), inner.Set([]byte("LastVoteCand"), vote)); err != nil {
		t.Fatal(err)
	}
	if term, err := s.GetUint64([]byte("CurrentTerm")); term != 7 || err != nil {
		t.Errorf("of an older release: %d, %v", term, err)
	}
	if got, err := s.Get([]byte("LastVoteCand")); !bytes.Equal(got, vote) || err != nil {
		t.Errorf("of an older release: %s, %v", got, err)
	}
	if err := errors.Join(s.SetUint64([]byte("CurrentTerm"), 8), s.Set([]byte("LastVoteCand"), []byte("b"))); err != nil {
		t.Fatal(err)
	}
	if term, err := s.GetUint64([]byte("CurrentTerm")); term != 8 || err != nil {
		t.Errorf("%d, %v", term, err)
	}
	kept, err := inner.Get([]byte("CurrentTerm"))
	if err != nil || len(kept) < 8 || binary.BigEndian.Uint64(kept) != 8 {
		t.Errorf("an older release reads %x as the term, %v", kept, err)
	}
	if err := inner.Set([]byte("LastVoteTerm"), kept); err != nil { // another key's
		t.Fatal(err)
	}
	if _, err := s.GetUint64([]byte("LastVoteTerm")); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("taken: %v", err)
	}
	kept, _ = inner.Get([]byte("LastVoteCand"))
	kept[0] ^= 1
	if err := inner.Set([]byte("LastVoteCand"), kept); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get([]byte("LastVoteCand")); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("taken: %v", err)
	}
}

func genLog(t *rapid.T) *raft.Log {
	return &raft.Log{
		Index: rapid.Uint64Range(1, 5).Draw(t, "index"), Term: rapid.Uint64Range(1, 3).Draw(t, "term"),
		Type:       rapid.SampledFrom([]raft.LogType{raft.LogCommand, raft.LogNoop, raft.LogConfiguration}).Draw(t, "type"),
		Data:       rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "data"),
		Extensions: rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "extensions"),
	}
}

// An entry comes back as it was stored, and the one that was handed in is left alone: the library replicates it.
func TestPropertyEntriesComeBackUnchanged(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		s := guarded("").Checked()
		l := genLog(t)
		before := *l
		if err := s.Log.StoreLog(l); err != nil {
			t.Fatal(err)
		}
		var got raft.Log
		if err := s.Log.GetLog(l.Index, &got); err != nil {
			t.Fatal(err)
		}
		for _, l := range []raft.Log{*l, got} {
			if l.Index != before.Index || l.Term != before.Term || l.Type != before.Type ||
				string(l.Data) != string(before.Data) || string(l.Extensions) != string(before.Extensions) {
				t.Fatalf("stored %+v, got %+v", before, l)
			}
		}
	})
}

// No change of an entry in the store goes unnoticed.
func TestPropertyChangedEntryIsRefused(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		inner := raft.NewInmemStore()
		g := store.NewGuard("p", store.Stores{Log: inner, Stable: inner, Snapshots: raft.NewInmemSnapshotStore()})
		l := genLog(t)
		if err := g.Checked().Log.StoreLog(l); err != nil {
			t.Fatal(err)
		}
		var kept raft.Log
		if err := inner.GetLog(l.Index, &kept); err != nil {
			t.Fatal(err)
		}
		asked := kept.Index
		switch rapid.SampledFrom([]string{"index", "term", "type", "data", "extensions", "cut"}).Draw(t, "change") {
		case "index":
			kept.Index += 7
			asked = kept.Index
		case "term":
			kept.Term += rapid.Uint64Range(1, 9).Draw(t, "by")
		case "type":
			kept.Type++
		case "data":
			kept.Data = append(append([]byte(nil), kept.Data...), rapid.Byte().Draw(t, "more"))
		case "extensions":
			i := rapid.IntRange(0, len(kept.Extensions)-1).Draw(t, "at")
			kept.Extensions = append([]byte(nil), kept.Extensions...)
			kept.Extensions[i] ^= rapid.ByteRange(1, 255).Draw(t, "bits")
		case "cut":
			kept.Extensions = kept.Extensions[:rapid.IntRange(0, len(kept.Extensions)-1).Draw(t, "length")]
		}
		if err := inner.StoreLog(&kept); err != nil {
			t.Fatal(err)
		}
		if err := g.Checked().Log.GetLog(asked, new(raft.Log)); !errors.Is(err, store.ErrCorrupt) {
			t.Fatalf("a changed entry was read: %v", err)
		}
	})
}

// snapshotsOf is a snapshot store with one snapshot that ends at index.
func snapshotsOf(t *testing.T, index uint64) raft.SnapshotStore { return snapshotsUpTo(t, index, 1) }

// snapshotsUpTo are a snapshot up to an entry of a term.
func snapshotsUpTo(t *testing.T, index, term uint64) raft.SnapshotStore {
	t.Helper()
	s := raft.NewInmemSnapshotStore()
	_, trans := raft.NewInmemTransport("a")
	sink, err := s.Create(1, index, term, raft.Configuration{}, 1, trans)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sink.Write([]byte("state")); err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStartNeedsALogThatJoinsTheSnapshot(t *testing.T) {
	whole := func(io.Reader) error { return nil }
	broken := func(io.Reader) error { return errors.New("not a state") }
	for name, c := range map[string]struct {
		snapshot    uint64
		first, last uint64
		missing     uint64
		term        uint64
		restore     func(io.Reader) error
		corrupt     bool
	}{
		"empty":                     {term: 0, restore: whole},
		"log-only":                  {first: 1, last: 5, term: 1, restore: whole},
		"log-joins":                 {snapshot: 5, first: 6, last: 9, term: 1, restore: whole},
		"log-overlaps":              {snapshot: 5, first: 3, last: 9, term: 1, restore: whole},
		"log-ends-before":           {snapshot: 5, first: 1, last: 3, term: 1, restore: whole},
		"gap-behind-snapshot":       {snapshot: 5, first: 7, last: 9, term: 1, restore: whole, corrupt: true},
		"gap-at-the-beginning":      {first: 2, last: 9, term: 1, restore: whole, corrupt: true},
		"entry-missing":             {snapshot: 2, first: 3, last: 9, missing: 6, term: 1, restore: whole, corrupt: true},
		"snapshot-does-not-restore": {snapshot: 5, first: 6, last: 9, term: 1, restore: broken, corrupt: true},
		"term-behind-the-log":       {first: 1, last: 5, term: 0, restore: whole, corrupt: true},
	} {
		t.Run(name, func(t *testing.T) {
			inner := raft.NewInmemStore()
			s := store.Stores{Log: inner, Stable: inner, Snapshots: raft.NewInmemSnapshotStore()}
			if c.snapshot > 0 {
				s.Snapshots = snapshotsOf(t, c.snapshot)
			}
			g := store.NewGuard("p", s)
			if err := g.Checked().Stable.SetUint64([]byte("CurrentTerm"), c.term); err != nil {
				t.Fatal(err)
			}
			for i := c.first; i > 0 && i <= c.last; i++ {
				if err := g.Checked().Log.StoreLog(&raft.Log{Index: i, Term: 1}); err != nil {
					t.Fatal(err)
				}
			}
			if c.missing > 0 {
				if err := inner.DeleteRange(c.missing, c.missing); err != nil {
					t.Fatal(err)
				}
			}
			found, err := g.Check(c.restore)
			if (err != nil) != c.corrupt {
				t.Fatalf("found %+v, error %v", found, err)
			}
			if err == nil && found.Last != max(c.snapshot, c.last) {
				t.Fatalf("newest index %d, want %d", found.Last, max(c.snapshot, c.last))
			}
		})
	}
}
