// SPDX-License-Identifier: Apache-2.0

//go:build !wasip1

package filelock_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"fairlead.io/fairlead/internal/filelock"
)

func open(t *testing.T, path string) *os.File {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestALockIsOneHoldersOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, second := open(t, path), open(t, path)
	defer second.Close()
	lock, err := filelock.Take(first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := filelock.Take(second); !errors.Is(err, filelock.ErrTaken) {
		t.Errorf("taken twice: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := filelock.Take(second); err != nil {
		t.Errorf("given back: %v", err)
	}
}

// What was given back is free, whatever processes are being started.
func TestStartedProcessesKeepNoLock(t *testing.T) {
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
	path := filepath.Join(t.TempDir(), "lock")
	for range 2000 {
		lock, err := filelock.Take(open(t, path))
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
