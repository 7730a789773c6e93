// SPDX-License-Identifier: Apache-2.0

// Package mounttest mounts file systems for the length of a test. It needs root.
package mounttest

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"fairlead.io/fairlead/internal/testkit"
)

// Mount mounts a file system of a kind, with the options of that kind, on a folder that is there. It is unmounted when the test ends;
// the test fails if files of it are open then. Where the kernel refuses, the test fails if FAIRLEAD_REQUIRE_ROOT=1, and is
// skipped by name otherwise.
func Mount(t testing.TB, kind, folder, options string) {
	t.Helper()
	testkit.NotFast(t, "mounts a file system")
	if err := syscall.Mount(kind, folder, kind, 0, options); err != nil {
		if os.Getenv("FAIRLEAD_REQUIRE_ROOT") == "1" {
			t.Fatalf("mount %s at %s: %v", kind, folder, err)
		}
		t.Skipf("mount %s: %v (needs root)", kind, err)
	}
	t.Cleanup(func() { onceUnused(t, "unmount "+folder, func() error { return syscall.Unmount(folder, 0) }) })
}

// Tmpfs gives a folder on a file system of a size, such as "1m", for the length of a test.
func Tmpfs(t testing.TB, size string) string {
	t.Helper()
	folder := t.TempDir()
	Mount(t, "tmpfs", folder, "size="+size)
	return folder
}

// Remount gives a Tmpfs another size unless that is empty, and with flags syscall.MS_RDONLY makes it read-only.
func Remount(t testing.TB, folder, size string, flags uintptr) {
	t.Helper()
	options := ""
	if size != "" {
		options = "size=" + size
	}
	onceUnused(t, "remount "+folder, func() error { return syscall.Mount("", folder, "", syscall.MS_REMOUNT|flags, options) })
}

// onceUnused does what the kernel refuses while somebody has a file of the file system open. Processes that are forked here at that
// time, by whatever test, have each a copy of all files that were open then, and the kernel closes them only after it has told the
// parent that the child has got to its program: syscall.ForkLock keeps nobody from coming in between.
func onceUnused(t testing.TB, what string, do func() error) {
	t.Helper()
	var other error
	testkit.Eventually(t, what, func() error {
		err := do()
		if errors.Is(err, syscall.EBUSY) {
			return err
		}
		other = err
		return nil
	})
	if other != nil {
		t.Errorf("%s: %v", what, other)
	}
}
