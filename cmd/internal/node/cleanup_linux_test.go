// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/internal/mounttest"
)

// In a pod the state folder is mounted, in a root that is read-only: the files of the agent go, and the folder itself, which nobody can
// remove there, is no fault. Files that cannot be removed are.
func TestCleanupOfAMountedFolder(t *testing.T) {
	root := mounttest.Tmpfs(t, "1m")
	state := filepath.Join(root, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	mounttest.Mount(t, "tmpfs", state, "size=1m")
	file := filepath.Join(state, StateFile)
	write := func() {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write()
	mounttest.Remount(t, root, "1m", syscall.MS_RDONLY)
	if err := cleanFolder(config.Agent{StateDir: state}); err != nil {
		t.Errorf("mounted in a root that is read-only: %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the file is left")
	}
	write()
	mounttest.Remount(t, state, "1m", syscall.MS_RDONLY)
	if err := cleanFolder(config.Agent{StateDir: state}); err == nil {
		t.Error("a file that cannot be removed is no fault")
	}
}
