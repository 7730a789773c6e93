// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"syscall"
	"testing"

	"fairlead.io/fairlead/cluster/store"
	"fairlead.io/fairlead/internal/mounttest"
)

// On a file system that became read-only the floor can be neither kept nor removed. It is not believed: it stays where it was while the folder goes on.
func TestFloorOnAReadOnlyFileSystemIsNotBelieved(t *testing.T) {
	dir := mounttest.Tmpfs(t, "1m")
	f := store.OpenFloor(dir, "a-1", "boot")
	f.Hold(store.Promises{Term: 3})
	if err := f.Begin(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	mounttest.Remount(t, dir, "1m", syscall.MS_RDONLY)
	f = store.OpenFloor(dir, "a-1", "boot")
	if !f.Known() {
		t.Fatal("there is no floor to begin with")
	}
	if err := f.Begin(); err == nil || f.Known() {
		t.Errorf("it is kept (%v), and known: %v", err, f.Known())
	}
}
