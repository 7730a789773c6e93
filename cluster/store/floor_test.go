// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/cluster/store"
	"fairlead.io/fairlead/internal/testkit"
)

// image is a log and a stable store, whole.
type image struct {
	entries []raft.Log
	values  map[string][]byte
}

var stableKeys = []string{"CurrentTerm", "LastVoteTerm", "LastVoteCand"}

func imageOf(s *raft.InmemStore) image {
	i := image{values: map[string][]byte{}}
	last, _ := s.LastIndex()
	for at := uint64(1); at <= last; at++ {
		var l raft.Log
		_ = s.GetLog(at, &l)
		i.entries = append(i.entries, l)
	}
	for _, key := range stableKeys {
		if v, err := s.Get([]byte(key)); err == nil {
			i.values[key] = v
		}
	}
	return i
}

func (i image) store() *raft.InmemStore {
	s := raft.NewInmemStore()
	for _, l := range i.entries {
		_ = s.StoreLog(&l)
	}
	for key, v := range i.values {
		_ = s.Set([]byte(key), v)
	}
	return s
}

// start opens a disk beside the floor in a folder, and gives what the one lacks of the other.
func start(t rapid.TB, disk *raft.InmemStore, dir string) (s store.Stores, kept store.Promises, floor *store.Floor) {
	g := store.NewGuard("disk", store.Stores{Log: disk, Stable: disk, Snapshots: raft.NewInmemSnapshotStore()})
	floor = store.OpenFloor(dir, "a-1", "boot")
	found, err := g.Check(func(io.Reader) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	g.Raise(floor)
	return g.Checked(), found.Promises(), floor
}

// Wherever a server ends, its own disk keeps what it promised; and a disk of before does not, if it promised anything since.
func TestPropertyFloorKnowsAnOlderDisk(t *testing.T) {
	dir := t.TempDir()
	testkit.Check(t, func(t *rapid.T) {
		_ = os.Remove(filepath.Join(dir, "a-1.floor")) // of the check before
		disk := raft.NewInmemStore()
		s, kept, floor := start(t, disk, dir)
		floor.Hold(kept)
		if err := floor.Begin(); err != nil {
			t.Fatal(err)
		}
		type past struct {
			image
			kept store.Promises
		}
		var pasts []past
		term := uint64(1)
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		vote := func() { // and a disk of the middle of it
			must(s.Stable.SetUint64([]byte("LastVoteTerm"), term))
			pasts = append(pasts, past{imageOf(disk), store.Promises{Term: term, Voted: term, For: kept.For, Last: kept.Last}})
			must(s.Stable.Set([]byte("LastVoteCand"), []byte(rapid.SampledFrom([]string{"b", "c"}).Draw(t, "for"))))
		}
		must(s.Stable.SetUint64([]byte("CurrentTerm"), term))
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			last, _ := disk.LastIndex()
			switch rapid.SampledFrom([]string{"entries", "term", "vote", "vote in the term", "half a vote", "conflict", "half a conflict", "look"}).Draw(t, "step") {
			case "entries":
				must(s.Log.StoreLogs([]*raft.Log{{Index: last + 1, Term: term}, {Index: last + 2, Term: term}}))
			case "term":
				term++
				must(s.Stable.SetUint64([]byte("CurrentTerm"), term))
			case "vote":
				term++
				must(s.Stable.SetUint64([]byte("CurrentTerm"), term))
				vote()
			case "vote in the term": // which it followed nobody in before
				if kept.Voted < term {
					vote()
				}
			case "half a vote":
				term++
				must(s.Stable.SetUint64([]byte("CurrentTerm"), term))
				must(s.Stable.SetUint64([]byte("LastVoteTerm"), term))
			case "conflict", "half a conflict":
				if last == 0 {
					continue
				}
				term++
				must(s.Stable.SetUint64([]byte("CurrentTerm"), term))
				from := uint64(rapid.IntRange(1, int(last)).Draw(t, "from"))
				must(s.Log.DeleteRange(from, last))
				if rapid.Bool().Draw(t, "go on") {
					must(s.Log.StoreLog(&raft.Log{Index: from, Term: term}))
				}
			}
			// It ends here.
			must(floor.Close())
			s, kept, floor = start(t, disk, dir)
			if lack := floor.Promises().Lack(kept); !floor.Known() || lack != "" {
				t.Fatalf("its own disk is refused: %s; known: %v", lack, floor.Known())
			}
			for _, p := range pasts {
				_, was, again := start(t, p.store(), dir)
				newer := was.Last.Before(kept.Last) || was.Term < kept.Term || was.Voted < kept.Voted || was.Voted == kept.Voted && was.For != kept.For
				if lack := again.Promises().Lack(was); newer != (lack != "") {
					t.Fatalf("a disk of %+v is taken for one of %+v: %q", was, kept, lack)
				}
			}
			pasts = append(pasts, past{imageOf(disk), kept})
			floor.Hold(kept)
			must(floor.Begin())
		}
	})
}

// A floor of another boot, or another server, is none; and a torn write leaves the one before.
func TestFloorIsOfABootAndWhole(t *testing.T) {
	dir := t.TempDir()
	g := func() *store.Floor { return store.OpenFloor(dir, "a-1", "boot") }
	f := g()
	f.Hold(store.Promises{Term: 3, Voted: 2, For: 9, Last: store.Position{Term: 3, Index: 12}})
	if err := f.Begin(); err != nil {
		t.Fatal(err)
	}
	guard := store.NewGuard("disk", store.Stores{Log: raft.NewInmemStore(), Stable: raft.NewInmemStore(), Snapshots: raft.NewInmemSnapshotStore()})
	guard.Raise(f)
	for term := uint64(4); term < 6; term++ {
		if err := guard.Checked().Stable.SetUint64([]byte("CurrentTerm"), term); err != nil {
			t.Fatal(err)
		}
	}
	if again := g(); !again.Known() || again.Promises().Term != 5 {
		t.Errorf("it is %+v, known %v", again.Promises(), again.Known())
	}
	if store.OpenFloor(dir, "a-1", "another").Known() || store.OpenFloor(dir, "a-2", "boot").Known() {
		t.Error("a floor of another boot or server counts")
	}
	path := filepath.Join(dir, "a-1.floor")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lower := 0
	for at := range whole {
		torn := append([]byte(nil), whole...)
		torn[at] ^= 1
		if err := os.WriteFile(path, torn, 0o600); err != nil {
			t.Fatal(err)
		}
		switch again := g(); {
		case again.Known() && again.Promises().Term == 4:
			lower++
		case !again.Known() || again.Promises().Term != 5:
			t.Fatalf("with byte %d torn it is %+v", at, again.Promises())
		}
	}
	if lower == 0 {
		t.Error("no torn byte was noticed")
	}
}

// A floor that cannot be kept any more does not stay: the next start would believe it, however low it is.
func TestFloorThatCannotBeKeptIsGone(t *testing.T) {
	dir := t.TempDir()
	if err := store.OpenFloor(dir, "a-1", "boot").Begin(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "a-1.floor.new"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := store.OpenFloor(dir, "a-1", "boot").Begin(); err == nil {
		t.Fatal("it was kept")
	}
	if store.OpenFloor(dir, "a-1", "boot").Known() {
		t.Error("the one of before is there")
	}
}

// What was condemned stays so, whatever is written after.
func TestCondemnedFolderStaysCondemned(t *testing.T) {
	dir := t.TempDir()
	s, kept, floor := start(t, raft.NewInmemStore(), dir)
	floor.Hold(kept)
	if err := floor.Begin(); err != nil {
		t.Fatal(err)
	}
	if err := floor.Condemn(); err != nil {
		t.Fatal(err)
	}
	if err := s.Log.StoreLog(&raft.Log{Index: 1, Term: 1}); err != nil {
		t.Fatal(err)
	}
	if again := store.OpenFloor(dir, "a-1", "boot"); again.Promises().Lack(store.Promises{Term: 99, Last: store.Position{Term: 99, Index: 99}}) == "" {
		t.Error("it may take part")
	}
}

// BenchmarkFloor is what each acknowledgement costs beside the log's own write.
func BenchmarkFloor(b *testing.B) {
	disk := raft.NewInmemStore()
	s, kept, floor := start(b, disk, b.TempDir())
	floor.Hold(kept)
	if err := floor.Begin(); err != nil {
		b.Fatal(err)
	}
	value := uint64(0)
	for b.Loop() {
		value++
		if err := s.Stable.SetUint64([]byte("CurrentTerm"), value); err != nil {
			b.Fatal(err)
		}
	}
}
