// SPDX-License-Identifier: Apache-2.0

package private_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"fairlead.io/fairlead/internal/private"
)

func TestNarrowTakesTheRightsOfOthers(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	dir := filepath.Join(t.TempDir(), "data")
	put := func(path string, mode fs.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	modes := func() map[string]fs.FileMode {
		t.Helper()
		out := map[string]fs.FileMode{}
		for _, name := range []string{".", "snapshots", "snapshots/1/state.bin", "key", "ca.crt", "mine", "../../" + filepath.Base(filepath.Dir(outside)) + "/outside"} {
			info, err := os.Lstat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			out[filepath.Base(name)] = info.Mode().Perm()
		}
		return out
	}
	put(outside, 0o644)
	put(filepath.Join(dir, "snapshots/1/state.bin"), 0o666)
	put(filepath.Join(dir, "key"), 0o440)
	put(filepath.Join(dir, "ca.crt"), 0o644)
	put(filepath.Join(dir, "mine"), 0o600)
	for name, mode := range map[string]fs.FileMode{dir: 0o777, filepath.Join(dir, "snapshots"): 0o755} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}

	wider, err := private.Narrow(dir)
	slices.Sort(wider)
	want := []string{dir, filepath.Join(dir, "key"), filepath.Join(dir, "snapshots"), filepath.Join(dir, "snapshots/1/state.bin")}
	if err != nil || !slices.Equal(wider, want) {
		t.Errorf("narrowed %q, %v; want %q", wider, err, want)
	}
	for name, mode := range modes() {
		if want := map[string]fs.FileMode{".": 0o700, "snapshots": 0o700, "key": 0o400, "ca.crt": 0o644, "outside": 0o644}; mode != want[name] && (want[name] != 0 || mode != 0o600) {
			t.Errorf("%s has %o", name, mode)
		}
	}
	if again, err := private.Narrow(dir); err != nil || len(again) != 0 {
		t.Errorf("a second time: %q, %v", again, err)
	}
	shared := filepath.Join(dir, "shared")
	put(filepath.Join(shared, "ours"), 0o644)
	if err := os.Chmod(shared, 0o755); err != nil {
		t.Fatal(err)
	}
	put(filepath.Join(shared, "theirs"), 0o644)
	if wider, err := private.Narrow(shared, "ours", "none"); err != nil || !slices.Equal(wider, []string{filepath.Join(shared, "ours")}) {
		t.Errorf("beside what is somebody else's: %q, %v", wider, err)
	}
	if err := os.Remove(filepath.Join(shared, "theirs")); err != nil {
		t.Fatal(err)
	}
	if wider, err := private.Narrow(shared, "ours", "none"); err != nil || !slices.Equal(wider, []string{shared}) {
		t.Errorf("once it is gone: %q, %v", wider, err)
	}
	if _, err := private.Narrow(filepath.Join(dir, "none")); err != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
}
