// SPDX-License-Identifier: Apache-2.0

//go:build !wasip1

package disk

import (
	"errors"
	"os"
	"syscall"
)

// Open is OpenWith over bbolt and flock(2).
func Open(path, name string) (*Folder, error) {
	return OpenWith(path, name, Options{Lock: lock, MakeLog: createLog, OpenLog: openLog, Chmod: os.Chmod})
}

// lock is free again once the process has ended, however it ends.
func lock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}
