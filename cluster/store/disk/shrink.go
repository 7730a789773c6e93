// SPDX-License-Identifier: Apache-2.0

//go:build !wasip1

package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"go.etcd.io/bbolt"
)

// A file of bbolt does not become smaller: what is deleted is room for what comes. One that has been much larger than what is in it, as before a
// log was bounded in bytes, is written anew at a start, if that is worth it.
const (
	shrinkAbove = 64 << 20 // bytes of the file
	shrinkTimes = 4        // so often what is in it
)

// shrinkTx bounds what is copied at once, in memory too.
const shrinkTx = 4 << 20

// shrink writes a file anew without its free pages, if that is worth it. The file is what it was or the new one, whatever happens meanwhile;
// if there is no room for the new one, it stays.
func shrink(path string, live int64) error {
	next := path + ".next"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) { // begun by a process that died
		return err
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() <= max(shrinkAbove, shrinkTimes*live) {
		return err
	}
	if err := copyLive(path, next); err != nil {
		err = errors.Join(fmt.Errorf("write it anew without what is free: %w", err), os.Remove(next))
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			return nil
		}
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// copyLive copies what is in a file to another one, which is on disk when it returns.
func copyLive(from, to string) error {
	source, err := bbolt.Open(from, 0o600, boltOptions(true))
	if err != nil {
		return err
	}
	into, err := bbolt.Open(to, 0o600, boltOptions(false))
	if err != nil {
		return errors.Join(err, source.Close())
	}
	return errors.Join(bbolt.Compact(into, source, shrinkTx), into.Sync(), into.Close(), source.Close())
}
