// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"fairlead.io/fairlead/dataplane/agent/disk"
)

func open(t *testing.T, path string) *Book {
	t.Helper()
	b, err := OpenBook(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func shut(t *testing.T, b *Book) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestABookIsWhatWasSavedLast(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state", "servers.json")
	b := open(t, path)
	b.put(drawn("web", "192.0.2.1:80"), wish{weight: 0, maxConn: 9})
	b.put(drawn("web", "[2001:db8::1]:80"), wish{weight: 256})
	b.put(drawn("api", "192.0.2.1:80"), wish{weight: 1})
	b.moveTo(Process{PID: 7, Started: 8})
	b.drop(drawn("api", "192.0.2.1:80"))
	if err := b.Save(); err != nil {
		t.Fatal(err)
	}
	b.put(drawn("web", "192.0.2.9:80"), wish{weight: 1}) // not saved
	shut(t, b)
	b = open(t, path)
	defer shut(t, b)
	want := map[key]wish{drawn("web", "192.0.2.1:80"): {maxConn: 9}, drawn("web", "[2001:db8::1]:80"): {weight: 256}}
	if _, got := b.wanted(); !maps.Equal(got, want) || b.in() != (Process{PID: 7, Started: 8}) {
		t.Errorf("%v in %v", got, b.in())
	}
	if s, err := os.Stat(path); err != nil || s.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", s.Mode(), err)
	}
}

// All that was noted before a Save is in the file after it, also when many save at once.
func TestSavingAtOnceLosesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "servers.json")
	b := open(t, path)
	var wait sync.WaitGroup
	for i := range 32 {
		wait.Go(func() {
			b.put(drawn("web", fmt.Sprintf("192.0.2.1:%d", 1+i)), wish{weight: i})
			if err := b.Save(); err != nil {
				t.Error(err)
			}
			if !strings.Contains(saved(t, path), fmt.Sprintf(`"192.0.2.1:%d"`, 1+i)) {
				t.Errorf("port %d is not in the files", 1+i)
			}
		})
	}
	wait.Wait()
	shut(t, b)
}

func TestABookBelongsToOneDriver(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "servers.json")
	b := open(t, path)
	defer shut(t, b)
	if _, err := OpenBook(path); !errors.Is(err, disk.ErrLocked) {
		t.Errorf("a second one: %v", err)
	}
}

// A file that no driver wrote ends the start, with what to do.
func TestAStrangeBookIsRefused(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty": "", "no-json": "servers", "newer": `{"format":2}`, "other": `{"name":"x"}`,
		"bad-address": `{"format":1,"servers":[{"backend":"web","address":"example.com:80"}]}`,
		"bad-backend": `{"format":1,"servers":[{"backend":"web;show info","address":"192.0.2.1:80"}]}`,
	} {
		path := filepath.Join(t.TempDir(), "servers.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if b, err := OpenBook(path); err == nil {
			shut(t, b)
			t.Errorf("%s was read", name)
		} else if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "move the file away") {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		shut(t, open(t, path)) // and the folder is free
	}
	for _, path := range []string{"", t.TempDir() + "/", filepath.Join(t.TempDir(), "lock")} {
		if b, err := OpenBook(path); err == nil {
			shut(t, b)
			t.Errorf("%q is a book", path)
		}
	}
}
