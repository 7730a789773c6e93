// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/agent/disk"
	"fairlead.io/fairlead/dataplane/bgp/appliedstate"
)

// Cleanup removes what the agent made: in the kernel, and in its state folder; the folder too if nothing else is in it.
// What is gone already is fine, so that it may be repeated.
//
// Errors: the agent is running, or something could not be removed; files stay until the kernel is clean.
func Cleanup(ctx context.Context, c config.Agent, e Edges, log *slog.Logger) error {
	if _, err := os.Stat(c.StateDir); errors.Is(err, fs.ErrNotExist) {
		return cleanKernel(ctx, c, e, log)
	}
	lock, err := e.Lock(c.StateDir)
	if err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	// The folder goes last: what settings were before is in it.
	if err = cleanKernel(ctx, c, e, log); err == nil {
		err = cleanFolder(c)
	}
	return inOneLine(err, lock.Close())
}

// made are the files that an agent leaves in its folder: those that somebody else gave it are not among them.
func made(c config.Agent) []string {
	files := []string{StateFile, ProbesFile, drainingFile, revokedFile, appliedstate.FileName, disk.LockName}
	if c.Enrol != nil {
		for _, path := range []string{c.TLS.CA, c.TLS.Cert, c.TLS.Key} {
			if filepath.Dir(path) == filepath.Clean(c.StateDir) {
				files = append(files, filepath.Base(path))
			}
		}
	}
	return files
}

func cleanFolder(c config.Agent) error {
	dir := c.StateDir
	for _, name := range made(c) {
		for _, path := range []string{name, name + ".next"} {
			if err := os.Remove(filepath.Join(dir, path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("clean up: %w", err)
			}
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, tlsFolder)); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		return err // what is left is somebody else's
	}
	// A container has it mounted: where its root is read-only the kernel says that first.
	if err := os.Remove(dir); err != nil && !errors.Is(err, syscall.EBUSY) && !errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("clean up: %w", err)
	}
	return nil
}
