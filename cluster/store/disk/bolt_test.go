// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/mounttest"
	"fairlead.io/fairlead/internal/testkit"
)

func mustOpenBolt(t testing.TB, path string) *boltLog {
	t.Helper()
	b, err := openBolt(path, boltOptions(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.db.Close() })
	b.db.NoSync = true // nobody loses power here
	return b
}

// Releases that kept their log with raft-boltdb are upgraded, and gone back to, with the same folder.
func TestFileIsTheOneOfRaftBoltDB(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 29, 12, 0, 0, 123456789, time.UTC)
	entries := []*raft.Log{
		{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: []byte("members"), Extensions: []byte{1, 2, 3, 4}},
		{Index: 2, Term: 1, Type: raft.LogNoop, Extensions: []byte{9, 9, 9, 9}, AppendedAt: at},
		{Index: 3, Term: 2, Type: raft.LogCommand, Data: bytes.Repeat([]byte("entry "), 10), Extensions: []byte{0, 0, 0, 7}, AppendedAt: at.Add(time.Hour)},
		{Index: 1 << 40, Term: 70000, Type: raft.LogBarrier},
	}
	b := mustOpenBolt(t, filepath.Join(t.TempDir(), logFile))
	if err := b.StoreLogs(entries); err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string][]byte{"LastVoteCand": []byte("10.0.0.1:7444"), "CurrentTerm": binary.BigEndian.AppendUint64(nil, 7)} {
		if err := b.Set([]byte(key), value); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(filepath.Join("testdata", "raft-boltdb.golden")) // never written by this test: the other library did
	if err != nil {
		t.Fatal(err)
	}
	_, want, _ := bytes.Cut(golden, []byte("\n"))
	if got := contentOf(t, b); got != string(want) {
		t.Errorf("the file has\n%s\nraft-boltdb made\n%s", got, want)
	}
	for _, want := range entries {
		var got raft.Log
		if err := b.GetLog(want.Index, &got); err != nil || !got.AppendedAt.Equal(want.AppendedAt) || !bytes.Equal(got.Data, want.Data) || got.Type != want.Type {
			t.Errorf("entry %d is read as %+v, %v", want.Index, got, err)
		}
	}
}

// contentOf is everything in a file, a line for each value.
func contentOf(t *testing.T, b *boltLog) string {
	t.Helper()
	var out bytes.Buffer
	err := b.db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, bucket *bbolt.Bucket) error {
			return bucket.ForEach(func(k, v []byte) error {
				_, err := fmt.Fprintf(&out, "%s %x %x\n", name, k, v)
				return err
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A log in a file is what a log in memory is, whatever is stored and deleted, and however large it is.
func TestPropertyLogInAFileIsALog(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		path := filepath.Join(t.TempDir(), fmt.Sprint(rapid.Uint64().Draw(rt, "folder")))
		b, model := mustOpenBolt(t, path), raft.NewInmemStore()
		next := rapid.Uint64Range(1, 3).Draw(rt, "first")
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch first, last := ends(rt, model); rapid.SampledFrom([]string{"store", "store", "cut", "replace", "reopen"}).Draw(rt, "step") {
			case "store":
				logs := drawLogs(rt, next)
				next += uint64(len(logs))
				same(rt, "store", b.StoreLogs(logs), model.StoreLogs(logs))
			case "cut": // by a snapshot
				if last > 0 {
					upTo := rapid.Uint64Range(first, last).Draw(rt, "upTo")
					same(rt, "cut", b.DeleteRange(first, upTo), model.DeleteRange(first, upTo))
				}
			case "replace": // by another leader's
				if last > 0 {
					from := rapid.Uint64Range(first, last).Draw(rt, "from")
					same(rt, "cut", b.DeleteRange(from, last), model.DeleteRange(from, last))
					next = from
				}
			case "reopen":
				if err := b.db.Close(); err != nil {
					rt.Fatal(err)
				}
				b = mustOpenBolt(t, path)
			}
			sameLog(rt, b, model, next)
		}
		if err := b.db.Close(); err != nil {
			rt.Fatal(err)
		}
	})
}

func drawLogs(t *rapid.T, from uint64) (logs []*raft.Log) {
	for i := range rapid.Uint64Range(1, 5).Draw(t, "entries") {
		size := rapid.SampledFrom([]int{0, 10, 1000, 4000, 5000, 40_000}).Draw(t, "bytes")
		logs = append(logs, &raft.Log{Index: from + i, Term: 1, Data: bytes.Repeat([]byte{byte(from + i)}, size)})
	}
	return logs
}

// readable is what is read of a log.
type readable interface {
	FirstIndex() (uint64, error)
	LastIndex() (uint64, error)
	GetLog(index uint64, l *raft.Log) error
}

func ends(t *rapid.T, l readable) (first, last uint64) {
	first, err := l.FirstIndex()
	if err == nil {
		last, err = l.LastIndex()
	}
	if err != nil {
		t.Fatal(err)
	}
	return first, last
}

func same(t *rapid.T, what string, errs ...error) {
	for _, err := range errs {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

func sameLog(t *rapid.T, got *boltLog, want readable, next uint64) {
	gotFirst, gotLast := ends(t, got)
	wantFirst, wantLast := ends(t, want)
	if wantLast < wantFirst {
		wantFirst, wantLast = 0, 0 // the log in memory forgets where it ended only in part
	}
	if gotFirst != wantFirst || gotLast != wantLast {
		t.Fatalf("it goes from %d to %d, not from %d to %d", gotFirst, gotLast, wantFirst, wantLast)
	}
	for i := range next + 2 {
		var g, w raft.Log
		errG, errW := got.GetLog(i, &g), want.GetLog(i, &w)
		if bytes, err := got.EntryBytes(i); err != errW || bytes < uint64(len(w.Data)) || bytes > uint64(len(w.Data))+100 {
			t.Fatalf("entry %d has %d bytes, %v; its data has %d", i, bytes, err, len(w.Data))
		}
		if errG != errW || g.Index != w.Index || !bytes.Equal(g.Data, w.Data) {
			t.Fatalf("entry %d is %+v, %v, not %+v, %v", i, g, errG, w, errW)
		}
	}
}

// What a small change costs does not depend on what was stored before it.
func TestCostOfAnEntryIsItsOwn(t *testing.T) {
	t.Parallel()
	const small, large = 300, 337_000
	b := mustOpenBolt(t, filepath.Join(t.TempDir(), logFile))
	index := uint64(0)
	store := func(sizes ...int) (written int64) {
		var logs []*raft.Log
		for _, size := range sizes {
			index++
			logs = append(logs, &raft.Log{Index: index, Term: 1, Data: make([]byte, size)})
		}
		before := b.db.Stats()
		if err := b.StoreLogs(logs); err != nil {
			t.Fatal(err)
		}
		after := b.db.Stats()
		return after.TxStats.GetPageAlloc() - before.TxStats.GetPageAlloc()
	}
	for name, burst := range map[string]func(){
		"fresh": func() {},
		"one":   func() { store(large) },
		"some":  func() { store(large); store(large); store(large) },
		"many": func() {
			for range 40 {
				store(large)
			}
		},
		"together":   func() { store(large, large, large, large, large) },
		"with-small": func() { store(large, small); store(small, large) },
		"pages": func() {
			for range 9 {
				store(4200)
			}
		},
	} {
		burst()
		for i := range 6 {
			if got, bound := store(small), int64(6*b.db.Info().PageSize); got > bound {
				t.Errorf("%s: %d bytes, the %d. behind it, cost %d, more than %d", name, small, i+1, got, bound)
			}
		}
		burst()
		if got, bound := store(large), int64(large+8*b.db.Info().PageSize); got > bound {
			t.Errorf("%s: %d bytes behind it cost %d, more than %d", name, large, got, bound)
		}
	}
}

// What was deleted is room for what comes: a log that is cut again and again takes a file of some size, and no larger one.
func TestRoomOfDeletedEntriesIsUsedAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), logFile)
	b := mustOpenBolt(t, path)
	const kept, size = 60, 100_000
	var after [6]int64
	index := uint64(0)
	for round := range after {
		for range 300 {
			index++
			grown := size + int(index*7919%size) // no two of a size
			if err := b.StoreLogs([]*raft.Log{{Index: index, Term: 1, Data: make([]byte, grown)}}); err != nil {
				t.Fatal(err)
			}
			if index%kept == 0 && index > kept {
				if err := b.DeleteRange(1, index-kept); err != nil {
					t.Fatal(err)
				}
			}
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		after[round] = info.Size()
	}
	// 45 MB were written each round; 18 MB are there at most, and bbolt takes room by doubling it up to 16 MB and then by 16 MB.
	if after[5] > after[1] || after[5] > 64<<20 {
		t.Errorf("the file grew to %d bytes, round by round", after)
	}
}

// A file that had been much larger than what is in it becomes smaller at a start, and nothing in it changes.
func TestFileShrinksAtAStart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), logFile)
	b := mustOpenBolt(t, path)
	for i := range uint64(80) {
		if err := b.StoreLogs([]*raft.Log{{Index: i + 1, Term: 1, Data: bytes.Repeat([]byte{byte(i)}, 1<<20)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Set([]byte("CurrentTerm"), []byte("12345678")); err != nil {
		t.Fatal(err)
	}
	reopen := func(delete uint64) (content string, bytes int64) {
		t.Helper()
		if delete > 0 {
			if err := b.DeleteRange(1, delete); err != nil {
				t.Fatal(err)
			}
		}
		content = contentOf(t, b)
		if err := b.db.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+".next", []byte("begun"), 0o600); err != nil {
			t.Fatal(err)
		}
		log, err := openLog(path)
		if err != nil {
			t.Fatal(err)
		}
		b = log.(*logStore).inner
		t.Cleanup(func() { _ = b.db.Close() })
		if now := contentOf(t, b); now != content {
			t.Fatalf("it has %d bytes of content, had %d", len(now), len(content))
		}
		if _, err := os.Stat(path + ".next"); err == nil {
			t.Error("the file that was begun is still there")
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return content, info.Size()
	}
	if _, size := reopen(40); size < 80<<20 {
		t.Errorf("half of it is used, and it was written anew: %d bytes", size)
	}
	if _, size := reopen(75); size > 16<<20 {
		t.Errorf("5 MB are left, in %d bytes", size)
	}
	if err := b.StoreLogs([]*raft.Log{{Index: 81, Term: 1, Data: make([]byte, 5000)}}); err != nil {
		t.Fatal(err)
	}
}

// A disk on which there is no room for a smaller file has the one that it had.
func TestFileThatCannotShrinkIsUsedAsItIs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(mounttest.Tmpfs(t, "100m"), logFile)
	b := mustOpenBolt(t, path)
	for i := range uint64(80) {
		if err := b.StoreLogs([]*raft.Log{{Index: i + 1, Term: 1, Data: make([]byte, 1<<20)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.DeleteRange(1, 64); err != nil {
		t.Fatal(err)
	}
	content := contentOf(t, b)
	if err := b.db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "other"), make([]byte, 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if now := contentOf(t, log.(*logStore).inner); now != content {
		t.Error("what is in it is not what was")
	}
	if _, err := os.Stat(path + ".next"); err == nil {
		t.Error("what was begun is still there")
	}
}
