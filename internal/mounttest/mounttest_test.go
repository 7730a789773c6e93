// SPDX-License-Identifier: Apache-2.0

package mounttest_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"fairlead.io/fairlead/internal/mounttest"
)

// A process that is being started elsewhere makes no file system busy that nobody uses any more.
func TestStartedProcessesMakeNothingBusy(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var starters sync.WaitGroup
	defer starters.Wait()
	defer cancel()
	for range 4 {
		starters.Go(func() {
			for ctx.Err() == nil {
				_ = exec.CommandContext(ctx, "true").Run() // how it ends is nothing to us
			}
		})
	}
	t.Run("mounts", func(t *testing.T) {
		for range 500 {
			t.Run("one", useOnce)
		}
	})
}

// useOnce has a file of a file system open for a moment right before it is unmounted.
func useOnce(t *testing.T) {
	f, err := os.Create(filepath.Join(mounttest.Tmpfs(t, "64k"), "file"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
