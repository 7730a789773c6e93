// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/cluster/store"
	"fairlead.io/fairlead/cluster/store/disk"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/sim/guest/journal"
)

// model is a log as a slice.
type model struct {
	entries []raft.Log
	term    uint64
}

func (m *model) check(t *rapid.T, j disk.Log) {
	first, _ := j.FirstIndex()
	last, _ := j.LastIndex()
	var want [2]uint64
	if n := len(m.entries); n > 0 {
		want = [2]uint64{m.entries[0].Index, m.entries[n-1].Index}
	}
	if [2]uint64{first, last} != want {
		t.Fatalf("holds %d to %d, want %v", first, last, want)
	}
	for _, e := range m.entries {
		var got raft.Log
		if err := j.GetLog(e.Index, &got); err != nil || got.Term != e.Term || !slices.Equal(got.Data, e.Data) {
			t.Fatalf("entry %d: %+v, %v; want %+v", e.Index, got, err, e)
		}
	}
	if term, err := j.GetUint64([]byte("term")); m.term != 0 && (err != nil || term != m.term) {
		t.Fatalf("term %d, %v; want %d", term, err, m.term)
	}
}

// The journal holds what was stored, also after it was opened again, and after its last record was cut anywhere.
func TestJournalKeepsWhatItTook(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "journal")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		path := filepath.Join(dir, "log")
		j, err := journal.Make(path)
		if err != nil {
			t.Fatal(err)
		}
		m := &model{}
		next := uint64(1)
		t.Repeat(map[string]func(*rapid.T){
			"store": func(t *rapid.T) {
				var logs []*raft.Log
				for range rapid.IntRange(1, 3).Draw(t, "n") {
					e := raft.Log{Index: next, Term: 1, Data: make([]byte, rapid.IntRange(0, 40_000).Draw(t, "size"))}
					e.Data = append(e.Data, byte(next))
					logs, m.entries = append(logs, &e), append(m.entries, e)
					next++
				}
				if err := j.StoreLogs(logs); err != nil {
					t.Fatal(err)
				}
			},
			"compact": func(t *rapid.T) {
				if n := len(m.entries); n > 0 {
					k := rapid.IntRange(1, n).Draw(t, "k")
					if err := j.DeleteRange(m.entries[0].Index, m.entries[k-1].Index); err != nil {
						t.Fatal(err)
					}
					m.entries = m.entries[k:]
				}
			},
			"truncate": func(t *rapid.T) {
				if n := len(m.entries); n > 0 {
					k := rapid.IntRange(0, n-1).Draw(t, "k")
					next = m.entries[k].Index
					if err := j.DeleteRange(next, m.entries[n-1].Index); err != nil {
						t.Fatal(err)
					}
					m.entries = m.entries[:k]
				}
			},
			"term": func(t *rapid.T) {
				m.term++
				if err := j.SetUint64([]byte("term"), m.term); err != nil {
					t.Fatal(err)
				}
			},
			"reopen": func(t *rapid.T) {
				if err := j.Close(); err != nil {
					t.Fatal(err)
				}
				if torn := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "torn"); len(torn) > 0 {
					f, _ := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
					_, _ = f.Write(append([]byte{200, 0, 0, 0}, torn...)) // longer than what follows
					_ = f.Close()
				}
				if j, err = journal.Open(path); err != nil {
					t.Fatal(err)
				}
			},
			"": func(t *rapid.T) { m.check(t, j) },
		})
	})
}

func TestDamageBeforeTheEndIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	j, err := journal.Make(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(3) {
		if err := j.StoreLog(&raft.Log{Index: i + 1, Data: []byte("entry")}); err != nil {
			t.Fatal(err)
		}
	}
	_ = j.Close()
	raw, _ := os.ReadFile(path)
	raw[12] ^= 1
	_ = os.WriteFile(path, raw, 0o600)
	if _, err := journal.Open(path); !errors.Is(err, store.ErrCorrupt) {
		t.Fatal(err)
	}
}

func TestUnknownKeysAreNotFoundInRaftsWords(t *testing.T) {
	j, err := journal.Make(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Get([]byte("x")); !store.NotFound(err) {
		t.Fatal(err)
	}
}
