// SPDX-License-Identifier: Apache-2.0

// Package disktest gives tests file systems that are full or read-only when they want them to be. It mounts a tmpfs,
// which needs root; without it, tests skip by name.
package disktest

import (
	"os"
	"syscall"
	"testing"

	"fairlead.io/fairlead/internal/testkit"
)

// Tmpfs mounts a file system of a size, such as "1m", for the length of a test.
func Tmpfs(t testing.TB, size string) string {
	t.Helper()
	testkit.NotFast(t, "mounts a file system")
	path := t.TempDir()
	if err := syscall.Mount("fairlead-test", path, "tmpfs", 0, "size="+size); err != nil {
		if os.Getenv("FAIRLEAD_REQUIRE_ROOT") == "1" {
			t.Fatalf("mount tmpfs: %v", err)
		}
		t.Skipf("mount tmpfs: %v (needs root)", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(path, 0); err != nil {
			t.Errorf("unmount %s: %v", path, err)
		}
	})
	return path
}

// Remount gives a Tmpfs another size, or makes it read-only with flags syscall.MS_RDONLY.
func Remount(t testing.TB, path, size string, flags uintptr) {
	t.Helper()
	options := ""
	if size != "" {
		options = "size=" + size
	}
	if err := syscall.Mount("", path, "", syscall.MS_REMOUNT|flags, options); err != nil {
		t.Fatalf("remount %s: %v", path, err)
	}
}
