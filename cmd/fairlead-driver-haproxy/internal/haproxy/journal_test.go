// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// saved is all that is on the disk of a book.
func saved(t *testing.T, path string) string {
	t.Helper()
	journal, err := os.ReadFile(path + ".journal")
	if err != nil {
		t.Fatal(err)
	}
	book, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(book) + string(journal)
}

// A crash after any Save, in the middle of the next one, leaves the book as it was saved.
func TestPropertyACrashCostsNoSave(t *testing.T) {
	t.Parallel()
	testkit.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "book-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "servers.json")
		b, err := OpenBook(path)
		if err != nil {
			t.Fatal(err)
		}
		type state struct {
			servers map[key]wish
			process Process
			length  int    // of the journal
			edition uint64 // of the file
		}
		var states []state
		for range rapid.IntRange(1, 6).Draw(t, "saves") {
			for range rapid.IntRange(1, 4).Draw(t, "changes") {
				k := drawKey(t)
				switch rapid.IntRange(0, 9).Draw(t, "what") {
				case 0:
					b.moveTo(Process{PID: rapid.IntRange(1, 9).Draw(t, "pid"), Started: 1})
				case 1, 2, 3:
					b.drop(k)
				default:
					b.put(k, wish{weight: rapid.IntRange(0, 9).Draw(t, "weight")})
				}
			}
			if err := b.Save(); err != nil {
				t.Fatal(err)
			}
			_, servers := b.wanted()
			now := state{servers, b.in(), b.journal.length, b.edition}
			if len(states) > 0 && now.edition > states[len(states)-1].edition {
				states = nil // it was written anew: no crash leads back before that
			}
			states = append(states, now)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		cut := rapid.SampledFrom(states).Draw(t, "cut").length
		torn := rapid.SampledFrom([]string{"", "{", `{"put":{"backend":"web","addr`}).Draw(t, "torn")
		if err := os.Truncate(path+".journal", int64(cut)); err != nil {
			t.Fatal(err)
		}
		if b.journal, err = openJournal(path + ".journal"); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(b.journal.append([]byte(torn)), b.journal.close()); err != nil {
			t.Fatal(err)
		}
		if b, err = OpenBook(path); err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		_, got := b.wanted()
		for i, s := range states {
			lastOfIts := i+1 == len(states) || states[i+1].length > s.length // a Save with nothing to say adds nothing
			if s.length == cut && lastOfIts && (!maps.Equal(got, s.servers) || b.in() != s.process) {
				t.Fatalf("%v in %v, not %v in %v", got, b.in(), s.servers, s.process)
			}
		}
	})
}

// A crash after the file was written anew and before its journal was leaves a journal of an older file.
func TestAJournalOfAnotherEditionIsOfNoUse(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "servers.json")
	b := open(t, path)
	k := drawn("web", "192.0.2.1:80")
	b.put(k, wish{weight: 1})
	if err := b.Save(); err != nil {
		t.Fatal(err)
	}
	b.put(k, wish{weight: 2})
	if err := b.Save(); err != nil {
		t.Fatal(err)
	}
	former, err := os.ReadFile(path + ".journal")
	if err != nil || !strings.Contains(string(former), `"weight":2`) {
		t.Fatalf("%s, %v", former, err)
	}
	b.drop(k)
	b.moveTo(Process{PID: 1, Started: 1}) // writes the file anew
	if err := b.Save(); err != nil {
		t.Fatal(err)
	}
	shut(t, b)
	if err := os.WriteFile(path+".journal", former, 0o600); err != nil {
		t.Fatal(err)
	}
	b = open(t, path)
	defer shut(t, b)
	if _, got := b.wanted(); len(got) != 0 {
		t.Errorf("%v came back", got)
	}
}

// What could not be appended is written with the next Save, which writes all anew.
func TestAJournalThatFailsIsBegunAnew(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "servers.json")
	b := open(t, path)
	put := func(port int) error {
		b.put(drawn("web", fmt.Sprintf("192.0.2.1:%d", port)), wish{weight: 1})
		return b.Save()
	}
	if err := put(1); err != nil {
		t.Fatal(err)
	}
	good := b.journal.file
	closed, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	b.journal.file = closed
	if err := put(2); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("it says %v", err)
	}
	b.journal.file = good
	if err := put(3); err != nil {
		t.Fatal(err)
	}
	shut(t, b)
	b = open(t, path)
	defer shut(t, b)
	if _, got := b.wanted(); len(got) != 3 {
		t.Errorf("%v", got)
	}
}

func TestAJournalIsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "servers.json")
	b := open(t, path)
	for i := range 30_000 {
		b.put(drawn("web", "192.0.2.1:80"), wish{weight: i % 200, maxConn: i})
		if i%1000 != 0 {
			continue
		}
		if err := b.Save(); err != nil {
			t.Fatal(err)
		}
		if s, err := os.Stat(path + ".journal"); err != nil || s.Size() > longestJournal {
			t.Fatalf("after %d changes: %v, %v", i, s.Size(), err)
		}
	}
	shut(t, b)
	b = open(t, path)
	defer shut(t, b)
	if _, got := b.wanted(); got[drawn("web", "192.0.2.1:80")].maxConn != 29_000 {
		t.Errorf("%v", got)
	}
}
